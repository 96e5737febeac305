import { Effect } from "effect"
import { mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { rolldown } from "rolldown"

/**
 * Bundles a program of this folder into one file, for tests that start it many times: from its sources it takes most of a second
 * to load, and a killed process leaves nothing in Node's cache.
 */
export const bundledProgram = (name: string): Effect.Effect<string> =>
  Effect.promise(async () => {
    const parent = realpathSync(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir())
    const folder = mkdtempSync(path.join(parent, "bundled-"))
    const file = path.join(folder, `${name}.mjs`)
    const bundle = await rolldown({
      input: path.join(import.meta.dirname, `${name}.ts`),
      platform: "node",
      logLevel: "silent"
    })
    await bundle.write({ file, format: "esm", codeSplitting: false })
    await bundle.close()
    return file
  })
