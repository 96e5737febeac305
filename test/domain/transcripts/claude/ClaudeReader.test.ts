import { assert, describe, it } from "@effect/vitest"
import { payload } from "../../../../src/domain/content/Content.ts"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { claudeReader } from "../../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { problemText } from "../../../../src/domain/transcripts/Problem.ts"
import { corpus } from "../../../support/corpus.ts"
import { bad, contents, drafts, messageText, ok, reading, told } from "../../../support/reading.ts"

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
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }

describe("records become messages", () => {
  it.each<readonly [name: string, content: unknown, failed: boolean, expected: unknown]>([
    ["a single text block", text("out"), false, { output: "out" }],
    ["no content", undefined, false, { output: "" }],
    ["several blocks", [...text("a"), ...text("b")], false, { content: [...text("a"), ...text("b")] }],
    ["an image", [image], false, { content: [image] }],
    ["a failure in blocks", [...text("a"), image], true, { error: [...text("a"), image] }]
  ])("a result that is %s", (_, content, is_error, expected) => {
    const [, answer] = contents(
      records(assistant("2", null, "m", use("t", "Bash")), user("3", "2", result("t", content, { is_error })))
    )
    assert.deepStrictEqual(answer?.parts, [{ functionResponse: { id: "t", name: "Bash", response: expected } }])
  })

  it("a message has the ids of its lines and the time of the first; the folder is the first that is named", () => {
    const timestamp = "2026-02-10T21:11:56.846Z"
    const transcript = records(
      other("0", null, "progress", { cwd: "/first" }),
      user("1", "0", "go", { timestamp, cwd: "/second" }),
      assistant("2", "1", "m", text("a")),
      assistant("3", "2", "m", text("b"))
    )
    assert.deepStrictEqual(
      drafts(transcript).map(({ at, origin }) => [at, origin]),
      [
        [Date.parse(timestamp), { line: 2, ids: ["1"] }],
        [undefined, { line: 3, ids: ["2", "3"] }]
      ]
    )
    assert.deepStrictEqual([transcript.model, transcript.cwd, transcript.session], ["claude-x", "/first", "s"])
  })

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

describe("recorded use", () => {
  const counts = (input: unknown, written: unknown, cached: unknown, output: unknown, rest: object = {}) => ({
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: written,
      cache_read_input_tokens: cached,
      output_tokens: output,
      ...rest
    }
  })
  const hour = { cache_creation: { ephemeral_1h_input_tokens: 9 } }
  it.each<readonly [string, ReadonlyArray<object>, unknown]>([
    [
      "of repeated lines, the last",
      [counts(3, 13_835, 11_515, 1), counts(3, 13_835, 11_515, 13)],
      { prompt: 25_353, answer: 13, thoughts: 0, cached: 11_515, cacheWrite: 13_835 }
    ],
    [
      "with what a cache keeps for an hour",
      [counts(3, 10, 0, 1, hour)],
      { prompt: 13, answer: 1, thoughts: 0, cached: 0, cacheWrite: 10, cacheWriteHour: 9 }
    ],
    [
      "of which there cannot be more than was written",
      [counts(3, 5, 0, 1, hour)],
      { prompt: 8, answer: 1, thoughts: 0, cached: 0, cacheWrite: 5, cacheWriteHour: 5 }
    ],
    ["no cache", [{ usage: { input_tokens: 5, output_tokens: 2 } }], { prompt: 5, answer: 2, thoughts: 0, cached: 0 }],
    ["nothing at all", [counts(0, 0, 0, 0)], undefined],
    ["no usage", [{}], undefined],
    ["a sum that cannot be counted", [counts(2 ** 53 - 1, 2 ** 53 - 1, 0, 2)], undefined]
  ])("%s", (_, list, expected) => {
    const lines = list.map((one, n) => {
      const line = assistant(String(n + 1), String(n), "m", text("x"))
      return { ...line, message: { ...line.message, ...one } }
    })
    const [, draft] = drafts(records(user("0", null, "go"), ...lines))
    assert.deepStrictEqual([draft?.usage, draft?.model], [expected, "claude-x"])
  })

  it("lines that no model wrote have none", () => {
    const message = { id: "m", model: "<synthetic>", content: text("x") }
    assert.isUndefined(drafts(records({ ...assistant("2", null, "m", []), message }))[0]?.model)
  })
})

describe("invalid records", () => {
  it.each<readonly [name: string, records: ReadonlyArray<unknown>, where: string]>([
    ["no record", [5], ""],
    ["no message", [{ type: "user", uuid: "1", parentUuid: null }], "message:"],
    ["content that is a number", [user("1", null, 5)], "message.content:"],
    ["a block without type", [user("1", null, [{}])], "message.content[0]:"],
    ["a result that is a number", [user("1", null, result("t", 5))], "message.content[0].content:"],
    ["exact parts that are none", [user("1", null, "x", { palimpsest: { parts: [5] } })], "palimpsest.parts[0]:"],
    ["a parent that is the line itself", [user("1", "1", "x")], ""],
    ["a parent that is a later line", [user("1", "3", "x"), user("2", "1", "y"), user("3", "2", "z")], ""]
  ])("%s is a problem of the line", (_, list, where) => {
    const problem = bad(read(list.map((record) => JSON.stringify(record))))
    assert.deepStrictEqual([problem.line, problemText(problem).startsWith(where)], [1, true], problemText(problem))
    assert.notInclude(problemText(problem), "\n")
  })

  it("a lenient reader goes over a circle of parents", () => {
    const reader = claudeReader(true)
    for (const [index, record] of [user("1", "2", "a"), user("2", "1", "b")].entries())
      reader.line(record, JSON.stringify(record), index + 1)
    assert.deepStrictEqual(told(ok(runSync(reader.end()))), ["user: a", "user: b"])
  })
})

describe("lossless", () => {
  it.each([
    ["a text", (escape: string) => `[{"type":"text","text":"${escape}"}]`],
    ["a thought", (escape: string) => `[{"type":"thinking","thinking":"${escape}"}]`],
    ["a result", (escape: string) => `[{"type":"tool_result","tool_use_id":"t","content":"${escape}"}]`],
    [
      "a result in a block",
      (escape: string) => `[{"type":"tool_result","content":[{"type":"text","text":"${escape}"}]}]`
    ]
  ])("%s with an escaped surrogate is distinguished from one with bytes that are not UTF-8", (_, content) => {
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
  const said = (records: ReadonlyArray<object>) => {
    const transcript = ok(readRecords(records))
    return [drafts(transcript).map(messageText), transcript.skipped["queue-operation"]] as const
  }
  const opening = ["user: start", "model: Bash(t1 {})", 'user: Bash[t1] {"output":"ok"}']

  it("is placed where it was delivered: after the results sent with it, before the next answer", () => {
    const [first, second, third] = begin
    if (first === undefined || second === undefined || third === undefined) return assert.fail("expected three records")
    const records = [
      first,
      second,
      queue("enqueue", "also the tests"),
      queue("remove"),
      third,
      assistant("4", "3", "n", text("both"))
    ]
    assert.deepStrictEqual(said(records), [[...opening, "user: also the tests", "model: both"], undefined])
    const [, , , queued] = drafts(ok(readRecords(records)))
    assert.deepStrictEqual(queued?.origin, { line: 3, ids: [] })
    assert.strictEqual(queued?.at, Date.parse("2026-01-01T00:00:05Z"))
  })

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

  it("is left out on an abandoned branch", () => {
    const records = [
      ...begin,
      assistant("4", "3", "n", text("dead")),
      queue("enqueue", "dead too"),
      queue("remove"),
      assistant("5", "3", "o", text("alive"))
    ]
    assert.deepStrictEqual(said(records), [[...opening, "model: alive"], 2])
  })
})
