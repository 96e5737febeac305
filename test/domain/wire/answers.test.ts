import { Result, Schema } from "effect"
import type { Part } from "../../../src/domain/content/Content.ts"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { parsedOrUndefined } from "../../../src/domain/text/JsonText.ts"
import type { AnswerReader, Reading } from "../../../src/domain/wire/AnswerReader.ts"
import { usageOf } from "../../../src/domain/wire/AnswerUsage.ts"
import { anthropicAnswerReader } from "../../../src/domain/wire/anthropic/Answer.ts"
import { chatAnswerReader } from "../../../src/domain/wire/chat/Answer.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { geminiAnswerReader } from "../../../src/domain/wire/gemini/Answer.ts"
import { RelayedBody } from "../../../src/domain/wire/RelayedAnswer.ts"
import { responsesAnswerReader } from "../../../src/domain/wire/responses/Answer.ts"
import { type SseEvent, SseSplitter } from "../../../src/domain/wire/SseEvents.ts"
import { toolNames } from "../../../src/domain/wire/ToolDeclarations.ts"
import { type Answer, type Block, codecs, type Json, signatureOf } from "../../support/GatewayDialects.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/**
 * Answers of every dialect, whatever they hold and however their bytes are cut: the model's layer and the gateway read the same
 * text, calls, counts and ends, and every part of a stream is in the whole answer.
 */

const tool = "palimpsest_recall"
const readers: Readonly<Record<Dialect, (reading: Reading) => AnswerReader>> = {
  anthropic: anthropicAnswerReader,
  chat: chatAnswerReader,
  gemini: geminiAnswerReader,
  responses: responsesAnswerReader
}

const Words = Schema.String.check(Schema.isMinLength(1))
const Key = Schema.String.check(Schema.isPattern(/^[a-z]\w*$/))
const Said = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("text"), text: Words }),
  Schema.Struct({ kind: Schema.Literal("thought"), text: Words }),
  Schema.Struct({
    kind: Schema.Literal("call"),
    name: Schema.Literals([tool, "read_file"]),
    args: Schema.Record(Key, Schema.Union([Schema.String, Schema.Finite, Schema.Array(Words)]))
  })
])
const Count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))
/** Sizes of the pieces in which bytes arrive, again and again. */
const Sizes = Schema.NonEmptyArray(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 90 })))

const answerOf = (said: ReadonlyArray<typeof Said.Type>, input: number, output: number): Answer => ({
  blocks: said.map((one, at): Block => {
    if (one.kind === "call") return { ...one, id: `call_${at}` }
    return one.kind === "thought" ? { ...one, signature: signatureOf(`s${at}`) } : one
  }),
  counts: { input, output }
})

/** The events of a stream whose bytes arrive in pieces of these sizes. */
const eventsOf = (text: string, sizes: ReadonlyArray<number>): ReadonlyArray<SseEvent> => {
  const bytes = new TextEncoder().encode(text)
  const [splitter, decoder] = [new SseSplitter(), new TextDecoder()]
  const events: Array<SseEvent> = []
  for (let [at, turn] = [0, 0]; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1
    events.push(...splitter.push(decoder.decode(bytes.subarray(at, at + size), { stream: true })))
    at += size
  }
  return [...events, ...splitter.push(decoder.decode()), ...splitter.end()]
}

/** What the model's layer makes of the events: texts and thoughts joined, calls, the end and the counts; or what is wrong. */
const readBy = (dialect: Dialect, events: ReadonlyArray<SseEvent>) => {
  const reader = readers[dialect]({ tools: toolNames([]), target: { dialect, server: "api", model: "m" } })
  const parts: Array<Part> = []
  let [finishReason, usage, problem]: ReadonlyArray<unknown> = []
  for (const { data } of events) {
    if (data === "" || data === "[DONE]" || problem !== undefined) continue
    const read = reader.read(parsedOrUndefined(data))
    if (Result.isFailure(read)) problem = read.failure
    else {
      parts.push(...(read.success?.parts ?? []))
      finishReason = read.success?.finishReason ?? finishReason
      usage = read.success?.usage ?? usage
    }
  }
  const end = problem === undefined ? reader.end() : undefined
  parts.push(...(end?.parts ?? []))
  const joined = (isThought: boolean) =>
    parts.flatMap(({ text = "", thought = false }) => (thought === isThought ? [text] : [])).join("")
  return {
    text: joined(false),
    thoughts: joined(true),
    calls: parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [functionCall])),
    states: parts.flatMap(({ thoughtSignature }) => (thoughtSignature === undefined ? [] : [thoughtSignature])),
    finishReason: end?.finishReason ?? finishReason,
    usage,
    problem
  }
}

/** What the gateway reads and what the client gets. */
const relayed = (dialect: Dialect, events: ReadonlyArray<SseEvent>) => {
  const stream = wire[dialect].answers.stream(tool)
  const passed = events.map((event) => stream.push(event)).join("")
  return { read: stream.read(), client: passed + stream.finish("as sent") }
}

const isOwn = ({ name }: { readonly name?: string }) => name === tool

/** The events with an unknown field in each block that they begin, complete or add to. */
const withField = (dialect: Dialect, text: string, value: unknown): string =>
  text.replaceAll(/^data: (\{.*)$/gm, (_, json: string) => {
    const event: Json = JSON.parse(json)
    const own = { unknown_field: value }
    if (dialect === "anthropic" && event["content_block"]) Object.assign(event["content_block"], own)
    if (dialect === "responses" && event["item"]) Object.assign(event["item"], own)
    if (dialect === "responses") for (const item of event["response"]?.output ?? []) Object.assign(item, own)
    if (dialect === "chat") for (const { delta } of event["choices"]) if (delta.role) Object.assign(delta, own)
    if (dialect === "gemini")
      for (const part of event["candidates"][0].content?.parts ?? []) if (part.functionCall) Object.assign(part, own)
    return `data: ${JSON.stringify(event)}`
  })

describe.each(dialects)("any answer in the dialect %s", (dialect) => {
  const codec = codecs[dialect]
  const runs = { arbitrary: { runs: runsOf(1_000), seed: dialect } }
  const said = Schema.Array(Said).check(Schema.isMaxLength(6))

  it.prop(
    "is the same however its bytes are cut, for the model's layer and for the gateway",
    [said, Count, Count, Sizes],
    ([blocks, input, output, sizes]) => {
      const answer = answerOf(blocks, input, output)
      const text = codec.events(answer).join("")
      const [whole, cut] = [eventsOf(text, [text.length * 3]), eventsOf(text, sizes)]
      assert.deepStrictEqual(readBy(dialect, cut), readBy(dialect, whole))
      assert.deepStrictEqual(relayed(dialect, cut), relayed(dialect, whole))

      const read = readBy(dialect, whole)
      const { client, read: seen } = relayed(dialect, whole)
      // Both read the same of it.
      assert.strictEqual(read.problem, undefined)
      assert.strictEqual(read.finishReason, "STOP")
      assert.deepStrictEqual<unknown>(
        seen.calls.map(({ args, id, name }) => ({ id, name, args })),
        read.calls.filter(isOwn)
      )
      assert.strictEqual(
        seen.hasOthers,
        read.calls.some((call) => !isOwn(call))
      )
      assert.deepStrictEqual<unknown>(usageOf(wire[dialect].answers.usage, seen.usage), read.usage)
      assert.strictEqual(seen.visible.map((one) => (one.kind === "text" ? one.text : "")).join(""), read.text)
      // The client gets it without the calls of the gateway's tool, and where there are none the bytes that the provider sent.
      if (seen.calls.length === 0) {
        const spaced = text.replaceAll("data: {", "data: { ")
        assert.strictEqual(relayed(dialect, eventsOf(spaced, sizes)).client, spaced)
      }
      const { calls, finishReason, usage, ...others } = readBy(dialect, eventsOf(client, sizes))
      assert.deepStrictEqual(
        calls,
        read.calls.filter((call) => !isOwn(call))
      )
      assert.deepStrictEqual(
        [finishReason, usage, others.text, others.thoughts],
        [read.finishReason, read.usage, read.text, read.thoughts]
      )
      // And it is the same when it is not streamed.
      const body = new RelayedBody(wire[dialect].answers, tool).push(codec.json(answer))
      assert.deepStrictEqual(
        body?.calls.map(({ args, id }) => ({ id, args })),
        seen.calls.map(({ args, id }) => ({ id, args }))
      )
      assert.deepStrictEqual([body?.hasOthers, body?.usage], [seen.hasOthers, seen.usage])
    },
    runs
  )

  it.prop(
    "keeps a field that nobody knows, and a failure in its middle is the same for any cut",
    [Schema.NonEmptyArray(Said).check(Schema.isMaxLength(4)), Sizes, Schema.Record(Key, Words)],
    ([blocks, sizes, field]) => {
      const own = [...blocks, { kind: "call", name: tool, args: {} } as const]
      const events = codec.events(answerOf(own, 3, 2))
      const { read } = relayed(dialect, eventsOf(withField(dialect, events.join(""), field), sizes))
      assert.include(read.sent.join(), JSON.stringify(field))
      const broken = [
        ...events.slice(0, -2),
        `data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n`
      ]
      const { problem } = readBy(dialect, eventsOf(broken.join(""), sizes))
      assert.deepInclude(problem, { _tag: "Fault" })
      assert.deepStrictEqual(problem, readBy(dialect, eventsOf(broken.join(""), [1_000_000])).problem)
    },
    runs
  )
})

/** The events that end an answer with a word of the provider. */
const ending: Readonly<Record<Dialect, (word: string) => object>> = {
  anthropic: (word) => ({ type: "message_delta", delta: { stop_reason: word } }),
  chat: (word) => ({ choices: [{ delta: {}, finish_reason: word }] }),
  gemini: (word) => ({ candidates: [{ finishReason: word }] }),
  responses: (word) => ({
    type: "response.done",
    response: word === "completed" ? { status: word } : { status: "incomplete", incomplete_details: { reason: word } }
  })
}

/** Every word with which a provider ends an answer, by what it means; `refused`: the model gives none. */
const ends: Readonly<Record<Dialect, Readonly<Record<string, ReadonlyArray<string>>>>> = {
  anthropic: {
    STOP: ["end_turn", "tool_use", "stop_sequence", "tool_calls"],
    MAX_TOKENS: ["max_tokens", "model_context_window_exceeded", "length"],
    refused: ["refusal", "content_filter"],
    pause_turn: ["pause_turn"]
  },
  chat: {
    MALFORMED_FUNCTION_CALL: ["function_call_filter: MALFORMED_FUNCTION_CALL"],
    STOP: "stop STOP eos eos_token end_turn stop_sequence complete tool_calls tool_use function_call".split(" "),
    MAX_TOKENS: ["length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"],
    refused: ["content_filter", "sensitive", "safety", "SAFETY", "PROHIBITED_CONTENT", "refusal"],
    other: ["other"]
  },
  gemini: {
    STOP: ["STOP", "stop"],
    MAX_TOKENS: ["MAX_TOKENS"],
    refused:
      "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION".split(
        " "
      ),
    MALFORMED_FUNCTION_CALL: ["MALFORMED_FUNCTION_CALL"]
  },
  responses: {
    STOP: ["completed"],
    MAX_TOKENS: ["max_output_tokens"],
    refused: ["content_filter"],
    OTHER: ["max_tool_calls", "incomplete"]
  }
}

/** Blocks that a provider begins in another order than they stand in. */
const unordered: Readonly<Record<Dialect, ReadonlyArray<object>>> = {
  anthropic: [1, 0].flatMap((index) => [
    { type: "content_block_start", index, content_block: { type: "text", text: `${index}` } },
    { type: "content_block_stop", index }
  ]),
  chat: [1, 0].map((index) => ({
    choices: [{ delta: { tool_calls: [{ index, id: `${index}`, function: { name: `${index}`, arguments: "{}" } }] } }]
  })),
  gemini: [
    { candidates: [{ content: { parts: [{ text: "0" }] } }] },
    { candidates: [{ content: { parts: [{ text: "1" }] } }] }
  ],
  responses: [1, 0].map((output_index) => ({
    type: "response.output_item.done",
    output_index,
    item: { type: "message", id: `${output_index}` }
  }))
}

const failures: Readonly<Record<Dialect, ReadonlyArray<string>>> = {
  anthropic: ["api_error", "authentication_error", "rate_limit_error", "api_error", "api_error"],
  chat: ["invalid_request_error", "invalid_request_error", "rate_limit_exceeded", "server_error", "server_error"],
  gemini: ["UNAVAILABLE", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNAVAILABLE"],
  responses: ["invalid_request_error", "invalid_request_error", "rate_limit_exceeded", "server_error", "server_error"]
}

describe.each(dialects)("an answer in the dialect %s", (dialect) => {
  const readerOf = () => readers[dialect]({ tools: toolNames([]), target: { dialect, server: "api", model: "m" } })

  it("ends as its provider says", () => {
    for (const [meaning, words] of Object.entries(ends[dialect])) {
      for (const word of words) {
        const { finishReason, problem } = readBy(dialect, [
          { raw: "", name: "", data: JSON.stringify(ending[dialect](word)) }
        ])
        assert.deepStrictEqual(
          [finishReason, problem],
          meaning === "refused" ? [undefined, { _tag: "Refusal", reason: word }] : [meaning, undefined],
          word
        )
      }
    }
  })

  it("has its blocks in the order in which they stand", () => {
    const answer = wire[dialect].answers.begin()
    for (const event of unordered[dialect]) answer.push({ ...event })
    assert.match(JSON.stringify(answer.whole), /0.*1/s)
    assert.notMatch(JSON.stringify(answer.whole).replaceAll(/"index":\d/g, ""), /1.*0/s)
  })

  it("of an unknown form is invalid, and a failure is told in the words of the API", () => {
    for (const event of [null, 1, "x", [], ...(dialect === "gemini" || dialect === "chat" ? [] : [{ x: 1 }])]) {
      const read = readerOf().read(event)
      assert.deepInclude(Result.isFailure(read) ? read.failure : {}, { _tag: "Invalid" })
    }
    // An event without anything keeps the connection open.
    assert.isTrue(Result.isSuccess(readerOf().read({})))
    const told = [400, 401, 429, 500, 503].map((status) => {
      const { error }: Json = wire[dialect].answers.failure(status, "no")
      assert.deepInclude(error, { message: "no" })
      return dialect === "gemini" ? error.status : error.type
    })
    assert.deepStrictEqual<unknown>(told, failures[dialect])
  })
})

it("a block of Anthropic's has all citations that came for it", () => {
  const answer = wire.anthropic.answers.begin()
  const cited = [{ url: "https://a.test" }, { url: "https://b.test" }]
  answer.push({ type: "content_block_start", index: 0, content_block: { type: "text", text: "a" } })
  for (const citation of cited)
    answer.push({ type: "content_block_delta", index: 0, delta: { type: "citations_delta", citation } })
  assert.deepInclude(answer.whole, { content: [{ type: "text", text: "a", citations: cited }] })
})

it("an element of a list that OpenRouter streams grows with its pieces: its texts join, its other values are repeated", () => {
  const answer = wire.chat.answers.begin()
  const pieces = [
    { type: "reasoning.text", index: 0, text: "a", format: "f", signature: null },
    { type: "reasoning.text", index: 0, text: "b", format: "f", signature: "s" },
    { type: "reasoning.summary", index: 0, summary: "c" },
    { type: "reasoning.text", index: 1, text: "d" },
    { type: "reasoning.text", text: "e" }
  ]
  for (const piece of pieces) answer.push({ choices: [{ index: 0, delta: { reasoning_details: [piece] } }] })
  const details = [
    { type: "reasoning.text", index: 0, text: "ab", format: "f", signature: "s" },
    { type: "reasoning.summary", index: 0, summary: "c" },
    { type: "reasoning.text", index: 1, text: "d" },
    { type: "reasoning.text", text: "e" }
  ]
  const { choices }: Json = answer.whole
  assert.deepStrictEqual(choices[0].message.reasoning_details, details)
})
