import { columnsOf } from "../../../src/cli/output/Output.ts"
import { sessionTable } from "../../../src/cli/output/SessionTable.ts"
import type { SessionSummary } from "../../../src/services/session/SessionStore.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const session = (id: string, change: Partial<SessionSummary> = {}): SessionSummary => ({
  id,
  title: undefined,
  firstPrompt: undefined,
  model: "gemini-2.5-flash",
  cwd: "/home/me",
  startedAt: 0,
  updatedAt: 0,
  bytes: 1_234,
  holder: undefined,
  parent: undefined,
  problem: undefined,
  ...change
})

const sessions = [
  session("a", { title: "Fix the build of the package that fails on Tuesdays" }),
  session("b", { firstPrompt: "what\nis this?", holder: { pid: 4711, since: 0 } }),
  session("c", { problem: "of a newer version" }),
  session("d", { title: "語".repeat(30), holder: { pid: 1, since: 0 } })
]

describe("the table of sessions", () => {
  it.effect("shows all columns on a wide terminal", function* () {
    assert.strictEqual(
      yield* sessionTable(sessions.slice(0, 3), 124, undefined, "a"),
      [
        "#  Title                                             Model             Updated     Size  Id",
        "1  Fix the build of the package that fails on Tues…  gemini-2.5-flash  just now  1.2 kB  a   this one",
        "2  what is this?                                     gemini-2.5-flash  just now  1.2 kB  b   in use by 4711",
        "3  (empty)                                           gemini-2.5-flash  just now  1.2 kB  c   cannot be opened"
      ].join("\n")
    )
  })

  it.effect.each([40, 60, 80, 109, 124])("no line is wider than %s columns", function* (columns) {
    const lines = (yield* sessionTable(sessions, columns, undefined, "d")).split("\n")
    for (const line of lines) assert.isAtMost(columnsOf(line), columns, line)
    assert.match(lines[4] ?? "", /語….*this/)
    assert.match(lines[2] ?? "", columns < 60 ? /in use$/ : /in use by 4711$/)
  })
})
