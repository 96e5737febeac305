import type { Layer } from "effect"
import type { Usage } from "../../src/domain/tokens/Tokens.ts"
import * as AnthropicModel from "../../src/layers/model/AnthropicModel.ts"
import * as GoogleModel from "../../src/layers/model/GoogleModel.ts"
import * as OpenAiModel from "../../src/layers/model/OpenAiModel.ts"
import type { Model } from "../../src/services/model/Model.ts"
import { events, json, type NamedEvent, namedEvents, type ProviderAnswer } from "./ProviderServer.ts"

/** The four dialects, with answers in the shapes that their documentation shows. */

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

const halves = (text: string): readonly [string, string] => [
  text.slice(0, Math.ceil(text.length / 2)),
  text.slice(Math.ceil(text.length / 2))
]

const signed = (thought: string) => `signed ${thought}`

const anthropicBlock = (said: Said, index: number) => {
  const start = (content_block: object) => ({ type: "content_block_start", index, content_block })
  const delta = (delta: object) => ({ type: "content_block_delta", index, delta })
  const stop = { type: "content_block_stop", index }
  if ("text" in said) {
    return [
      start({ type: "text", text: "" }),
      { type: "ping" },
      ...halves(said.text).map((text) => delta({ type: "text_delta", text })),
      stop
    ]
  }
  if ("thought" in said) {
    return [
      start({ type: "thinking", thinking: "", signature: "" }),
      ...halves(said.thought).map((thinking) => delta({ type: "thinking_delta", thinking })),
      delta({ type: "signature_delta", signature: signed(said.thought) }),
      stop
    ]
  }
  return [
    start({ type: "tool_use", id: said.id, name: said.call, input: {} }),
    delta({ type: "input_json_delta", partial_json: "" }),
    ...halves(typeof said.args === "string" ? said.args : JSON.stringify(said.args)).map((partial_json) =>
      delta({ type: "input_json_delta", partial_json })
    ),
    stop
  ]
}

const messageStart = {
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5-20250929",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      cache_creation_input_tokens: 30,
      cache_read_input_tokens: 60,
      output_tokens: 1,
      service_tier: "standard"
    }
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
  answer: (said, finish = "stop") =>
    namedEvents(
      messageStart,
      ...said.flatMap(anthropicBlock),
      {
        type: "message_delta",
        delta: {
          stop_reason:
            finish === "length"
              ? "max_tokens"
              : finish === "filtered"
                ? "refusal"
                : said.some((each) => "call" in each)
                  ? "tool_use"
                  : "end_turn",
          stop_sequence: null
        },
        usage: { output_tokens: 15 }
      },
      { type: "message_stop" }
    ),
  unfinished: (...after) => namedEvents(messageStart, ...anthropicBlock({ text: "Hello" }, 0), ...after),
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
  signature: signed,
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

const responseItem = (said: Said, output_index: number): ReadonlyArray<NamedEvent> => {
  const done = (item: object) => ({ type: "response.output_item.done", output_index, item })
  if ("text" in said) {
    return [
      ...halves(said.text).map((delta) => ({
        type: "response.output_text.delta",
        item_id: "msg_1",
        output_index,
        content_index: 0,
        delta,
        logprobs: []
      })),
      { type: "response.output_text.done" },
      done({ id: "msg_1", type: "message", status: "completed", role: "assistant", content: [] })
    ]
  }
  if ("thought" in said) {
    return [
      { type: "response.output_item.added" },
      ...halves(said.thought).map((delta) => ({
        type: "response.reasoning_summary_text.delta",
        item_id: "rs_1",
        summary_index: 0,
        delta
      })),
      done({
        id: "rs_1",
        type: "reasoning",
        status: "completed",
        summary: [{ type: "summary_text", text: said.thought }],
        encrypted_content: signed(said.thought)
      })
    ]
  }
  const args = typeof said.args === "string" ? said.args : JSON.stringify(said.args)
  return [
    ...halves(args).map((delta) => ({ type: "response.function_call_arguments.delta", output_index, delta })),
    done({
      id: "fc_1",
      type: "function_call",
      status: "completed",
      call_id: said.id,
      name: said.call,
      arguments: args
    })
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

const created = {
  type: "response.created",
  response: { id: "resp_1", status: "in_progress", error: null, usage: null }
}

export const responses: Dialect = {
  name: "Responses",
  model: "gpt-5",
  layer: (url, key) => OpenAiModel.layer({ apiKey: key, baseUrl: `${url}/v1`, api: "responses" }),
  answer: (said, finish = "stop") =>
    namedEvents(created, ...said.flatMap(responseItem), {
      type: finish === "stop" ? "response.completed" : "response.incomplete",
      response: {
        id: "resp_1",
        status: finish === "stop" ? "completed" : "incomplete",
        error: null,
        incomplete_details:
          finish === "stop" ? null : { reason: finish === "length" ? "max_output_tokens" : "content_filter" },
        usage: {
          input_tokens: 100,
          input_tokens_details: { cached_tokens: 60 },
          output_tokens: 15,
          output_tokens_details: { reasoning_tokens: 5 },
          total_tokens: 115
        }
      }
    }),
  unfinished: (...after) => namedEvents(created, ...responseItem({ text: "Hello" }, 0), ...after),
  usage: { prompt: 100, answer: 10, thoughts: 5, cached: 60 },
  error: openAiError,
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(`data: ${JSON.stringify({ type: "response.output_text.delta", delta: text })}\n\n`)
  }),
  keyHeader: "authorization",
  lookUp: "look_up",
  signature: signed,
  failures: openAiFailures
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "llama3.1",
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  usage: null
})

const chatChunks = (said: ReadonlyArray<Said>) => {
  let calls = 0
  return said.flatMap((each) => {
    if ("text" in each) return halves(each.text).map((content) => chunk({ content }))
    if ("thought" in each) return halves(each.thought).map((reasoning_content) => chunk({ reasoning_content }))
    const index = calls
    calls += 1
    const [first, second] = halves(typeof each.args === "string" ? each.args : JSON.stringify(each.args))
    return [
      chunk({ tool_calls: [{ index, id: each.id, type: "function", function: { name: each.call, arguments: "" } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: first } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: second } }] })
    ]
  })
}

export const chat: Dialect = {
  name: "Chat Completions",
  model: "llama3.1",
  layer: (url, key) => OpenAiModel.layer({ apiKey: key, baseUrl: `${url}/v1` }),
  answer: (said, finish = "stop") =>
    events(
      chunk({ role: "assistant", content: "" }),
      ...chatChunks(said),
      chunk(
        {},
        finish === "length"
          ? "length"
          : finish === "filtered"
            ? "content_filter"
            : said.some((each) => "call" in each)
              ? "tool_calls"
              : "stop"
      ),
      {
        id: "chatcmpl-1",
        choices: [],
        usage: {
          prompt_tokens: 100,
          completion_tokens: 15,
          total_tokens: 115,
          prompt_tokens_details: { cached_tokens: 60 },
          completion_tokens_details: { reasoning_tokens: 5 }
        }
      },
      "[DONE]"
    ),
  unfinished: (...after) => events(...chatChunks([{ text: "Hello" }]), ...after),
  usage: { prompt: 100, answer: 10, thoughts: 5, cached: 60 },
  error: openAiError,
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(`data: ${JSON.stringify(chunk({ content: text }))}\n\n`)
  }),
  keyHeader: "authorization",
  lookUp: "look_up",
  signature: signed,
  failures: openAiFailures
}

const base64 = (thought: string) => Buffer.from(signed(thought)).toString("base64")

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
    if ("text" in each) return halves(each.text).map((text) => geminiChunk([{ text }]))
    if ("thought" in each) return halves(each.thought).map((text) => geminiChunk([{ text, thought: true }]))
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
