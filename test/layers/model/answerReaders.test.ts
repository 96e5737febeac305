import { Effect } from "effect"
import type { Part } from "../../../src/domain/content/Content.ts"
import { carriedState } from "../../../src/domain/wire/ModelState.ts"
import { toolNames } from "../../../src/domain/wire/ToolDeclarations.ts"
import * as AnthropicAnswer from "../../../src/layers/model/AnthropicAnswer.ts"
import * as OpenAiAnswer from "../../../src/layers/model/OpenAiAnswer.ts"
import { type ProviderNames, reasonOfEvent } from "../../../src/layers/model/ProviderErrors.ts"
import type { EventReader } from "../../../src/layers/model/ProviderExchange.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The events of an answer, cut at every place where a server may cut them, and what each kind of failure in them is. */

const provided: ProviderNames = { key: "API_KEY", baseUrl: "BASE_URL", api: "Test" }
const names = toolNames([])

/** What was said: texts and thoughts joined, then whatever else there is. */
const joined = (parts: ReadonlyArray<Part>): ReadonlyArray<Part> => {
  const of = (isThought: boolean) =>
    parts
      .filter((part) => part.thoughtSignature === undefined && (part.thought ?? false) === isThought)
      .map(({ text = "" }) => text)
      .join("")
  return [
    { text: of(true), thought: true },
    { text: of(false) },
    ...parts.filter((part) => part.text === undefined || part.thoughtSignature !== undefined)
  ]
}

const read = (reader: EventReader, events: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    const chunks = yield* Effect.forEach(events, reader.read)
    const all = [...chunks, yield* reader.end()].filter((chunk) => chunk !== undefined)
    return {
      parts: joined(all.flatMap(({ parts }) => parts)),
      finishReason: all.findLast((chunk) => chunk.finishReason !== undefined)?.finishReason,
      usage: all.findLast((chunk) => chunk.usage !== undefined)?.usage
    }
  })

/** A text in two pieces, for every place between them; and as many pieces as there are characters. */
const cuts = (text: string): ReadonlyArray<ReadonlyArray<string>> => [
  ...Array.from({ length: text.length - 1 }, (_, at) => [text.slice(0, at + 1), text.slice(at + 1)]),
  Array.from(text)
]

const signature = "c2lnbmF0dXJl"
const args = '{"path":"a.ts"}'
const call = { functionCall: { id: "c1", name: "look", args: { path: "a.ts" } } }

const block = (index: number, content_block: object, deltas: ReadonlyArray<object>): ReadonlyArray<object> => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index }
]

describe("an answer of the Messages API", () => {
  const eventsOf = (cut: (text: string) => ReadonlyArray<string>) => [
    {
      type: "message_start",
      message: { usage: { input_tokens: 10, cache_read_input_tokens: 3, cache_creation_input_tokens: 2 } }
    },
    ...block(0, { type: "thinking", thinking: "", signature: "" }, [
      ...cut("I think.").map((thinking) => ({ type: "thinking_delta", thinking })),
      ...cut(signature).map((piece) => ({ type: "signature_delta", signature: piece }))
    ]),
    ...block(1, { type: "redacted_thinking", data: "hidden" }, []),
    ...block(
      2,
      { type: "text", text: "" },
      cut("It is so.").map((text) => ({ type: "text_delta", text }))
    ),
    ...block(
      3,
      { type: "tool_use", id: "c1", name: "look", input: {} },
      cut(args).map((partial_json) => ({ type: "input_json_delta", partial_json }))
    ),
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 7, input_tokens: null } },
    { type: "message_stop" }
  ]
  const whole = {
    parts: [
      { text: "I think.", thought: true },
      { text: "It is so." },
      {
        text: "",
        thoughtSignature: carriedState(
          { dialect: "anthropic", server: "api", model: "m" },
          { type: "thinking", thinking: "I think.", signature }
        )
      },
      {
        text: "",
        thoughtSignature: carriedState(
          { dialect: "anthropic", server: "api", model: "m" },
          { type: "redacted_thinking", data: "hidden" }
        )
      },
      call
    ],
    finishReason: "STOP",
    usage: { prompt: 15, answer: 7, thoughts: 0, cached: 3, cacheWrite: 2 }
  }

  it.effect("is the same for any cut of its texts, signatures and arguments", function* () {
    for (let at = 0; at < cuts(args).length; at += 1) {
      const cut = (text: string) => cuts(text)[at] ?? cuts(text).at(-1) ?? [text]
      const reader = AnthropicAnswer.makeReader({
        tools: names,
        names: provided,
        hide: (text) => text,
        target: { dialect: "anthropic", server: "api", model: "m" }
      })
      assert.deepStrictEqual(yield* read(reader, eventsOf(cut)), whole)
    }
  })
})

describe("an answer of the Responses API", () => {
  it.effect("is the same for any cut of its texts", function* () {
    const reasoning = { type: "reasoning", id: "r1", summary: [], encrypted_content: signature }
    for (const pieces of cuts("It is so.")) {
      const reader = OpenAiAnswer.makeResponsesReader({
        tools: names,
        names: provided,
        hide: (text) => text,
        target: { dialect: "responses", server: "api", model: "m" }
      })
      const said = yield* read(reader, [
        { type: "response.reasoning_text.delta", delta: "I " },
        { type: "response.reasoning_summary_text.delta", delta: "think." },
        { type: "response.output_item.done", item: reasoning },
        ...pieces.map((delta, at) => ({
          type: at === 0 ? "response.output_text.delta" : "response.refusal.delta",
          delta
        })),
        {
          type: "response.output_item.done",
          item: { type: "function_call", call_id: "c1", name: "look", arguments: args }
        },
        {
          type: "response.completed",
          response: {
            usage: {
              input_tokens: 10,
              output_tokens: 7,
              input_tokens_details: { cached_tokens: 3 },
              output_tokens_details: { reasoning_tokens: 5 }
            }
          }
        }
      ])
      assert.deepStrictEqual(said, {
        parts: [
          { text: "I think.", thought: true },
          { text: "It is so." },
          {
            text: "",
            thoughtSignature: carriedState({ dialect: "responses", server: "api", model: "m" }, reasoning)
          },
          call
        ],
        finishReason: "STOP",
        usage: { prompt: 10, answer: 2, thoughts: 5, cached: 3 }
      })
    }
  })
})

describe("an answer of Chat Completions", () => {
  it.effect("is the same for any cut of its texts and of the arguments of two calls", function* () {
    for (const pieces of cuts(args)) {
      const delta = (more: object) => ({ choices: [{ delta: more }] })
      const called = (index: number, more: object) => delta({ tool_calls: [{ index, ...more }] })
      const reader = OpenAiAnswer.makeChatReader({
        tools: names,
        names: provided,
        hide: (text) => text,
        target: { dialect: "chat", server: "api", model: "m" }
      })
      const said = yield* read(reader, [
        delta({ reasoning_content: "I " }),
        delta({ reasoning: "think." }),
        delta({ content: "It is " }),
        delta({ refusal: "so." }),
        called(0, { id: "c1", function: { name: "look", arguments: "" } }),
        called(1, { id: "c2", function: { name: "list", arguments: "{}" } }),
        ...pieces.map((piece) => called(0, { function: { arguments: piece } })),
        { choices: [{ delta: {}, finish_reason: "tool_calls" }] },
        {
          choices: [],
          usage: {
            prompt_tokens: 10,
            completion_tokens: 7,
            prompt_tokens_details: { cached_tokens: 3 },
            completion_tokens_details: { reasoning_tokens: 5 }
          }
        }
      ])
      assert.deepStrictEqual(said, {
        parts: [
          { text: "I think.", thought: true },
          { text: "It is so." },
          {
            text: "",
            thoughtSignature: carriedState(
              { dialect: "chat", server: "api", model: "m" },
              { reasoning_content: "I ", reasoning: "think." }
            )
          },
          call,
          { functionCall: { id: "c2", name: "list", args: {} } }
        ],
        finishReason: "STOP",
        usage: { prompt: 10, answer: 2, thoughts: 5, cached: 3 }
      })
    }
  })
})

describe("a server that repeats the key", () => {
  const hide = (text: string) => text.replaceAll("sk-secret", "…")
  const readers: Readonly<Record<string, readonly [EventReader, ReadonlyArray<object>]>> = {
    Messages: [
      AnthropicAnswer.makeReader({
        tools: names,
        names: provided,
        hide,
        target: { dialect: "anthropic", server: "api", model: "m" }
      }),
      [{ type: "message_delta", delta: { stop_reason: "for sk-secret" } }]
    ],
    "Chat Completions": [
      OpenAiAnswer.makeChatReader({
        tools: names,
        names: provided,
        hide,
        target: { dialect: "chat", server: "api", model: "m" }
      }),
      [{ choices: [{ delta: {}, finish_reason: "for sk-secret" }] }]
    ]
  }

  it.effect.each(Object.keys(readers))("does not get it into the reason why an answer ends (%s)", (name) =>
    Effect.gen(function* () {
      const [reader, events] = readers[name] ?? assert.fail(name)
      assert.strictEqual((yield* read(reader, events)).finishReason, "for …")
    })
  )

  it.effect("does not get it into a failure", function* () {
    const error = { type: "invalid_request_error", message: "no sk-secret" }
    for (const reader of [
      AnthropicAnswer.makeReader({
        tools: names,
        names: provided,
        hide,
        target: { dialect: "anthropic", server: "api", model: "m" }
      }),
      OpenAiAnswer.makeResponsesReader({
        tools: names,
        names: provided,
        hide,
        target: { dialect: "responses", server: "api", model: "m" }
      }),
      OpenAiAnswer.makeChatReader({
        tools: names,
        names: provided,
        hide,
        target: { dialect: "chat", server: "api", model: "m" }
      })
    ]) {
      const { message } = yield* Effect.flip(read(reader, [{ type: "error", error }]))
      assert.include(message, "no …")
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
