import { assert, describe, it } from "@effect/vitest"
import type { Part } from "../../../src/domain/content/Content.ts"
import type { Draft } from "../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { claudeReader } from "../../../src/domain/transcripts/ClaudeReader.ts"
import { writeClaude } from "../../../src/domain/transcripts/ClaudeWriter.ts"
import { isJson, type Json } from "../../../src/domain/transcripts/JsonRecord.ts"
import { piReader } from "../../../src/domain/transcripts/PiReader.ts"
import { writePi } from "../../../src/domain/transcripts/PiWriter.ts"
import type { Step, Transcript } from "../../../src/domain/transcripts/Transcript.ts"
import { runsOf } from "../../support/runs.ts"
import { sessionNames, sessionText } from "../../support/sessions.ts"
import { counted, draftsIn, linesOf, readLines, told, transcripts, viewOf } from "../../support/transcripts.ts"

const session = "4d5611e5-241a-462a-8d15-5122611a9569"
const transcript = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}): Transcript => ({
  format: "palimpsest",
  session,
  cwd: "/w",
  model: undefined,
  steps,
  skipped: {},
  ...rest
})
const message = (draft: Draft): Step => ({ _tag: "Message", draft })
const user = (...parts: ReadonlyArray<Part>): Draft => ({ content: { role: "user", parts } })
const model = (...parts: ReadonlyArray<Part>): Draft => ({ content: { role: "model", parts }, model: "claude-x" })
const says = (text: string): Step => message(user({ text }))
const call = (id?: string, name = "Read"): Part => ({
  functionCall: { ...(id === undefined ? {} : { id }), name, args: { a: 1 } }
})
const result = (response: unknown, id?: string): Part => ({
  functionResponse: { ...(id === undefined ? {} : { id }), name: "Read", response }
})
const summary = (text: string): Draft => ({ content: { role: "user", parts: [{ text }] }, author: "summary" })
const compaction = (
  insert: ReadonlyArray<Draft>,
  keptFrom?: number,
  rest: { trigger?: "manual" | "auto"; tokensBefore?: number } = {}
): Step => ({
  _tag: "Compaction",
  insert,
  keptFrom,
  trigger: rest.trigger ?? "auto",
  tokensBefore: rest.tokensBefore
})

const written = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}) =>
  runSync(writeClaude(transcript(steps, rest)))
const records = (steps: ReadonlyArray<Step>, rest: Partial<Transcript> = {}): ReadonlyArray<Json> =>
  written(steps, rest).lines.map((line) => {
    const value: unknown = JSON.parse(line)
    return isJson(value) ? value : {}
  })
const messageIn = (record: Json | undefined): Json => (isJson(record?.message) ? record.message : {})
const contentIn = (record: Json | undefined): unknown => messageIn(record).content
const read = (steps: ReadonlyArray<Step>): Transcript =>
  readLines(claudeReader(), linesOf(writeClaude, transcript(steps)))
/** A summary of a model, with the note in front. */
const notedText = (text: string) => [foreignNotes.summary, text].map((one) => ({ type: "text", text: one }))
/** The records that carry exact parts. */
const exact = (all: ReadonlyArray<Json>): number =>
  all.filter((record) => isJson(record.palimpsest) && "parts" in record.palimpsest).length

describe("records", () => {
  it("form a chain of lines as Claude Code writes them", () => {
    const all = records([
      message({ ...user({ text: "go" }), at: 1_000 }),
      message({
        ...model({ text: "hm", thought: true, thoughtSignature: "sig" }, { text: "Look." }, call("toolu_1")),
        usage: { prompt: 60, cached: 20, cacheWrite: 30, answer: 7, thoughts: 0 }
      }),
      message(user(result({ output: "out" }, "toolu_1")))
    ])
    const uuids = all.map((record) => record.uuid)
    assert.strictEqual(new Set(uuids).size, 3)
    for (const uuid of uuids) assert.match(String(uuid), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    assert.deepStrictEqual(
      all.map((record) => record.parentUuid),
      [null, uuids[0], uuids[1]]
    )
    for (const { cwd, isSidechain, sessionId, timestamp, userType } of all) {
      assert.deepStrictEqual(
        [cwd, isSidechain, sessionId, timestamp, userType],
        ["/w", false, session, "1970-01-01T00:00:01.000Z", "external"]
      )
    }
    assert.deepStrictEqual(all[0]?.message, { role: "user", content: "go" })
    assert.deepStrictEqual(messageIn(all[1]), {
      model: "claude-x",
      id: `msg_${String(uuids[1]).replaceAll("-", "")}`,
      type: "message",
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "sig" },
        { type: "text", text: "Look." },
        { type: "tool_use", id: "toolu_1", name: "Read", input: { a: 1 } }
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: { input_tokens: 10, cache_creation_input_tokens: 30, cache_read_input_tokens: 20, output_tokens: 7 }
    })
    assert.deepStrictEqual(contentIn(all[2]), [{ type: "tool_result", tool_use_id: "toolu_1", content: "out" }])
    assert.isTrue(all.every((record) => !("palimpsest" in record)))
  })

  it("uuids come from the origin where free, else they are deterministic", () => {
    const known = "dd3cc2e6-a191-4331-a0f0-2473e6d7692d"
    const from = (...ids: ReadonlyArray<string>): Step => message({ ...user({ text: "x" }), origin: { line: 1, ids } })
    const steps = [from("a1b2c3d4"), from(known), from(known), from()]
    const uuids = records(steps).map((record) => record.uuid)
    assert.strictEqual(uuids[1], known)
    assert.strictEqual(new Set(uuids).size, 4)
    assert.deepStrictEqual(
      records(steps).map((record) => record.uuid),
      uuids
    )
  })

  it("an id is not taken from a later message that brings it", () => {
    const taken = String(records([says("x")])[0]?.uuid)
    const uuids = records([says("x"), message({ ...user({ text: "y" }), origin: { line: 1, ids: [taken] } })])
    assert.strictEqual(uuids[1]?.uuid, taken)
    assert.notStrictEqual(uuids[0]?.uuid, taken)
  })

  it.each<readonly [string, ReadonlyArray<number | undefined>, ReadonlyArray<number>]>([
    ["the last that is known", [5_000, undefined, 9_000], [5_000, 5_000, 9_000]],
    ["before all, the first", [undefined, 7_000], [7_000, 7_000]],
    ["1970 where none is known", [undefined], [0]],
    ["none that no calendar has", [1_000, 1e300], [1_000, 1_000]]
  ])("times: %s", (_, times, expected) => {
    const steps = times.map((at) => message({ ...user({ text: "x" }), ...(at === undefined ? {} : { at }) }))
    assert.deepStrictEqual(
      records(steps).map((record) => Date.parse(String(record.timestamp))),
      expected
    )
  })

  it("an empty conversation has no lines; a session without a name gets a deterministic one", () => {
    assert.deepStrictEqual(written([]), { lines: [], unheld: {} })
    const [one] = records([says("x")], { session: undefined, cwd: undefined })
    const [other] = records([says("x")], { session: undefined, cwd: undefined })
    assert.match(String(one?.sessionId), /^[0-9a-f-]{36}$/)
    assert.strictEqual(one?.sessionId, other?.sessionId)
    assert.isFalse(one !== undefined && "cwd" in one)
  })
})

describe("answers of the model", () => {
  const unsigned: Draft = { content: model({ text: "x" }).content }
  it.each<readonly [string, Draft, string | undefined, string]>([
    ["its own", model({ text: "x" }), "claude-y", "claude-x"],
    ["else that of the conversation", unsigned, "claude-y", "claude-y"],
    ["else the one of lines that no model wrote", unsigned, undefined, "<synthetic>"]
  ])("the model is %s", (_, draft, known, expected) => {
    assert.strictEqual(messageIn(records([message(draft)], { model: known })[0]).model, expected)
  })

  it.each<readonly [string, Part, string | undefined, number, Readonly<Record<string, number>>]>([
    ["with a signature of Claude", { text: "t", thought: true, thoughtSignature: "s" }, "claude-x", 1, {}],
    ["with a signature of nobody knows whom", { text: "t", thought: true, thoughtSignature: "s" }, undefined, 1, {}],
    ["of another model", { text: "t", thought: true, thoughtSignature: "s" }, "gemini-y", 0, { thoughts: 1 }],
    ["without a signature", { text: "t", thought: true }, "claude-x", 0, { thoughts: 1 }]
  ])("a thought %s", (_, part, own, blocks, unheld) => {
    const draft = { content: model(part, { text: "x" }).content, ...(own === undefined ? {} : { model: own }) }
    const out = written([message(draft)])
    const content = contentIn(records([message(draft)])[0])
    assert.strictEqual(Array.isArray(content) ? content.length : -1, blocks + 1)
    assert.deepStrictEqual(out.unheld, unheld)
    assert.deepStrictEqual(told(draftsIn(read([message(draft)]))), told([draft]))
  })

  it("an empty answer is marked, and is read as empty", () => {
    const steps = [says("go"), message(model())]
    assert.deepStrictEqual(contentIn(records(steps)[1]), [{ type: "text", text: "(no content)" }])
    assert.deepStrictEqual(draftsIn(read(steps))[1]?.content, { role: "model", parts: [] })
  })
})

describe("calls and results", () => {
  const pair = (id: string | undefined, response: unknown) => [
    message(model(call(id))),
    message(user(result(response, id)))
  ]
  const idsIn = (all: ReadonlyArray<Json>): ReadonlyArray<unknown> =>
    all.flatMap((record) => {
      const content = contentIn(record)
      return Array.isArray(content) ? content.map((block) => block.id ?? block.tool_use_id) : []
    })

  it.each<readonly [string, string | undefined, boolean]>([
    ["an id that the API takes", "call_0-1", true],
    ["one that it does not take", "call|fc_1", false],
    ["an empty one", "", false],
    ["none", undefined, false]
  ])("%s", (_, id, native) => {
    const steps = pair(id, { output: "x" })
    const [made, answered] = idsIn(records(steps))
    assert.strictEqual(made, answered)
    if (native) assert.strictEqual(made, id)
    else assert.match(String(made), /^toolu_[0-9a-f]{24}$/)
    assert.strictEqual(exact(records(steps)), native ? 0 : 2)
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })

  it("a repeated id is renamed for the API, and restored on reading", () => {
    const steps = [...pair("call_0", { output: "a" }), ...pair("call_0", { output: "b" })]
    const found = idsIn(records(steps))
    assert.strictEqual(new Set(found).size, 2)
    assert.deepStrictEqual([found[0], found[1]], ["call_0", "call_0"])
    assert.strictEqual(found[2], found[3])
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })

  it.each<readonly [string, unknown, Json, number]>([
    ["an output", { output: "x" }, { content: "x" }, 0],
    ["an empty output", { output: "" }, { content: "" }, 0],
    ["an error", { error: "x" }, { content: "x", is_error: true }, 0],
    ["an error without a word", { error: "" }, { content: "(no content)", is_error: true }, 1],
    [
      "blocks",
      {
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" }
        ]
      },
      {
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" }
        ]
      },
      0
    ],
    [
      "an image as Pi writes it",
      {
        content: [
          { type: "text", text: "a" },
          { type: "image", data: "AA", mimeType: "image/png" }
        ]
      },
      {
        content: [
          { type: "text", text: "a" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }
        ]
      },
      1
    ],
    ["one text under another key", { result: "x" }, { content: "x" }, 1],
    ["anything else", { rows: [1], n: 2 }, { content: '{"rows":[1],"n":2}' }, 1],
    ["nothing", undefined, { content: "" }, 1]
  ])("a result that is %s", (_, response, expected, beside) => {
    const steps = [message(model(call("t"))), message(user(result(response, "t")))]
    const all = records(steps)
    assert.deepStrictEqual(contentIn(all[1]), [{ type: "tool_result", tool_use_id: "t", ...expected }])
    assert.strictEqual(exact(all), beside)
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })

  it("results come first, as the API requires, and are read in their original order", () => {
    const steps = [
      message(model(call("t"))),
      message(user({ text: "note" }, result({ output: "x" }, "t"), { text: "" }))
    ]
    const content = contentIn(records(steps)[1])
    assert.deepStrictEqual(Array.isArray(content) ? content.map((block) => block.type) : [], ["tool_result", "text"])
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })

  it("results of one turn in two messages stay two messages", () => {
    const steps = [
      message(model(call("a"), call("b"))),
      message(user(result({ output: "1" }, "a"))),
      message(user(result({ output: "2" }, "b")))
    ]
    assert.strictEqual(read(steps).steps.length, 3)
  })
})

describe("counts what Claude Code will not show", () => {
  const image: Part = { inlineData: { mimeType: "image/png", data: "AA" } }
  it.each<readonly [string, ReadonlyArray<Step>, Readonly<Record<string, number>>]>([
    [
      "nothing of an ordinary talk",
      [says("a"), message(model({ text: "b" }, call("t"))), message(user(result({ output: "x" }, "t")))],
      {}
    ],
    [
      "images and PDF are seen",
      [message(user(image, { inlineData: { mimeType: "application/pdf", data: "AA" } }))],
      {}
    ],
    ["sound is not", [message(user({ inlineData: { mimeType: "audio/wav", data: "AA" } }))], { media: 1 }],
    ["media of the model are not", [message(model(image))], { media: 1 }],
    [
      "files on the web are seen",
      [message(user({ fileData: { mimeType: "image/png", fileUri: "https://x.example/a" } }))],
      {}
    ],
    ["others are not", [message(user({ fileData: { mimeType: "image/png", fileUri: "gs://a/b" } }))], { files: 1 }],
    ["a result without its call", [message(user(result({ output: "x" }, "t")))], { "results without a call": 1 }],
    [
      "a result that comes too late",
      [
        message(model(call("t"))),
        says("hm"),
        message(model({ text: "?" })),
        message(user(result({ output: "x" }, "t")))
      ],
      { "results without a call": 1 }
    ],
    ["the user's calls", [message(user(call("t")))], { "calls of the user": 1 }],
    ["the model's results", [message(model(result({ output: "x" }, "t")))], { "results of the model": 1 }],
    [
      "signatures of calls and texts",
      [message(model({ ...call("t"), thoughtSignature: "s" }, { text: "x", thoughtSignature: "s" }))],
      { signatures: 2 }
    ],
    ["unknown parts", [message(model({ executableCode: {} }))], { "unknown parts": 1 }],
    [
      "media in results",
      [
        message(model(call("t"))),
        message(user({ functionResponse: { id: "t", name: "Read", response: { output: "x" }, parts: [] } }))
      ],
      { "media in results": 1 }
    ],
    [
      "once, however often it is written",
      [message(model({ executableCode: {} })), compaction([summary("s")], 0), compaction([summary("s")], 0)],
      { "unknown parts": 1 }
    ]
  ])("%s", (_, steps, expected) => {
    assert.deepStrictEqual(written(steps).unheld, expected)
    assert.deepStrictEqual(told(viewOf(read(steps))), told(viewOf(transcript(steps))))
  })
})

describe("authors", () => {
  it.each<readonly [string, Draft, Json]>([
    ["a program", { ...user({ text: "x" }), author: "program" }, { isMeta: true }],
    [
      "the environment",
      { ...user({ text: "x" }), author: "environment" },
      { isMeta: true, palimpsest: { author: "environment" } }
    ],
    [
      "a summary that the model said",
      { ...model({ text: "x" }), author: "summary" },
      { palimpsest: { author: "summary" } }
    ]
  ])("%s", (_, draft, expected) => {
    const [record] = records([message(draft)])
    for (const [key, value] of Object.entries(expected)) assert.deepStrictEqual(record?.[key], value)
    assert.strictEqual(draftsIn(read([message(draft)]))[0]?.author, draft.author)
  })

  it("a summary in the middle begins with a note that the user did not write it", () => {
    const steps = [says("a"), message(summary("so far"))]
    assert.deepStrictEqual(contentIn(records(steps)[1]), [
      { type: "text", text: foreignNotes.summary },
      { type: "text", text: "so far" }
    ])
    assert.strictEqual(exact(records(steps)), 0)
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })

  it("a user who writes that note stays the user", () => {
    const steps = [message(user({ text: foreignNotes.summary }, { text: "x" })), says(foreignNotes.program)]
    assert.deepStrictEqual(told(draftsIn(read(steps))), told(draftsIn(transcript(steps))))
  })
})

describe("compactions", () => {
  const talk = [says("a"), message(model({ text: "b" })), says("c")]
  const kinds = (steps: ReadonlyArray<Step>): ReadonlyArray<string> =>
    records(steps).map((record) =>
      record.subtype === "compact_boundary"
        ? "boundary"
        : `${record.isCompactSummary === true ? "summary " : ""}${JSON.stringify(contentIn(record))}`
    )

  it("write a boundary with its logical parent, then the summary", () => {
    const all = records([
      ...talk,
      compaction([summary("s")], undefined, { trigger: "manual", tokensBefore: 99 }),
      says("d")
    ])
    const [boundary, second, next] = all.slice(3)
    assert.deepStrictEqual(
      [boundary?.type, boundary?.subtype, boundary?.parentUuid, boundary?.logicalParentUuid, boundary?.compactMetadata],
      ["system", "compact_boundary", null, all[2]?.uuid, { trigger: "manual", preTokens: 99 }]
    )
    assert.deepStrictEqual(
      [second?.parentUuid, second?.isCompactSummary, contentIn(second), next?.parentUuid],
      [boundary?.uuid, true, notedText("s"), second?.uuid]
    )
  })

  it("repeat kept messages behind the boundary, which are read once", () => {
    const steps = [...talk, compaction([summary("s")], 1), says("d")]
    assert.deepStrictEqual(kinds(steps), [
      '"a"',
      '[{"type":"text","text":"b"}]',
      '"c"',
      "boundary",
      `summary ${JSON.stringify(notedText("s"))}`,
      '[{"type":"text","text":"b"}]',
      '"c"',
      '"d"'
    ])
    assert.deepStrictEqual(
      read(steps).steps.map((step) => (step._tag === "Compaction" ? step.keptFrom : step.draft.content.parts[0]?.text)),
      ["a", "b", "c", 1, "d"]
    )
  })

  it.each<readonly [string, ReadonlyArray<Step>]>([
    ["manual, with tokens", [...talk, compaction([summary("s")], undefined, { trigger: "manual", tokensBefore: 5 })]],
    [
      "several inserted messages",
      [...talk, compaction([summary("s"), model({ text: "ok" }), user({ text: "t" })], 2), says("d")]
    ],
    ["nothing inserted", [...talk, compaction([], 1), says("d")]],
    ["nothing inserted and nothing kept", [...talk, compaction([]), says("d")]],
    ["first inserted what is no summary", [...talk, compaction([model({ text: "ok" }), summary("s")], 0)]],
    ["an empty summary", [...talk, compaction([{ content: { role: "user", parts: [] }, author: "summary" }], 0)]],
    ["a summary of a call", [...talk, compaction([{ ...user(call("t")), author: "summary" }], 1)]],
    [
      "the environment",
      [message({ ...user({ text: "env" }), author: "environment" }), ...talk, compaction([summary("s")], 3), says("d")]
    ],
    ["kept twice", [...talk, compaction([summary("s")], 1), says("d"), compaction([summary("t")], 1), says("e")]],
    [
      "kept less the second time",
      [...talk, compaction([summary("s")], 0), says("d"), compaction([summary("t")], 2), says("e")]
    ],
    [
      "from before an earlier one",
      [...talk, compaction([summary("s")]), says("d"), compaction([summary("t")], 1), says("e")]
    ],
    ["first of all", [compaction([summary("s")]), says("a")]],
    ["last of all", [...talk, compaction([summary("s")], 2)]],
    [
      "in the middle of a turn",
      [
        says("a"),
        message(model(call("1"), call("2"))),
        message(user(result({ output: "x" }, "1"))),
        message(user(result({ output: "y" }, "2"))),
        compaction([summary("s")], 3),
        says("d")
      ]
    ]
  ])("%s: reads as it was", (_, steps) => {
    const back = read(steps)
    assert.deepStrictEqual(told(viewOf(back)), told(viewOf(transcript(steps))))
    assert.deepStrictEqual(told(draftsIn(back)), told(draftsIn(transcript(steps))))
    const about = ({ steps: all }: Transcript) =>
      all.flatMap((step) => (step._tag === "Compaction" ? [[step.trigger, step.tokensBefore]] : []))
    assert.deepStrictEqual(about(back), about(transcript(steps)))
  })

  it("without an insertion have a note in the runtime's name", () => {
    const [, , , , placeholder] = records([...talk, compaction([], 1)])
    assert.include(String(contentIn(placeholder)), runtimeMark)
  })

  it("repeated messages count no usage again, and keep their time", () => {
    const usage = { prompt: 170_000, cached: 0, answer: 1, thoughts: 0 }
    const steps = [
      message({ ...model({ text: "a" }), usage, at: 1_000 }),
      message({ ...user({ text: "b" }), at: 2_000 }),
      compaction([summary("s")], 0),
      says("c")
    ]
    const all = records(steps)
    assert.deepStrictEqual(
      all.map((record) => Date.parse(String(record.timestamp))),
      [1_000, 2_000, 2_000, 2_000, 1_000, 2_000, 2_000]
    )
    assert.deepStrictEqual(messageIn(all[4]).usage, {
      input_tokens: 0,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 0
    })
    assert.notStrictEqual(messageIn(all[4]).id, messageIn(all[0]).id)
    assert.deepStrictEqual(
      draftsIn(read(steps)).map((draft) => draft.usage),
      [usage, undefined, undefined, undefined]
    )
  })

  it("usage after them counts, even within repeated messages", () => {
    const lines = linesOf(writeClaude, transcript([...talk, compaction([summary("s")], 0)]))
    // a b c | boundary s a' b' c': back to b', and on from there.
    const parent = String(JSON.parse(lines[6] ?? "{}").uuid)
    const said = {
      type: "user",
      uuid: "later",
      parentUuid: parent,
      sessionId: session,
      message: { role: "user", content: "d" }
    }
    const back = readLines(claudeReader(), [...lines, JSON.stringify(said)])
    assert.deepStrictEqual(
      viewOf(back).map((draft) => draft.content.parts[0]?.text),
      ["s", "a", "b", "d"]
    )
  })

  it("an answer that the agent adds to a repeated turn is its own message", () => {
    const steps = [
      message(model(call("1"), call("2"))),
      message(user(result({ output: "x" }, "1"))),
      compaction([summary("s")], 0)
    ]
    const lines = linesOf(writeClaude, transcript(steps))
    const parent = String(JSON.parse(lines.at(-1) ?? "{}").uuid)
    const content = [{ type: "tool_result", tool_use_id: "2", content: "y" }]
    const said = {
      type: "user",
      uuid: "later",
      parentUuid: parent,
      sessionId: session,
      message: { role: "user", content }
    }
    const back = viewOf(readLines(claudeReader(), [...lines, JSON.stringify(said)]))
    assert.deepStrictEqual(
      back.map((draft) => draft.content.parts.map((part) => part.functionResponse?.response)[0]),
      [undefined, undefined, { output: "x" }, { output: "y" }]
    )
  })
})

describe("usage", () => {
  it.each<readonly [string, Draft["usage"], boolean]>([
    ["as Claude counts", { prompt: 60, cached: 20, cacheWrite: 30, answer: 7, thoughts: 0 }, false],
    ["without a cache", { prompt: 60, cached: 0, answer: 7, thoughts: 0 }, false],
    ["with thoughts apart", { prompt: 60, cached: 0, answer: 7, thoughts: 3 }, true],
    ["of nothing at all", { prompt: 0, cached: 0, answer: 0, thoughts: 0 }, true],
    ["that does not add up", { prompt: 1, cached: 5, answer: 7, thoughts: 0 }, true],
    ["unknown", undefined, false]
  ])("%s comes back", (_, usage, marked) => {
    const draft = { ...model({ text: "x" }), ...(usage === undefined ? {} : { usage }) }
    assert.deepStrictEqual(draftsIn(read([message(draft)]))[0]?.usage, usage)
    assert.strictEqual("palimpsest" in (records([message(draft)])[0] ?? {}), marked)
  })
})

describe("real files", () => {
  it.each(sessionNames)("%s: round-trips, also through the other format", (name) => {
    const reader = name.startsWith("pi") ? piReader : claudeReader
    const lines = sessionText(name)
      .split("\n")
      .filter((line) => line !== "")
    const original = readLines(reader(), lines)
    const out = runSync(writeClaude(original))
    assert.deepStrictEqual(out.unheld, {})
    // Only answers that were aborted before they said anything need to say so beside, and what answers calls without a result.
    const aborted = draftsIn(original).filter((draft) => draft.content.parts.length === 0).length
    const marked = out.lines.filter((line) => line.includes('"palimpsest"') && !line.includes('"owed":true'))
    assert.strictEqual(marked.length, aborted)
    const same = (back: Transcript) => {
      assert.deepStrictEqual(told(draftsIn(back)), told(draftsIn(original)))
      assert.deepStrictEqual(told(viewOf(back)), told(viewOf(original)))
      assert.deepStrictEqual(counted(draftsIn(back)), counted(draftsIn(original)))
      assert.deepStrictEqual(
        draftsIn(back).map((draft) => draft.model),
        draftsIn(original).map((draft) => draft.model)
      )
      assert.deepStrictEqual([back.session, back.cwd, back.model], [original.session, original.cwd, original.model])
    }
    const back = readLines(claudeReader(), linesOf(writeClaude, original))
    same(back)
    const there = readLines(piReader(), linesOf(writePi, back))
    same(there)
    same(readLines(claudeReader(), linesOf(writeClaude, there)))
  })
})

describe("generated conversations", () => {
  it.prop(
    "round-trip for us and for the agent; each line is JSON on one line",
    [transcripts],
    ([original]) => {
      const out = runSync(writeClaude(original))
      for (const line of out.lines) {
        assert.notMatch(line, /[\r\n]/)
        assert.isTrue(isJson(JSON.parse(line)))
      }
      const back = readLines(claudeReader(), linesOf(writeClaude, original))
      assert.deepStrictEqual(told(draftsIn(back)), told(draftsIn(original)))
      assert.deepStrictEqual(told(viewOf(back)), told(viewOf(original)))
      assert.deepStrictEqual(counted(draftsIn(back)), counted(draftsIn(original)))
      // Written again it is the same file: ids and times are known by now.
      assert.deepStrictEqual(
        linesOf(writeClaude, readLines(claudeReader(), linesOf(writeClaude, back))),
        linesOf(writeClaude, back)
      )
    },
    { arbitrary: { runs: runsOf(500), seed: "claude", size: 24 } }
  )

  it.prop(
    "are valid for the Anthropic API: unique ids, results right after their calls, nothing empty",
    [transcripts],
    ([original]) => {
      let stretch: Array<Json> = []
      const check = () => {
        const calls = new Set<string>()
        let open = new Set<string>()
        for (const record of stretch) {
          const content = contentIn(record)
          const blocks: ReadonlyArray<Json> = Array.isArray(content) ? content : [{ type: "text", text: content }]
          assert.isAbove(blocks.length, 0)
          if (record.type === "assistant" && open.size > 0 && blocks.some((block) => block.type === "tool_use"))
            open = new Set()
          for (const block of blocks) {
            if (block.type === "text") assert.notStrictEqual(block.text, "")
            if (block.type === "tool_use") {
              assert.match(String(block.id), /^[a-zA-Z0-9_-]+$/)
              assert.isFalse(calls.has(String(block.id)))
              assert.isTrue(isJson(block.input))
              calls.add(String(block.id))
              open.add(String(block.id))
            }
            if (block.type === "tool_result") {
              assert.strictEqual(record.type, "user")
              assert.isTrue(calls.has(String(block.tool_use_id)))
            }
          }
        }
        stretch = []
      }
      for (const record of records(original.steps)) {
        if (record.subtype === "compact_boundary") check()
        else stretch.push(record)
      }
      check()
    },
    { arbitrary: { runs: runsOf(300), seed: "api", size: 24 } }
  )
})
