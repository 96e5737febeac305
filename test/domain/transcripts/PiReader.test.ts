import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import { isCall, isResponse, isText, isThought, payload } from "../../../src/domain/content/Content.ts"
import { piReader } from "../../../src/domain/transcripts/PiReader.ts"
import { problemText } from "../../../src/domain/transcripts/Problem.ts"
import { type Transcript } from "../../../src/domain/transcripts/Transcript.ts"
import { bad, contents, drafts, ok, reading, shape } from "../../support/reading.ts"
import { runsOf } from "../../support/runs.ts"

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
const texts = (transcript: Transcript) =>
  contents(transcript).flatMap((content) => content.parts.map((part) => part.text))

describe("wire shape", () => {
  it("maps text, thinking, toolCall, toolResult and image to parts of the Gemini API", () => {
    const transcript = ok(
      readRecords([
        header(),
        message({ role: "user", content: "as a text" }),
        message({ role: "user", content: [{ type: "image", data: "AA", mimeType: "image/png" }] }),
        assistant({ type: "thinking", thinking: "hm", thinkingSignature: "sig" }, call("t1", "read", { path: "a" })),
        result("t1", [{ type: "text", text: "content" }])
      ])
    )
    assert.deepStrictEqual(contents(transcript), [
      { role: "user", parts: [{ text: "as a text" }] },
      { role: "user", parts: [{ inlineData: { mimeType: "image/png", data: "AA" } }] },
      {
        role: "model",
        parts: [
          { text: "hm", thought: true, thoughtSignature: "sig" },
          { functionCall: { id: "t1", name: "read", args: { path: "a" } } }
        ]
      },
      { role: "user", parts: [{ functionResponse: { id: "t1", name: "read", response: { output: "content" } } }] }
    ])
    assert.deepStrictEqual([transcript.session, transcript.cwd, transcript.model], ["s", "/w", "m1"])
  })

  const two = [
    { type: "text", text: "a" },
    { type: "text", text: "b" }
  ]
  it.each([
    ["several blocks", two, false, { content: two }],
    ["no block", [], false, { output: "" }],
    ["a failure", [{ type: "text", text: "boom" }], true, { error: "boom" }]
  ])("a tool result with %s", (_, content, failed, expected) => {
    const transcript = ok(readRecords([header(), assistant(call("t", "read")), result("t", content, failed)]))
    assert.deepStrictEqual(contents(transcript)[1]?.parts[0]?.functionResponse?.response, expected)
  })

  it("joins consecutive tool results in one Content", () => {
    const transcript = ok(
      readRecords([
        header(),
        assistant(call("1", "a"), call("2", "b")),
        result("1", "x"),
        { type: "model_change", timestamp, provider: "p", modelId: "m2" },
        result("2", "y"),
        say("done")
      ])
    )
    assert.strictEqual(shape(transcript), "m2 u2 m1")
    assert.deepStrictEqual(transcript.skipped, { model_change: 1 })
  })

  it("keeps an aborted assistant message without parts", () => {
    assert.strictEqual(shape(ok(readRecords([header(), user("a"), assistant(), user("b")]))), "u1 m0 u1")
  })

  it("commands and custom messages have the author program; a branch summary is a summary", () => {
    const transcript = ok(
      readRecords([
        header(3),
        entry("1", null, message({ role: "bashExecution", command: "ls", output: "a\nb", exitCode: 2 })),
        entry("2", "1", message({ role: "bashExecution", command: "secret", output: "", excludeFromContext: true })),
        entry("3", "2", { type: "custom_message", customType: "x", content: "injected" }),
        entry("4", "3", { type: "branch_summary", fromId: "9", summary: "what was tried" }),
        entry("5", "4", { type: "custom", customType: "x", data: {} }),
        entry("6", "5", { type: "label", targetId: "1" })
      ])
    )
    assert.deepStrictEqual(
      drafts(transcript).map((draft) => [draft.author, draft.content.parts[0]?.text]),
      [
        ["program", "$ ls\na\nb\nexit code 2"],
        ["program", "injected"],
        ["summary", "what was tried"]
      ]
    )
    assert.deepStrictEqual(transcript.skipped, { "bash left out of context": 1, custom: 1, label: 1 })
  })

  it("drafts have time, line and entry ids", () => {
    const transcript = ok(
      readRecords([
        header(3),
        entry("1", null, assistant(call("a", "read"), call("b", "read"))),
        entry("2", "1", result("a", "x")),
        entry("3", "2", result("b", "y"))
      ])
    )
    assert.deepStrictEqual(
      drafts(transcript).map(({ at, origin }) => ({ at, origin })),
      [
        { at: Date.parse(timestamp), origin: { line: 2, ids: ["1"] } },
        { at: Date.parse(timestamp), origin: { line: 3, ids: ["2", "3"] } }
      ]
    )
  })
})

describe("versions", () => {
  it.each([[undefined], [1]])("version %s is a list", (version) => {
    assert.deepStrictEqual(texts(ok(readRecords([header(version), user("a"), say("b"), user("c")]))), ["a", "b", "c"])
  })

  it.each([[2], [3]])("version %s is a tree: follows the path to the last entry", (version) => {
    const transcript = ok(
      readRecords([
        header(version),
        entry("1", null, user("a")),
        entry("2", "1", say("left")),
        entry("3", "1", say("taken")),
        entry("4", "3", user("b"))
      ])
    )
    assert.deepStrictEqual(texts(transcript), ["a", "taken", "b"])
    assert.deepStrictEqual(transcript.skipped, { "dead branch": 1 })
  })

  it("a dangling parent ends the path", () => {
    const transcript = ok(readRecords([header(3), entry("1", null, user("a")), entry("3", "gone", user("b"))]))
    assert.deepStrictEqual(texts(transcript), ["b"])
  })

  it("cyclic parents are a problem that names the line", () => {
    const problem = bad(readRecords([header(3), entry("1", "2", user("a")), entry("2", "1", user("b"))]))
    assert.strictEqual(problem.line, 2)
    assert.include(problemText(problem), "parentId")
  })

  it.each<readonly [string, ReadonlyArray<unknown>, number, string]>([
    ["a newer version", [header(4)], 1, "version 4"],
    ["an invalid version", [{ ...header(), version: "x" }], 1, "version: expected"],
    ["no header", [user("a")], 1, "header"],
    ["an entry without id in a tree", [header(3), user("a")], 2, "id: expected"],
    ["no message", [header(), { type: "message", timestamp }], 2, "message: expected"],
    ["a number for content", [header(), message({ role: "user", content: 5 })], 2, "content: expected"],
    ["a call without a name", [header(), assistant({ type: "toolCall" })], 2, "content[0].name: expected"],
    ["a compaction without a summary", [header(), { type: "compaction", timestamp }], 2, "summary: expected"],
    ["no record", [header(), 7], 2, "expected an entry"]
  ])("%s is a problem", (_, records, line, says) => {
    const problem = bad(readRecords(records))
    assert.strictEqual(problem.line, line)
    assert.include(problemText(problem), says)
  })
})

describe("compaction", () => {
  const compaction = (rest: object) => ({ type: "compaction", timestamp, summary: "so far", tokensBefore: 99, ...rest })
  const keptFrom = (records: ReadonlyArray<unknown>) => {
    const step = ok(readRecords(records)).steps.find((one) => one._tag === "Compaction")
    assert.isDefined(step)
    return step === undefined ? undefined : [step.keptFrom, step.tokensBefore, step.insert[0]?.author]
  }

  it.each<readonly [string, string | undefined, number | undefined]>([
    ["a message", "3", 2],
    ["an entry that is no message: the next one", "x", 1],
    ["an entry that is not on the path", "dead", undefined],
    ["nothing", undefined, undefined]
  ])("firstKeptEntryId names %s", (_, firstKeptEntryId, expected) => {
    assert.deepStrictEqual(
      keptFrom([
        header(3),
        entry("1", null, user("a")),
        entry("dead", "1", say("no")),
        entry("x", "1", { type: "thinking_level_change", thinkingLevel: "off" }),
        entry("2", "x", say("b")),
        entry("3", "2", user("c")),
        entry("4", "3", compaction({ firstKeptEntryId })),
        entry("5", "4", say("d"))
      ]),
      [expected, 99, "summary"]
    )
  })

  it("an entry between results and the next message stands for the next message", () => {
    assert.deepStrictEqual(
      keptFrom([
        header(3),
        entry("1", null, assistant(call("t", "read"))),
        entry("2", "1", result("t", "x")),
        entry("3", "2", { type: "label", targetId: "1" }),
        entry("4", "3", user("c")),
        entry("5", "4", compaction({ firstKeptEntryId: "3" }))
      ])?.[0],
      2
    )
  })

  it("version 1 names the kept record by its number", () => {
    assert.deepStrictEqual(
      keptFrom([header(), user("a"), say("b"), user("c"), compaction({ firstKeptEntryIndex: 2 })]),
      [1, 99, "summary"]
    )
  })
})

describe("recorded use", () => {
  const draft = (rest: object) =>
    drafts(ok(readRecords([header(), message({ role: "assistant", model: "m1", content: [], ...rest })])))[0]
  const usage = (input: unknown, output: unknown, cacheRead: unknown, cacheWrite: unknown) => ({
    usage: { input, output, cacheRead, cacheWrite, cost: { total: 1 } }
  })

  it.each<readonly [string, object, unknown]>([
    [
      "with a cache",
      usage(3, 191, 20, 1_684),
      { prompt: 1_707, answer: 191, thoughts: 0, cached: 20, cacheWrite: 1_684 }
    ],
    ["nothing, because it was aborted", usage(0, 0, 0, 0), undefined],
    ["unknown", {}, undefined],
    ["a text", usage("3", 1, 0, 0), undefined]
  ])("%s", (_, rest, expected) => {
    assert.deepStrictEqual(draft(rest)?.usage, expected)
  })

  it("the model is the one that answered; user messages have none", () => {
    const transcript = ok(
      readRecords([header(), { type: "model_change", timestamp, provider: "p", modelId: "m2" }, user("a"), say("b")])
    )
    assert.deepStrictEqual(
      drafts(transcript).map((one) => one.model),
      [undefined, "m1"]
    )
  })
})

describe("our own records", () => {
  it("exact parts replace the entry's own form", () => {
    const part = { text: "a", later: [1] }
    const transcript = ok(
      readRecords([
        header(3),
        { ...entry("1", null, user("native")), palimpsest: { parts: [part] } },
        {
          ...entry("2", "1", { type: "compaction", summary: "native", tokensBefore: 5 }),
          palimpsest: { parts: [part] }
        }
      ])
    )
    assert.deepStrictEqual(
      contents(transcript).map((content) => content.parts),
      [[part], [part]]
    )
  })

  it("invalid exact parts are a problem that names the line", () => {
    const problem = bad(readRecords([header(), { ...user("a"), palimpsest: { parts: {} } }]))
    assert.strictEqual(problem.line, 2)
    assert.include(problemText(problem), "palimpsest.parts")
  })

  it("entries state whether they continue a message or begin one, never of another role", () => {
    const transcript = ok(
      readRecords([
        header(),
        assistant(call("1", "a"), call("2", "b"), call("3", "c")),
        result("1", "x"),
        { ...user("note"), palimpsest: { message: "same" } },
        result("2", "y"),
        { ...result("3", "z"), palimpsest: { message: "new" } },
        { ...say("done"), palimpsest: { message: "same" } }
      ])
    )
    assert.strictEqual(shape(transcript), "m3 u2 u1 u1 m1")
  })

  it("an answer after a repeated one is not part of it", () => {
    const transcript = ok(
      readRecords([
        header(3),
        entry("1", null, assistant(call("a", "read"), call("b", "read"))),
        entry("2", "1", result("a", "x")),
        entry("3", "2", { type: "compaction", summary: "s", firstKeptEntryId: "3", tokensBefore: 1 }),
        { ...entry("4", "3", result("a", "x")), palimpsest: { again: "2" } },
        entry("5", "4", result("b", "y"))
      ])
    )
    assert.strictEqual(shape(transcript), "m2 u1 C u1")
    assert.deepStrictEqual(
      transcript.steps.flatMap((step) => (step._tag === "Compaction" ? [step.keptFrom] : [])),
      [1]
    )
  })

  it("a compaction records that the user requested it; missing token counts stay missing", () => {
    const cut = {
      ...entry("2", "1", { type: "compaction", summary: "s", tokensBefore: 0 }),
      palimpsest: { trigger: "manual" }
    }
    const step = ok(readRecords([header(3), entry("1", null, user("a")), cut])).steps[1]
    assert.deepStrictEqual(step?._tag === "Compaction" ? [step.trigger, step.tokensBefore] : [], ["manual", undefined])
  })
})

describe("lossless", () => {
  it.each([
    ["numbers beyond 2^53", '{"n":12345678901234567890}'],
    ["number-like keys", '{"2":"b","1":"a"}'],
    ["__proto__", '{"__proto__":{"x":1}}'],
    ["spelling", '{ "a" : "\\u00e9" }']
  ])("arguments with %s come back exactly", (_, args) => {
    const line = `{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"t","name":"T","arguments":${args},"thoughtSignature":"s"}]}}`
    const draft = drafts(ok(read([JSON.stringify(header()), line])))[0]
    const part = draft?.content.parts[0]
    assert.isDefined(part)
    if (part === undefined) return
    assert.strictEqual(
      payload(part, draft?.source?.["0"]).text,
      `{"functionCall":{"id":"t","name":"T","args":${args}},"thoughtSignature":"s"}`
    )
  })

  it("several blocks of a result round-trip exactly", () => {
    const blocks = '[{"type":"text","text":"a"},{"2":1,"1":2.0,"type":"text","text":"b"}]'
    const line = `{"type":"message","message":{"role":"toolResult","toolCallId":"t","toolName":"T","content":${blocks}}}`
    const draft = drafts(ok(read([JSON.stringify(header()), line])))[0]
    assert.strictEqual(
      draft?.source?.["0"],
      `{"functionResponse":{"id":"t","name":"T","response":{"content":${blocks}}}}`
    )
  })
})

it.prop(
  "generated sessions keep texts, calls and responses in order, in a list and in a tree with dead branches",
  {
    turns: Schema.Array(
      Schema.Struct({
        ask: Schema.String,
        say: Schema.String,
        outputs: Schema.Array(Schema.String),
        dead: Schema.Boolean
      })
    ),
    version: Schema.Literals([1, 2, 3])
  },
  ({ turns, version }) => {
    const records: Array<object> = [header(version)]
    const expected: Array<string> = []
    let parent: string | null = null
    const add = (record: object) => {
      const id = `i${records.length}`
      records.push(version === 1 ? record : entry(id, parent, record))
      return id
    }
    for (const { ask, dead, outputs, say } of turns) {
      if (dead && version > 1) add(user("never seen"))
      parent = add(user(ask))
      const calls = outputs.map((_, index) => call(`c${records.length}.${index}`, "read", { index }))
      parent = add(assistant({ type: "text", text: say }, ...calls))
      expected.push(ask, say, ...calls.map((one) => `call ${one.id}`))
      for (const [index, output] of outputs.entries()) {
        const id = calls[index]?.id ?? ""
        parent = add(result(id, [{ type: "text", text: output }]))
        expected.push(`response ${id} ${output}`)
      }
    }
    const found = drafts(ok(readRecords(records))).flatMap(({ content, source }) =>
      content.parts.map((part, index) => {
        if (isCall(part)) return `call ${part.functionCall.id}`
        if (!isResponse(part)) return part.text
        // A text that is no Unicode comes back as the JSON it was spelled in.
        const { form, text } = payload(part, source?.[String(index)])
        const output = form === "text" ? text : JSON.parse(text).functionResponse.response.output
        return `response ${part.functionResponse.id} ${output}`
      })
    )
    assert.deepStrictEqual(found, expected)
  },
  { arbitrary: { runs: runsOf(300) } }
)

it("real file: every message, call, result and text is read", () => {
  const lines = gunzipSync(readFileSync(new URL("../../fixtures/sessions/pi-1019-lines.jsonl.gz", import.meta.url)))
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "")
  const transcript = ok(read(lines))
  const records = lines.map((line) => JSON.parse(line))
  const messages = records.filter((record) => record.type === "message").map((record) => record.message)
  const blocks = messages.filter((one) => one.role !== "toolResult").flatMap((one) => one.content)
  const parts = contents(transcript).flatMap((content) => [...content.parts])
  assert.strictEqual(lines.length, 1019)
  assert.deepStrictEqual(
    parts.filter(isCall).map((part) => part.functionCall.id),
    blocks.filter((block) => block.type === "toolCall").map((block) => block.id)
  )
  assert.deepStrictEqual(
    parts.filter(isText).map((part) => part.text),
    blocks.filter((block) => block.type === "text").map((block) => block.text)
  )
  assert.deepStrictEqual(
    parts.filter(isResponse).map((part) => [part.functionResponse.id, payload(part).text]),
    messages.filter((one) => one.role === "toolResult").map((one) => [one.toolCallId, one.content[0]?.text ?? ""])
  )
  assert.strictEqual(parts.filter(isThought).length, blocks.filter((block) => block.type === "thinking").length)
  const runs = messages.filter((one, index) => one.role !== "toolResult" || messages[index - 1]?.role !== "toolResult")
  assert.strictEqual(transcript.steps.length, runs.length)
  const answers = messages.filter((one) => one.role === "assistant")
  assert.deepStrictEqual(
    drafts(transcript)
      .filter((draft) => draft.content.role === "model")
      .map((draft) => [draft.model, draft.usage]),
    answers.map(({ model, usage: { cacheRead: cached, cacheWrite, input, output: answer } }) => [
      model,
      input + cached + cacheWrite + answer === 0
        ? undefined
        : { prompt: input + cached + cacheWrite, answer, thoughts: 0, cached, cacheWrite }
    ])
  )
  assert.deepStrictEqual(transcript.skipped, {
    model_change: records.filter((record) => record.type === "model_change").length,
    thinking_level_change: records.filter((record) => record.type === "thinking_level_change").length
  })
})
