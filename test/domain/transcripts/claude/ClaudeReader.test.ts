import { assert, describe, it } from "@effect/vitest"
import { payload } from "../../../../src/domain/content/Content.ts"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { claudeReader } from "../../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { corpus } from "../../../support/corpus.ts"
import { drafts, ok, reading, told } from "../../../support/reading.ts"

/** What is true of Claude Code's records alone: a tree of lines, a queue, blocks. `agentFormats.test.ts` has what holds for every agent. */

const read = reading(claudeReader)
const readRecords = (records: ReadonlyArray<object>) => read(records.map((record) => JSON.stringify(record)))

type Extra = Readonly<Record<string, unknown>>
const user = (uuid: string, parentUuid: string | null, content: unknown, extra: Extra = {}) => ({
  parentUuid,
  isSidechain: false,
  type: "user",
  message: { role: "user", content },
  uuid,
  sessionId: "s",
  ...extra
})
const assistant = (uuid: string, parentUuid: string | null, id: string, content: unknown, extra: Extra = {}) => ({
  parentUuid,
  isSidechain: false,
  type: "assistant",
  message: { id, role: "assistant", model: "claude-x", content },
  uuid,
  sessionId: "s",
  ...extra
})
const other = (uuid: string, parentUuid: string | null, type: string, extra: Extra = {}) => ({
  parentUuid,
  type,
  uuid,
  sessionId: "s",
  ...extra
})
const text = (value: string) => [{ type: "text", text: value }]
const use = (id: string, name: string, input: unknown = {}) => [{ type: "tool_use", id, name, input }]
const result = (tool_use_id: string, content: unknown, extra: Extra = {}) => [
  { type: "tool_result", tool_use_id, content, ...extra }
]

const records = (...list: ReadonlyArray<object>) => ok(readRecords(list))

describe("records become messages", () => {
  it("marks of another form are not ours, and keys beside role and parts cannot change these", () => {
    for (const palimpsest of [[], "x", { author: "user" }, { usage: { prompt: -1 } }]) {
      const [draft] = drafts(records(user("1", null, "x", { palimpsest })))
      assert.deepStrictEqual(
        [draft?.author, draft?.usage, draft?.content],
        [undefined, undefined, { role: "user", parts: [{ text: "x" }] }]
      )
    }
    const [draft] = drafts(
      records(user("1", null, "x", { palimpsest: { keys: { hint: 1, role: "model", parts: [] } } }))
    )
    assert.deepStrictEqual(draft?.content, { role: "user", parts: [{ text: "x" }], hint: 1 })
  })
})

describe("what the model was shown beside a message", () => {
  const beside = (uuid: string, parent: string, type: string, rest: object) =>
    other(uuid, parent, "attachment", { attachment: { type, ...rest } })
  const attachments = corpus<readonly [kind: string, rest: object, shown: string]>("claude-attachments")
  it.each(attachments)("%s", (kind, rest, shown) => {
    assert.deepStrictEqual(told(records(user("1", null, "go"), beside("2", "1", kind, rest), user("3", "2", "on"))), [
      "user: go",
      `program: ${shown}`,
      "user: on"
    ])
  })

  it("stands after the results that come with it, and what shows nothing is counted", () => {
    const transcript = records(
      assistant("1", null, "m", use("t1", "A")),
      beside("2", "1", "nested_memory", { path: "/m", content: { content: "A" } }),
      assistant("3", "2", "m", use("t2", "B")),
      user("4", "3", result("t1", "one")),
      beside("5", "4", "hook_success", { hookEvent: "PostToolUse", content: "unseen" }),
      beside("6", "5", "edited_text_file", { filename: "/a", snippet: "B" }),
      user("7", "6", result("t2", "two")),
      beside("8", "7", "toString", {}),
      assistant("9", "8", "n", text("done"))
    )
    assert.deepStrictEqual(told(transcript), [
      "model: A(t1 {}) | B(t2 {})",
      'user: A[t1] {"output":"one"} | B[t2] {"output":"two"}',
      "program: Contents of /m:\n\nA | /a was changed outside the conversation:\n\nB",
      "model: done"
    ])
    assert.deepStrictEqual(transcript.skipped, { "attachment: hook_success": 1, "attachment: toString": 1 })
  })
})

describe("what was shown beside the chain", () => {
  it("stands after the result that it hangs on, also where it hangs on another that does", () => {
    const note = (uuid: string, parent: string, content: string) =>
      other(uuid, parent, "attachment", {
        attachment: { type: "nested_memory", path: `/${content}`, content: { content } }
      })
    const transcript = records(
      user("1", null, "go"),
      assistant("2", "1", "m", use("t1", "A")),
      user("3", "2", result("t1", "one")),
      note("4", "3", "first"),
      note("5", "4", "second"),
      note("6", "5", "third"),
      assistant("7", "3", "n", text("done"))
    )
    assert.deepStrictEqual(told(transcript), [
      "user: go",
      "model: A(t1 {})",
      'user: A[t1] {"output":"one"}',
      "program: Contents of /first:\n\nfirst | Contents of /second:\n\nsecond | Contents of /third:\n\nthird",
      "model: done"
    ])
  })
})

it("invalid records a lenient reader goes over a circle of parents", () => {
  const reader = claudeReader(true)
  for (const [index, record] of [user("1", "2", "a"), user("2", "1", "b")].entries())
    reader.line(record, JSON.stringify(record), index + 1)
  assert.deepStrictEqual(told(ok(runSync(reader.end()))), ["user: a", "user: b"])
})

it.each([
  ["a text", (escape: string) => `[{"type":"text","text":"${escape}"}]`],
  ["a thought", (escape: string) => `[{"type":"thinking","thinking":"${escape}"}]`],
  ["a result", (escape: string) => `[{"type":"tool_result","tool_use_id":"t","content":"${escape}"}]`],
  ["a result in a block", (escape: string) => `[{"type":"tool_result","content":[{"type":"text","text":"${escape}"}]}]`]
])("lossless %s with an escaped surrogate is distinguished from one with bytes that are not UTF-8", (_, content) => {
  const draftWith = (spelled: string) =>
    drafts(ok(read([`{"type":"user","uuid":"1","parentUuid":null,"message":{"content":${content(spelled)}}}`])))[0]
  const spelled = draftWith("\\udc80")
  const raw = draftWith("\uDC80")
  assert.isDefined(spelled?.source?.["0"])
  assert.deepStrictEqual(JSON.parse(spelled?.source?.["0"] ?? ""), spelled?.content.parts[0])
  const part = raw?.content.parts[0]
  assert.isDefined(part)
  if (part !== undefined) assert.strictEqual(payload(part, raw?.source?.["0"]).text, "\uDC80")
})

describe("text the user typed while the agent worked", () => {
  const queue = (operation: string, content?: unknown) => ({
    type: "queue-operation",
    operation,
    timestamp: "2026-01-01T00:00:05Z",
    sessionId: "s",
    ...(content === undefined ? {} : { content })
  })
  const begin = [
    user("1", null, "start"),
    assistant("2", "1", "m", use("t1", "Bash")),
    user("3", "2", result("t1", "ok"))
  ]

  it("is placed by delivery when there are pauses", () => {
    const pauses = (deliveries: number) => {
      const reader = claudeReader()
      const queued = Array.from({ length: deliveries }, () => [queue("enqueue", "start"), queue("remove")]).flat()
      for (const [index, record] of [...begin, ...queued, assistant("4", "3", "n", text("start"))].entries()) {
        assert.isUndefined(reader.line(record, JSON.stringify(record), index + 1))
      }
      const work = reader.end()
      let count = 0
      while (work.next().done !== true) count += 1
      return count
    }
    // One where it is put in its place, one where it is read.
    assert.strictEqual(pauses(50) - pauses(0), 100)
  })
})
