import { assert, describe, it } from "@effect/vitest"
import { piReader } from "../../../../src/domain/transcripts/pi/PiReader.ts"
import { problemText } from "../../../../src/domain/transcripts/Problem.ts"
import { bad, drafts, ok, reading } from "../../../support/reading.ts"

const read = reading(piReader)
const readRecords = (records: ReadonlyArray<unknown>) => read(records.map((record) => JSON.stringify(record)))

const header = (version?: number) => ({
  type: "session",
  version,
  id: "s",
  timestamp: "2026-01-01T00:00:00Z",
  cwd: "/w"
})
const timestamp = "2026-01-01T00:00:01Z"
const entry = (id: string, parentId: string | null, rest: object) => ({ id, parentId, timestamp, ...rest })
const message = (value: object) => ({ type: "message", timestamp, message: value })
const user = (text: string) => message({ role: "user", content: [{ type: "text", text }] })
const assistant = (...content: ReadonlyArray<unknown>) => message({ role: "assistant", model: "m1", content })
const say = (text: string) => assistant({ type: "text", text })
const call = (id: string, name: string, args: unknown = {}) => ({ type: "toolCall", id, name, arguments: args })
const result = (toolCallId: string, content: unknown, isError = false) =>
  message({ role: "toolResult", toolCallId, toolName: "read", content, isError })
const records = (...list: ReadonlyArray<object>) => ok(readRecords(list))
const compaction = (rest: object) => ({ type: "compaction", timestamp, summary: "so far", tokensBefore: 99, ...rest })
const noted = (record: object, palimpsest: object) => ({ ...record, palimpsest })
/** Entries, each the child of the one before it. */
const path = (...list: ReadonlyArray<object>) =>
  list.map((one, n) => entry(String(n + 1), n === 0 ? null : String(n), one))

describe("entries become messages", () => {
  it("a message has the time of its first entry and the ids of all; its model is the one that answered", () => {
    const change = { type: "model_change", timestamp, provider: "p", modelId: "m2" }
    const transcript = records(
      header(3),
      ...path(assistant(call("a", "read"), call("b", "read")), result("a", "x"), result("b", "y"), change)
    )
    assert.deepStrictEqual(
      drafts(transcript).map(({ at, model, origin }) => [at, model, origin]),
      [
        [Date.parse(timestamp), "m1", { line: 2, ids: ["1"] }],
        [Date.parse(timestamp), undefined, { line: 3, ids: ["2", "3"] }]
      ]
    )
    assert.strictEqual(transcript.model, "m2")
  })

  it.each<readonly [string, ReadonlyArray<unknown>, number, string]>([
    ["a newer version", [header(4)], 1, ""],
    ["an invalid version", [{ ...header(), version: "x" }], 1, "version:"],
    ["no header", [user("a")], 1, ""],
    ["an entry without id in a tree", [header(3), user("a")], 2, "id:"],
    ["no message", [header(), { type: "message", timestamp }], 2, "message:"],
    ["a number for content", [header(), message({ role: "user", content: 5 })], 2, "content:"],
    ["a number for a result", [header(), result("t", 5)], 2, "message.content:"],
    ["a text that is none", [header(), assistant({ type: "text" })], 2, "content[0].text:"],
    ["a call without a name", [header(), assistant({ type: "toolCall" })], 2, "content[0].name:"],
    ["a compaction without a summary", [header(), { type: "compaction", timestamp }], 2, "summary:"],
    ["exact parts that are none", [header(), noted(user("a"), { parts: {} })], 2, "palimpsest.parts:"],
    ["a circle of parents", [header(3), entry("1", "2", user("a")), entry("2", "1", user("b"))], 2, ""],
    ["no record", [header(), 7], 2, ""]
  ])("%s is a problem of its line", (_, list, line, where) => {
    const problem = bad(readRecords(list))
    assert.deepStrictEqual([problem.line, problemText(problem).startsWith(where)], [line, true], problemText(problem))
  })

  it.each<readonly [string, string | undefined, number | undefined]>([
    ["a message", "3", 2],
    ["an entry that is no message: the next one", "x", 1],
    ["an entry after results: the next one", "y", 4],
    ["an entry that is not on the path", "dead", undefined],
    ["nothing", undefined, undefined]
  ])("a compaction's first kept entry is %s", (_, firstKeptEntryId, expected) => {
    const { steps } = records(
      header(3),
      entry("1", null, user("a")),
      entry("dead", "1", say("no")),
      entry("x", "1", { type: "thinking_level_change", thinkingLevel: "off" }),
      entry("2", "x", assistant(call("t", "read"))),
      entry("3", "2", user("c")),
      entry("4", "3", result("t", "x")),
      entry("y", "4", { type: "label", targetId: "1" }),
      entry("5", "y", user("d")),
      entry("6", "5", compaction({ firstKeptEntryId }))
    )
    assert.deepInclude(steps.at(-1), { keptFrom: expected })
  })

  it.each<readonly [string, object, unknown]>([
    [
      "with a cache",
      { input: 3, output: 191, cacheRead: 20, cacheWrite: 1_684 },
      { prompt: 1_707, answer: 191, thoughts: 0, cached: 20, cacheWrite: 1_684 }
    ],
    ["nothing, because it was aborted", { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, undefined],
    ["a text", { input: "3", output: 1, cacheRead: 0, cacheWrite: 0 }, undefined]
  ])("use that is %s", (_, usage, expected) => {
    const [draft] = drafts(records(header(), message({ role: "assistant", content: [], usage })))
    assert.deepStrictEqual(draft?.usage, expected)
  })
})
