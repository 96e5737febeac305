import { assert, describe, it } from "@effect/vitest"
import { piReader } from "../../../../src/domain/transcripts/pi/PiReader.ts"
import { problemText } from "../../../../src/domain/transcripts/Problem.ts"
import { bad, reading } from "../../../support/reading.ts"

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
const result = (toolCallId: string, content: unknown, isError = false) =>
  message({ role: "toolResult", toolCallId, toolName: "read", content, isError })
const noted = (record: object, palimpsest: object) => ({ ...record, palimpsest })

describe("entries become messages", () => {
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
})
