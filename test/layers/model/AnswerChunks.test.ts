import { Duration, Effect, Stream } from "effect"
import type { AnswerReader, Reading } from "../../../src/domain/wire/AnswerReader.ts"
import { anthropicAnswerReader } from "../../../src/domain/wire/anthropic/Answer.ts"
import { chatAnswerReader } from "../../../src/domain/wire/chat/Answer.ts"
import { geminiAnswerReader, readGemini } from "../../../src/domain/wire/gemini/Answer.ts"
import { responsesAnswerReader } from "../../../src/domain/wire/responses/Answer.ts"
import { endMark } from "../../../src/domain/wire/SseEvents.ts"
import { toolNames } from "../../../src/domain/wire/ToolDeclarations.ts"
import { chunkOf, chunks } from "../../../src/layers/model/AnswerChunks.ts"
import { keyOf, type Provider } from "../../../src/layers/model/Provider.ts"
import {
  type ProviderNames,
  reasonOfEvent,
  reasonOfStatus,
  retryAfter
} from "../../../src/layers/model/ProviderErrors.ts"
import { collect } from "../../../src/services/model/CollectedAnswer.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const provided: ProviderNames = { keys: ["API_KEY"], baseUrl: "BASE_URL", api: "Test" }

const provider: Provider = {
  names: provided,
  key: "sk-secret",
  baseUrl: new URL("http://api"),
  model: undefined,
  timeouts: { chunk: "1 second", countTokens: "1 second" },
  headers: () => ({}),
  needsKey: true,
  send: () => Effect.die("nothing is sent"),
  learned: new Map()
}

describe("a server that repeats the key", () => {
  const reading: Reading = { tools: toolNames([]), target: { dialect: "chat", server: "api", model: "m" } }
  const ask = (reader: AnswerReader, events: ReadonlyArray<object>) =>
    collect(chunks(provider, Stream.fromIterable(events), () => reader))

  it.effect("does not get it into the reason why an answer ends, or why the model refuses", function* () {
    const reason = "for sk-secret"
    const message = [{ type: "message_delta", delta: { stop_reason: reason } }]
    assert.strictEqual((yield* ask(anthropicAnswerReader(reading), message)).finishReason, "for <key>")
    const chat = [{ choices: [{ delta: {}, finish_reason: reason }] }]
    assert.strictEqual((yield* ask(chatAnswerReader(reading), chat)).finishReason, "for <key>")
    const whole = yield* chunkOf(provider, readGemini({ candidates: [{ finishReason: reason }] }, reading.target))
    assert.strictEqual(whole?.finishReason, "for <key>")
    const blocked = yield* Effect.flip(ask(geminiAnswerReader(reading), [{ promptFeedback: { blockReason: reason } }]))
    assert.deepInclude({ ...blocked.reason }, { _tag: "ContentPolicyError", finishReason: "for <key>" })
  })

  it.effect("does not get it into a failure", function* () {
    const error = { type: "invalid_request_error", message: "no sk-secret" }
    for (const reader of [anthropicAnswerReader, responsesAnswerReader, chatAnswerReader, geminiAnswerReader]) {
      const { message } = yield* Effect.flip(ask(reader(reading), [{ type: "error", error }]))
      assert.include(message, "<key>")
      assert.notInclude(message, "sk-secret")
    }
  })
})

it.effect.each<readonly [what: string, reader: (reading: Reading) => AnswerReader, events: ReadonlyArray<unknown>]>([
  ["nothing", chatAnswerReader, []],
  ["nothing but the mark of its end", chatAnswerReader, [endMark]],
  ["nothing but counts", chatAnswerReader, [{ choices: [], usage: { prompt_tokens: 9, completion_tokens: 0 } }]],
  ["nothing, for the Messages API", anthropicAnswerReader, [{ type: "ping" }]],
  ["nothing, for the Responses API", responsesAnswerReader, [{ type: "response.created" }]],
  ["nothing, for the Gemini API", geminiAnswerReader, []]
])("a server that answers with %s may have no model loaded, or one with a short context", ([, reader, events]) =>
  Effect.gen(function* () {
    const reading = { tools: toolNames([]), target: { dialect: "chat", server: "api", model: "m" } } as const
    const answer = chunks(provider, Stream.fromIterable(events), () => reader(reading))
    const { message, reason } = yield* Effect.flip(collect(answer))
    assert.strictEqual(reason._tag, "InvalidResponseError")
    assert.include(message, "its server sent nothing; check that it has loaded the model, with a context length")
  })
)

describe("a failure within an answer", () => {
  it.each([
    ["overloaded_error", { _tag: "InternalProviderError", status: 529 }],
    ["rate_limit_error", { _tag: "RateLimitError" }],
    ["rate_limit_exceeded", { _tag: "RateLimitError" }],
    ["authentication_error", { _tag: "AuthenticationError", kind: "InvalidKey" }],
    ["permission_error", { _tag: "AuthenticationError", kind: "InsufficientPermissions" }],
    ["billing_error", { _tag: "QuotaExhaustedError" }],
    ["insufficient_quota", { _tag: "QuotaExhaustedError" }],
    ["invalid_request_error", { _tag: "InvalidRequestError" }],
    ["not_found_error", { _tag: "InvalidRequestError" }],
    ["content_policy_violation", { _tag: "ContentPolicyError" }],
    ["context_length_exceeded", { _tag: "ContextLengthError" }],
    ["api_error", { _tag: "InternalProviderError", status: 500 }],
    ["timeout_error 504", { _tag: "InternalProviderError", status: 504 }],
    ["", { _tag: "InternalProviderError", status: 500 }]
  ] as const)("%s is a reason of its own", (kind, expected) => {
    assert.deepInclude({ ...reasonOfEvent({ kind, message: "so it is" }, provided) }, expected)
  })

  it("names the address where LM Studio serves nothing else", () => {
    const message = "Unexpected endpoint or method. (POST /chat/completions). Returning 200 anyway"
    assert.include(reasonOfEvent({ kind: "", message }, provided).message, "check BASE_URL")
  })
})

describe("an answer with the status of an error", () => {
  it.each([
    [302, {}, { _tag: "InvalidResponseError", detail: "a redirection (302)" }],
    [400, {}, { _tag: "InvalidRequestError", detail: "no" }],
    [400, { message: " " }, { _tag: "InvalidRequestError", detail: "HTTP 400" }],
    [400, { isKeyRefused: true }, { _tag: "AuthenticationError", kind: "InvalidKey", variable: "API_KEY" }],
    [400, { kind: "content_filter" }, { _tag: "ContentPolicyError", finishReason: "content_filter" }],
    [400, { message: "the image could not be processed" }, { _tag: "InvalidRequestError", refused: "image" }],
    [
      400,
      { message: "prompt is too long: 210,000 tokens > 200000" },
      { _tag: "ContextLengthError", tokens: 210_000, limit: 200_000 }
    ],
    [401, {}, { _tag: "AuthenticationError", kind: "InvalidKey" }],
    [402, {}, { _tag: "QuotaExhaustedError", detail: "no" }],
    [403, {}, { _tag: "AuthenticationError", kind: "InsufficientPermissions" }],
    [403, { message: "billing is off" }, { _tag: "QuotaExhaustedError" }],
    [404, {}, { _tag: "InvalidRequestError" }],
    [
      404,
      { isPage: true },
      {
        _tag: "InvalidRequestError",
        detail:
          "this address does not serve the Test API (HTTP 404 and a page); check BASE_URL, and the name of the model"
      }
    ],
    ...[
      [404, "404 page not found"],
      [404, "Not Found"],
      [404, "Resource not found"],
      [405, "Method Not Allowed"]
    ].map(
      ([status, message]) =>
        [
          Number(status),
          { message: String(message) },
          {
            _tag: "InvalidRequestError",
            detail: `this address does not serve the Test API (HTTP ${status}); check BASE_URL, and the name of the model`
          }
        ] as const
    ),
    [404, { message: "model 'x' not found" }, { _tag: "InvalidRequestError", detail: "model 'x' not found" }],
    [403, { message: "Content violates usage guidelines." }, { _tag: "ContentPolicyError" }],
    [403, { message: 'Your input was flagged for "violence"' }, { _tag: "ContentPolicyError" }],
    [400, { kind: "data_inspection_failed" }, { _tag: "ContentPolicyError", finishReason: "data_inspection_failed" }],
    [400, { message: "系统检测到不安全或敏感内容" }, { _tag: "ContentPolicyError" }],
    [400, { kind: "tool_use_failed" }, { _tag: "InvalidResponseError", detail: "no" }],
    [408, {}, { _tag: "InternalProviderError", status: 408 }],
    [409, {}, { _tag: "InternalProviderError", status: 409 }],
    [413, {}, { _tag: "RequestBytesError" }],
    [429, {}, { _tag: "RateLimitError" }],
    [429, { kind: "insufficient_quota" }, { _tag: "QuotaExhaustedError" }],
    [429, { kind: "RESOURCE_EXHAUSTED", message: "exceeded your current quota" }, { _tag: "RateLimitError" }],
    ...[
      "Insufficient balance or no resource package. Please recharge.",
      "余额不足或无可用资源包,请充值。",
      "Usage limit reached for 5 hour. Your limit will reset at 2026-01-20 10:00:00",
      "usage limit exceeded (2056)",
      "Extra usage is required for long context requests.",
      "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day",
      "The usage limit has been reached",
      "you've reached your hourly usage limit, please upgrade to continue",
      "Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-04-23 18:33:48",
      "Your team has either used all available credits or reached its monthly spending limit."
    ].map((message) => [429, { message }, { _tag: "QuotaExhaustedError", detail: message }] as const),
    [
      429,
      { kind: "RESOURCE_EXHAUSTED", message: "Your prepayment credits are depleted." },
      { _tag: "QuotaExhaustedError" }
    ],
    [
      429,
      { message: "Limit per minute reached. Your daily limit is 1000 and 3 are used." },
      { _tag: "RateLimitError" }
    ],
    [429, { message: "Too many requests. See usage guidelines at https://a.test" }, { _tag: "RateLimitError" }],
    [503, { message: "Overloaded; see our usage guidelines." }, { _tag: "InternalProviderError", status: 503 }],
    ...["tools[0].description: 'Sets the monthly spending limit'", "'input': 'inappropriate content'"].map(
      (quoted) => [400, { message: `Invalid value for ${quoted}` }, { _tag: "InvalidRequestError" }] as const
    ),
    [403, { message: "Key limit exceeded (total limit)." }, { _tag: "QuotaExhaustedError" }],
    [429, { exhaustedQuota: "PerDay" }, { _tag: "QuotaExhaustedError", detail: "PerDay" }],
    [500, {}, { _tag: "InternalProviderError", status: 500, detail: "no" }],
    [
      500,
      { message: "\n----\nin source: ...\nJinja Exception: System message must be at the beginning." },
      {
        _tag: "InternalProviderError",
        detail: "---- in source: ... Jinja Exception: System message must be at the beginning."
      }
    ],
    [502, { isPage: true }, { _tag: "InternalProviderError", status: 502 }]
  ] as const)("%i %o is a reason of its own", (status, fault, expected) => {
    assert.deepInclude(
      { ...reasonOfStatus(status, { kind: "", message: "no", ...fault }, undefined, provided) },
      expected
    )
  })

  it.each([
    [{}, {}, undefined],
    [{ "retry-after": "2" }, { retryMillis: 9_000 }, 2_000],
    [{ "retry-after-ms": "1.5", "retry-after": "2" }, {}, 1.5],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:09 GMT", date: "Thu, 01 Jan 2026 00:00:04 GMT" }, {}, 5_000],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:01 GMT", date: "Thu, 01 Jan 2026 00:00:04 GMT" }, {}, 0],
    [{ "retry-after": "soon" }, {}, undefined],
    [{}, { retryMillis: 9_000 }, 9_000],
    [{}, { message: "Please try again in 1.2s." }, 1_200],
    [{}, { message: "Please try again in 20ms." }, 20],
    [{}, { message: "Please try again in 2m13.5s." }, 133_500],
    [{}, { message: "Please try again in 1h2m3s." }, 3_723_000],
    [{}, { message: "Please retry after 20 seconds." }, 20_000]
  ] as const)("says with %o %o when to try again", (headers: Readonly<Record<string, string>>, fault, millis) => {
    const delay = retryAfter((name) => headers[name])
    for (const status of [429, 503]) {
      const reason = reasonOfStatus(status, { kind: "", message: "no", ...fault }, delay, provided)
      const waited = "retryAfter" in reason ? reason.retryAfter : undefined
      assert.strictEqual(waited === undefined ? undefined : Duration.toMillis(waited), millis)
    }
  })
})

it.effect("a key is sent where it can stand in a header, and none where none is needed", function* () {
  const keys = [
    ["sk-1", "sk-1"],
    [undefined, "MissingKey"],
    ["sk-1\nx", "InvalidKey"],
    ["schl\u00fcssel", "InvalidKey"]
  ] as const
  for (const [key, expected] of keys) {
    const told = yield* keyOf({ ...provider, key }).pipe(
      Effect.catch(({ reason }) => Effect.succeed("kind" in reason ? reason.kind : reason._tag))
    )
    assert.strictEqual(told, expected)
  }
  assert.isUndefined(yield* keyOf({ ...provider, key: undefined, needsKey: false }))
})

it.effect("a whole answer has the last end and the last counts of its pieces, and texts in a row as one", function* () {
  const usage = (answer: number) => ({ prompt: 1, answer, thoughts: 0, cached: 0 })
  const thought = { text: "a", thought: true }
  const answer = yield* collect(
    Stream.make(
      { parts: [thought, { ...thought, text: "b" }], usage: usage(1), finishReason: "OTHER" },
      { parts: [{ text: "c" }, { text: "d" }, { text: "e", thoughtSignature: "s" }], usage: usage(2) },
      { parts: [{ text: "f" }], finishReason: "STOP" }
    )
  )
  assert.deepStrictEqual(answer, {
    content: {
      role: "model",
      parts: [{ text: "ab", thought: true }, { text: "cd" }, { text: "e", thoughtSignature: "s" }, { text: "f" }]
    },
    finishReason: "STOP",
    usage: usage(2)
  })
})
