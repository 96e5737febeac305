import { assert, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { root } from "../../support/paths.ts"

/** Kilobytes. A function cannot be called with as many arguments as there are parts, on a stack of this size. */
const stack = 200
const parts = 28_000

// In programs of their own: the threads of tests have a stack of 4 MB, so that none of them sees a list that is passed as arguments.
const run = async (...args: ReadonlyArray<string>) =>
  (await promisify(execFile)(process.execPath, [`--stack-size=${stack}`, ...args], { maxBuffer: 1e8 })).stdout
const script = path.join(import.meta.dirname, "manyParts.ts")

it("a message of very many parts comes back in every form, also from a compaction", async () => {
  const forms = ["claude", "codex", "gemini", "pi"]
  const printed = await run(script, String(parts), ...forms)
  assert.strictEqual(printed, forms.map((form) => `${form} ${parts} ${parts}\n`).join(""))
})

it("a message of very many parts is compressed", async () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "parts-")), "session.jsonl")
  writeFileSync(file, await run(script, String(parts)))
  const start = `import { main } from "${path.join(root, "src/cli/main.ts")}"; main()`
  const program = ["--input-type=module-typescript", "-e", start, "--", "palimpsest"]
  assert.match(await run(...program, "compress", "--force", file), /^COMPRESSED/)
})
