import { Effect, Stream } from "effect"
import type { AnswerReader, Reading } from "../../../src/domain/wire/AnswerReader.ts"
import { anthropicAnswerReader } from "../../../src/domain/wire/anthropic/Answer.ts"
import { chatAnswerReader } from "../../../src/domain/wire/chat/Answer.ts"
import { geminiAnswerReader, readGemini } from "../../../src/domain/wire/gemini/Reader.ts"
import { responsesAnswerReader } from "../../../src/domain/wire/responses/Answer.ts"
import { toolNames } from "../../../src/domain/wire/ToolDeclarations.ts"
import { chunkOf, chunks, collect } from "../../../src/layers/model/AnswerChunks.ts"
import type { Provider } from "../../../src/layers/model/Provider.ts"
import { type ProviderNames, reasonOfEvent } from "../../../src/layers/model/ProviderErrors.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const provided: ProviderNames = { keys: ["API_KEY"], baseUrl: "BASE_URL", api: "Test" }

describe("a server that repeats the key", () => {
  const provider: Provider = {
    names: provided,
    key: "sk-secret",
    baseUrl: new URL("http://api"),
    model: undefined,
    timeouts: { chunk: "1 second", countTokens: "1 second" },
    headers: () => ({}),
    needsKey: true,
    send: () => Effect.die("nothing is sent")
  }
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
})
