import { Effect } from "effect"
import { execFile } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { program } from "../../cli/program.ts"
import { assert, it } from "../../support/vitest.ts"

/** Kilobytes. A function cannot be called with as many arguments as there are parts, on a stack of this size. */
const stack = 120
const parts = 17_000

// In programs of their own: the threads of tests have a stack of 4 MB, so that none of them sees a list that is passed as arguments.
const run = (...args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const asked = [`--stack-size=${stack}`, ...args]
    return (await promisify(execFile)(process.execPath, asked, { maxBuffer: 1e8 })).stdout
  })
const script = path.join(import.meta.dirname, "manyParts.ts")

it.effect("a message of very many parts comes back in every form, also from a compaction", function* () {
  const forms = ["claude", "codex", "gemini", "pi"]
  const printed = yield* run(script, String(parts), ...forms)
  assert.strictEqual(printed, forms.map((form) => `${form} ${parts} ${parts}\n`).join(""))
})

it.effect("a message of very many parts is compressed", function* () {
  const { bundle } = yield* program
  const file = path.join(mkdtempSync(path.join(tmpdir(), "parts-")), "session.jsonl")
  writeFileSync(file, yield* run(script, String(parts)))
  assert.match(yield* run(bundle, "compress", "--force", file), /^COMPRESSED/)
})
