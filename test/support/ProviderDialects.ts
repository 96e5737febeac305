import type { Layer } from "effect"
import type { Usage } from "../../src/domain/tokens/Tokens.ts"
import * as AnthropicModel from "../../src/layers/model/AnthropicModel.ts"
import * as GoogleModel from "../../src/layers/model/GoogleModel.ts"
import * as OpenAiModel from "../../src/layers/model/OpenAiModel.ts"
import type { Model } from "../../src/services/model/Model.ts"
import { type Block, chatChunk, codecs, type Counts, pieces, signatureOf } from "./GatewayDialects.ts"
import { events, json, type ProviderAnswer } from "./ProviderServer.ts"

/** The four dialects as the models ask for them: answers, failures and counts. */

/** A part of a scripted answer. */
export type Said =
  | { readonly text: string }
  | { readonly thought: string }
  | { readonly call: string; readonly args: unknown; readonly id: string }

export interface Dialect {
  readonly name: "Chat Completions" | "Gemini" | "Messages" | "Responses"
  readonly model: string
  readonly layer: (url: string, key: string) => Layer.Layer<Model>
  /** A whole streamed answer. */
  readonly answer: (said: ReadonlyArray<Said>, finish?: "filtered" | "length" | "stop") => ProviderAnswer
  /** The beginning of an answer that does not end, or that ends with these writes. */
  readonly unfinished: (...after: ReadonlyArray<"drop" | "stall">) => ProviderAnswer
  /** The usage that `answer` reports. */
  readonly usage: Usage
  /** The body of an error. */
  readonly error: (type: string, message: string) => unknown
  /** A long answer: events without end. */
  readonly endless: (text: string) => ProviderAnswer
  /** The header that holds the key. */
  readonly keyHeader: string
  /** The name on the wire of a tool that is called `look.up`. */
  readonly lookUp: string
  /** The signature that `answer` gives a thought. */
  readonly signature: (thought: string) => string
  /** Errors that only this provider words so, with what they mean. */
  readonly failures: ReadonlyArray<readonly [answer: ProviderAnswer, reason: object]>
}

const tooLong = (
  dialect: Pick<Dialect, "error">,
  ...cases: ReadonlyArray<readonly [message: string, tokens: number, limit: number]>
): Dialect["failures"] =>
  cases.map(([message, tokens, limit]) => [
    json(dialect.error("invalid_request_error", message), 400),
    { _tag: "ContextLengthError", tokens, limit }
  ])

/** The blocks of an answer. */
const blocksOf = (said: ReadonlyArray<Said>): ReadonlyArray<Block> =>
  said.map((each) => {
    if ("text" in each) return { kind: "text", text: each.text }
    if ("thought" in each) return { kind: "thought", text: each.thought, signature: signatureOf(each.thought) }
    return { kind: "call", id: each.id, name: each.call, args: each.args }
  })

/** An answer of these events. */
const streamed = (writes: ReadonlyArray<string>): ProviderAnswer => ({
  headers: { "content-type": "text/event-stream" },
  writes
})

/** The answers of a dialect, the last `ending` events of which end them. Named events have the line ends of Windows. */
const answersOf = (
  codec: (typeof codecs)["chat"],
  counts: Counts,
  ending: number
): Pick<Dialect, "answer" | "unfinished"> => {
  const eventsOf = (said: ReadonlyArray<Said>, finish: "filtered" | "length" | "stop" = "stop") =>
    codec
      .events({ blocks: blocksOf(said), counts, ...(finish === "stop" ? {} : { end: finish }) })
      .map((event) => (event.startsWith("event: ") ? event.replaceAll("\n", "\r\n") : event))
  return {
    answer: (said, finish) => streamed(eventsOf(said, finish)),
    unfinished: (...after) => streamed([...eventsOf([{ text: "Hello" }]).slice(0, -ending), ...after])
  }
}

function* forever(text: string) {
  for (;;) yield text
}

const anthropicError = (type: string, message: string) => ({
  type: "error",
  error: { type, message },
  request_id: "req_1"
})

export const anthropic: Dialect = {
  name: "Messages",
  model: "claude-sonnet-4-5",
  layer: (url, key) => AnthropicModel.layer({ apiKey: key, baseUrl: url }),
  ...answersOf(codecs.anthropic, { input: 10, cached: 60, cacheWrite: 30, output: 15 }, 2),
  usage: { prompt: 100, answer: 15, thoughts: 0, cached: 60, cacheWrite: 30 },
  error: anthropicError,
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(
      `data: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })}\n\n`
    )
  }),
  keyHeader: "x-api-key",
  lookUp: "look_up",
  signature: signatureOf,
  failures: [
    [
      json(anthropicError("invalid_request_error", "Your credit balance is too low to access"), 400),
      { _tag: "QuotaExhaustedError" }
    ],
    ...tooLong(
      { error: anthropicError },
      ["prompt is too long: 207791 tokens > 200000 maximum", 207_791, 200_000],
      ["input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease", 242_959, 200_000]
    )
  ]
}

const openAiError = (type: string, message: string) => ({ error: { message, type, param: null, code: type } })

const openAiFailures: Dialect["failures"] = [
  [
    json(openAiError("rate_limit_exceeded", "Please try again in 1.5s."), 429),
    { _tag: "RateLimitError", retryAfter: 1_500 }
  ],
  [json(openAiError("insufficient_quota", "You exceeded your current quota"), 429), { _tag: "QuotaExhaustedError" }],
  [json(openAiError("content_policy_violation", "no"), 400), { _tag: "ContentPolicyError" }],
  [
    json(openAiError("context_length_exceeded", "Your input exceeds the context window of this model."), 400),
    { _tag: "ContextLengthError" }
  ],
  ...tooLong(
    { error: openAiError },
    [
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens.",
      8_227,
      8_192
    ],
    [
      "This model's maximum context length is 65536 tokens. However, you requested 72814 tokens (68718 in the messages, 4096 in the completion).",
      72_814,
      65_536
    ],
    ["request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 5_000, 4_096]
  )
]

/** As OpenAI's interfaces count: what was cached is a part of the prompt, and thoughts are a part of the answer. */
const openAiCounts: Counts = { input: 100, cached: 60, output: 15, thoughts: 5 }

export const responses: Dialect = {
  name: "Responses",
  model: "gpt-5",
  layer: (url, key) => OpenAiModel.layer({ apiKey: key, baseUrl: `${url}/v1`, api: "responses" }),
  ...answersOf(codecs.responses, openAiCounts, 1),
  usage: { prompt: 100, answer: 10, thoughts: 5, cached: 60 },
  error: openAiError,
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(`data: ${JSON.stringify({ type: "response.output_text.delta", delta: text })}\n\n`)
  }),
  keyHeader: "authorization",
  lookUp: "look_up",
  signature: signatureOf,
  failures: openAiFailures
}

const chatAnswers = answersOf(codecs.chat, openAiCounts, 3)

export const chat: Dialect = {
  name: "Chat Completions",
  model: "llama3.1",
  layer: (url, key) => OpenAiModel.layer({ apiKey: key, baseUrl: `${url}/v1` }),
  ...chatAnswers,
  // Thoughts come first, as servers of open models send them.
  answer: (said, finish) => {
    const [first = "", ...others] = chatAnswers.answer(said, finish).writes
    const thoughts = said.flatMap((each) => ("thought" in each ? pieces(each.thought) : []))
    return streamed([first, ...thoughts.map((reasoning_content) => chatChunk({ reasoning_content })), ...others])
  },
  usage: { prompt: 100, answer: 10, thoughts: 5, cached: 60 },
  error: openAiError,
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(chatChunk({ content: text }))
  }),
  keyHeader: "authorization",
  lookUp: "look_up",
  signature: signatureOf,
  failures: openAiFailures
}

const base64 = (thought: string) => Buffer.from(signatureOf(thought)).toString("base64")

/** A part of an answer, as far as pieces of it are joined. */
interface GeminiPart {
  readonly [key: string]: unknown
  readonly text?: string
}

const geminiChunk = (parts: ReadonlyArray<GeminiPart>, finishReason?: string) => ({
  candidates: [
    { content: { parts, role: "model" }, ...(finishReason === undefined ? {} : { finishReason }), index: 0 }
  ],
  usageMetadata: {
    promptTokenCount: 100,
    candidatesTokenCount: 10,
    thoughtsTokenCount: 5,
    cachedContentTokenCount: 60,
    totalTokenCount: 115
  },
  modelVersion: "gemini-2.5-flash",
  responseId: "response-1"
})

/** The chunks of an answer. A thought's signature comes with the part that follows the thought. */
const geminiChunks = (said: ReadonlyArray<Said>) =>
  said.flatMap((each, index) => {
    if ("text" in each) return pieces(each.text).map((text) => geminiChunk([{ text }]))
    if ("thought" in each) return pieces(each.thought).map((text) => geminiChunk([{ text, thought: true }]))
    const before = said[index - 1]
    const signature =
      before !== undefined && "thought" in before ? { thoughtSignature: base64(before.thought) } : undefined
    const name = each.call === "look_up" ? "look.up" : each.call
    const part = { functionCall: { id: each.id, name, args: each.args }, ...signature }
    return [geminiChunk([part])]
  })

const geminiStatus: Readonly<Record<string, string>> = {
  invalid_request_error: "INVALID_ARGUMENT",
  authentication_error: "UNAUTHENTICATED",
  permission_error: "PERMISSION_DENIED",
  not_found_error: "NOT_FOUND",
  rate_limit_error: "RESOURCE_EXHAUSTED",
  overloaded_error: "UNAVAILABLE",
  api_error: "INTERNAL"
}

const geminiError = (type: string, message: string, ...details: ReadonlyArray<object>) => ({
  error: {
    code: type === "overloaded_error" ? 529 : 400,
    message,
    status: geminiStatus[type] ?? "INVALID_ARGUMENT",
    ...(details.length === 0 ? {} : { details })
  }
})

export const gemini: Dialect = {
  name: "Gemini",
  model: "gemini-2.5-flash",
  layer: (url, key) => GoogleModel.layer({ apiKey: key, baseUrl: url }),
  answer: (said, finish = "stop") => {
    if (finish === "filtered") return events({ promptFeedback: { blockReason: "PROHIBITED_CONTENT" } })
    // The API itself reads the arguments: what is no JSON never arrives.
    const isMalformed = said.some((each) => "call" in each && typeof each.args === "string")
    if (isMalformed) return events(geminiChunk([], "MALFORMED_FUNCTION_CALL"))
    return events(...geminiChunks(said), geminiChunk([{ text: "" }], finish === "length" ? "MAX_TOKENS" : "STOP"))
  },
  unfinished: (...after) => events(...geminiChunks([{ text: "Hello" }]), ...after),
  usage: { prompt: 100, answer: 10, thoughts: 5, cached: 60 },
  error: geminiError,
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(`data: ${JSON.stringify(geminiChunk([{ text }]))}\n\n`)
  }),
  keyHeader: "x-goog-api-key",
  lookUp: "look.up",
  signature: base64,
  failures: [
    [
      json(geminiError("rate_limit_error", "slow", { retryDelay: "34.4s" }), 429),
      { _tag: "RateLimitError", retryAfter: 34_400 }
    ],
    [
      json(geminiError("rate_limit_error", "no more", { violations: [{ quotaId: "GenerateRequestsPerDay" }] }), 429),
      { _tag: "QuotaExhaustedError" }
    ],
    ...tooLong({ error: geminiError }, [
      "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
      1_200_000,
      1_048_576
    ])
  ]
}

/**
 * The same answer in one piece, as `generateContent` returns it. What is broken or breaks off is so in one piece too. Other answers
 * stay as they are.
 */
export const inOnePiece = (answer: ProviderAnswer): ProviderAnswer => {
  if (answer.headers?.["content-type"] !== "text/event-stream") return answer
  const all = [...answer.writes]
  const pieces = all.filter((text) => text.startsWith("data: ")).map((text) => text.slice("data: ".length).trim())
  const after = all.filter((text) => text === "drop" || text === "stall")
  const isWhole = after.length === 0 && /"finishReason"|"promptFeedback"/.test(pieces.at(-1) ?? "")
  const body = isWhole ? [JSON.stringify(merged(pieces.map((piece) => JSON.parse(piece))))] : ['{"candidates":[']
  return { headers: { "content-type": "application/json" }, writes: [...body, ...after] }
}

const merged = (chunks: ReadonlyArray<ReturnType<typeof geminiChunk>>) => {
  const last = chunks.at(-1)
  const candidate = last?.candidates?.[0]
  if (candidate === undefined) return last
  const parts: Array<GeminiPart> = []
  for (const part of chunks.flatMap(({ candidates }) => candidates[0]?.content.parts ?? [])) {
    const before = parts.at(-1)
    if (part.text === "") continue
    const isSame = part.text !== undefined && before?.text !== undefined && before["thought"] === part["thought"]
    if (isSame) parts[parts.length - 1] = { ...before, text: `${before.text}${part.text}` }
    else parts.push(part)
  }
  return { ...last, candidates: [{ ...candidate, content: { ...candidate.content, parts } }] }
}

export const dialects: ReadonlyArray<Dialect> = [anthropic, responses, chat]
/** All of them, with the one whose answers may also come in one piece. */
export const allDialects: ReadonlyArray<Dialect> = [...dialects, gemini]
