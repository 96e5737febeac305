import { assert, describe, it } from "@effect/vitest"
import { gatherEvidence } from "../../../src/domain/compression/evidence/Evidence.ts"
import { call, model, response, user } from "../../../src/domain/content/Content.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { changesText, entriesSince, parseSince } from "../../../src/domain/transcripts/SessionChanges.ts"
import { entriesOf, entryOf } from "../../support/entries.ts"

const entry = (sequence: number, at?: number) =>
  entryOf(sequence, { role: "user", parts: [] }, at === undefined ? {} : { at })
const log = [entry(1, 10), entry(2), entry(3, 20), entry(4), entry(5, 30)]

describe("what came since a point", () => {
  it.each([
    [{ _tag: "Entry", entry: entryId(2) }, [3, 4, 5]],
    [{ _tag: "Entry", entry: entryId(5) }, []],
    [{ _tag: "Time", at: 9 }, [1, 2, 3, 4, 5]],
    [{ _tag: "Time", at: 10 }, [3, 4, 5]],
    [{ _tag: "Time", at: 29 }, [5]],
    [{ _tag: "Time", at: 30 }, []]
  ] as const)("is after it: %j", (since, expected) => {
    assert.deepStrictEqual(
      entriesSince(log, since).map(({ id }) => id),
      expected.map(entryId)
    )
  })

  it("is named by an entry, a time, or a time ago", () => {
    const now = 1_000_000_000
    for (const [text, at] of [
      ["2m", now - 120_000],
      ["3 h", now - 10_800_000],
      [" 1d ", now - 86_400_000],
      ["2026-01-01T00:00:00Z", Date.UTC(2026, 0, 1)]
    ] as const) {
      assert.deepStrictEqual(parseSince(text, now), { _tag: "Time", at })
    }
    assert.deepStrictEqual(parseSince("e12", now), { _tag: "Entry", entry: entryId(12) })
    for (const text of ["e0", "e", "", "yesterday", "2w"]) assert.isUndefined(parseSince(text, now), text)
  })
})

describe("what changed, in text", () => {
  const ran = (commands: ReadonlyArray<readonly [name: string, args: object, answer: object]>): string => {
    const contents = commands.flatMap(([name, args, answer], at) => [
      model(call(name, args, `c${at}`)),
      user(response(name, answer, `c${at}`))
    ])
    return changesText(runSync(gatherEvidence(entriesOf(contents))))
  }
  const handle = "h_aaaaaaaaaa"

  it("names each file, commit, check, command and failure with its place", () => {
    const text = ran([
      ["Write", { file_path: "a.ts", content: "x" }, { output: "ok" }],
      ["Edit", { file_path: "a.ts", old_string: "x", new_string: "y" }, { output: "ok" }],
      ["Read", { file_path: "b.ts" }, { output: "b" }],
      ["Bash", { command: "git commit -am 'Add a'" }, { output: "[main abc1234] Add a" }],
      ["Bash", { command: "npm test" }, { output: "Tests  3 passed (3)" }],
      ["Bash", { command: "terraform apply" }, { error: "Exit code 7\nerror: no plan" }],
      ["Bash", { command: "ls" }, { output: "a.ts" }]
    ])
    assert.deepStrictEqual(text.split("\n"), [
      "Files changed:",
      "- a.ts (created, 2 changes, e3)",
      "Commits:",
      "- abc1234 Add a (e7)",
      "Checks:",
      `- tests: succeeded (e9 ${handle})`,
      "Commands that do more than read:",
      `- git commit -am 'Add a' succeeded (e7 ${handle})`,
      `- npm test succeeded (e9 ${handle})`,
      `- terraform apply failed, exit 7 (e11 ${handle})`,
      "Failures that nothing has resolved:",
      `- terraform apply (e11 ${handle})`
    ])
  })

  it.each([60, 61, 90])("of %i items the last 60 stand, and how many there were before", (count) => {
    const lines = ran(
      Array.from({ length: count }, (_, n) => ["Write", { file_path: `f${n}.ts`, content: "x" }, { output: "ok" }])
    ).split("\n")
    const rest = count > 60 ? [`- (${count - 60} earlier ones)`] : []
    assert.deepStrictEqual(lines.slice(0, 1 + rest.length), ["Files changed:", ...rest])
    assert.match(lines.at(-1) ?? "", new RegExp(`^- f${count - 1}\\.ts`))
    assert.strictEqual(lines.length, 1 + rest.length + Math.min(60, count))
  })
})
