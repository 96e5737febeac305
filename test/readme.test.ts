import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import path from "node:path"
import { program, run } from "./cli/program.ts"
import { sessionFile } from "./support/sessions.ts"

/** The README shows real output: every command of its console blocks is run, and what it prints is what stands there. */

const root = path.dirname(import.meta.dirname)
const readme = readFileSync(path.join(root, "README.md"), "utf8")

/** The commands of a block with the lines shown under each. */
const shown = [...readme.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = ""]) =>
  block
    .split(/^\$ /m)
    .slice(1)
    .map((piece) => {
      const [command = "", ...lines] = piece.trimEnd().split("\n")
      return { command, lines }
    })
)

describe("README", () => {
  it.effect("prints what it says", () =>
    Effect.gen(function* () {
      const { folder } = yield* program
      // Where the README writes, and what it unpacks, lies in the tests' own folder.
      const real = (word: string) =>
        word
          .replace("/tmp/", `${folder}/`)
          .replace("test/fixtures/sessions/claude-code-1512-lines.jsonl", sessionFile("claude-code-1512-lines"))
      let compared = 0
      for (const { command, lines } of shown) {
        const words = /^npm start --silent -- (.+)$/.exec(command)?.[1]?.split(" ")
        if (words === undefined) {
          assert.match(command, /^gunzip /)
          continue
        }
        const { status, stdout } = yield* run(words.map(real), { cwd: root })
        assert.strictEqual(status, 0, command)
        const printed = String(stdout).split("\n")
        for (const [index, line] of lines.entries()) {
          const expected = real(line).replace(/…$/, "")
          assert.isTrue(printed[index]?.startsWith(expected) === true, `${command}\n${line}\n${printed[index]}`)
          compared += 1
        }
      }
      assert.isAbove(compared, 15)
    })
  )

  it("names the commands that CI runs", () => {
    const ci = readFileSync(path.join(root, ".ci", "run"), "utf8")
    assert.include(readme, "npm ci && npm test")
    assert.include(ci, "npm test")
  })
})
