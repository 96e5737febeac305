import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { maxHelpColumns } from "../../src/cli/output/HelpText.ts"
import { run } from "./program.ts"

/** The help page of a command, and of all commands below it. */
const pages = (path: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<readonly [command: string, page: string]>> =>
  Effect.gen(function* () {
    const { status, stdout } = yield* run([...path, "--help"])
    const page = String(stdout)
    assert.strictEqual(status, 0, page)
    const [, list = ""] = /\nCOMMANDS\n((?: {2}.*\n)*)/.exec(page) ?? []
    const names = [...list.matchAll(/^ {2}(\S+)/gm)].map(([, name = ""]) => name)
    const below = yield* Effect.forEach(names, (name) => pages([...path, name]), { concurrency: 2 })
    return [[["palimpsest", ...path].join(" "), page] as const, ...below.flat()]
  })

describe("--help", () => {
  it.effect("fits every command's page into 100 columns and describes the command", () =>
    Effect.gen(function* () {
      const all = yield* pages([])
      assert.isAtLeast(all.length, 30)
      for (const [command, page] of all) {
        assert.match(page, /^[A-Z][^\n]+\n\nUSAGE\n/, command)
        assert.notInclude(page, "--wizard", command)
        for (const line of page.split("\n")) assert.isAtMost(line.length, maxHelpColumns, `${command}: ${line}`)
      }
    })
  )
})
