import { Effect, Layer, Stream, Tracer } from "effect"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import {
  ContentPolicyError,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  type ModelAnswer,
  type ModelChunk,
  ModelError,
  type ModelRequest,
  QuotaExhaustedError
} from "../../../src/services/model/Model.ts"
import { answerSpan, countSpan, SpanConversation, streamSpan } from "../../../src/services/model/ModelSpans.ts"
import { recordedSpans } from "../../support/spans.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const words = "the secret plan"
const request: ModelRequest = {
  model: "m-1",
  contents: [user(text(words))],
  systemInstruction: words,
  tools: [{ functionDeclarations: [{ name: "act", description: words }] }],
  generation: { maxOutputTokens: 100, temperature: 0.5 }
}
const usage = { prompt: 10, answer: 3, thoughts: 2, cached: 4 }
const answer: ModelAnswer = { content: model(text(words)), finishReason: "STOP", usage }
const chunks: ReadonlyArray<ModelChunk> = [
  { parts: [text(words)] },
  { parts: [text(words)], usage },
  { parts: [], finishReason: "STOP" }
]

/** Runs a call and returns the attributes of its spans, by name. */
const spansOf = (call: Effect.Effect<unknown, unknown>) =>
  Effect.suspend(() => {
    const { spans, tracer } = recordedSpans()
    return call.pipe(
      Effect.provide(Layer.succeed(Tracer.Tracer, tracer)),
      Effect.map(() => spans.map(({ attributes, name }) => [name, Object.fromEntries(attributes)] as const))
    )
  })

const expected = {
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": "openai",
  "gen_ai.request.model": "m-1",
  "gen_ai.request.max_tokens": 100,
  "gen_ai.request.temperature": 0.5,
  "gen_ai.response.finish_reasons": ["STOP"],
  "gen_ai.usage.input_tokens": 10,
  "gen_ai.usage.output_tokens": 5,
  "gen_ai.usage.cache_read.input_tokens": 4,
  model: "m-1",
  contents: 1
}

describe("spans of model calls", () => {
  it.effect("have the attributes of the conventions, and no words", function* () {
    const whole = yield* spansOf(Effect.succeed(answer).pipe(answerSpan("openai", request)))
    assert.deepStrictEqual(whole, [["Model.generate", expected]])
    const streamed = yield* spansOf(Stream.runDrain(Stream.fromIterable(chunks).pipe(streamSpan("openai", request))))
    assert.deepStrictEqual(streamed, [["Model.stream", expected]])
    assert.notInclude(JSON.stringify([whole, streamed]), words)
  })

  it.effect("are a client's, and name the conversation", function* () {
    const { spans, tracer } = recordedSpans()
    const calls = [
      Effect.succeed(answer).pipe(answerSpan("openai", request)),
      Stream.runDrain(Stream.fromIterable(chunks).pipe(streamSpan("openai", request))),
      Effect.succeed(1).pipe(countSpan("openai", request))
    ]
    yield* Effect.all(calls, { discard: true }).pipe(Effect.provideService(Tracer.Tracer, tracer))
    assert.deepStrictEqual(
      spans.map(({ kind }) => kind),
      ["client", "client", "client"]
    )
    for (const call of calls) {
      const [[, attributes] = ["", {}]] = yield* spansOf(Effect.provideService(call, SpanConversation, "case-1"))
      assert.strictEqual(attributes["gen_ai.conversation.id"], "case-1")
    }
  })

  const said = 'my card number is 4929 1234 5678 9012, and K\u00f6nigstra\u00dfe is my "home"'
  const echoed: ReadonlyArray<readonly [what: string, message: string]> = [
    ["the request", `max_tokens is not supported; request was ${JSON.stringify({ messages: [{ content: said }] })}`],
    ["a part of it", `cannot parse: ${said.slice(0, 30)}`],
    ["its escapes", `cannot parse: ${JSON.stringify(said).replace("ö", "\\u00f6").replace("ß", "\\u00df")}`],
    ["a URL", `no route for /v1?q=${encodeURIComponent(said)}`],
    ["capitals", `NOT ALLOWED: ${said.toUpperCase()}`],
    ["a number", "flagged: 4929"],
    ["one word in quotes", "flagged: 'Königstraße'"]
  ]
  it.effect.each(echoed)("do not have what a server quotes of the conversation: %s", function* ([, message]) {
    const asked: ModelRequest = { model: "m", contents: [user(text(said))] }
    const reasons = [
      new InvalidRequestError({ detail: message }),
      new InvalidResponseError({ detail: message }),
      new InternalProviderError({ status: 500, detail: message }),
      new QuotaExhaustedError({ detail: message }),
      new ContentPolicyError({ finishReason: message })
    ]
    for (const reason of reasons) {
      const failed = Effect.fail(new ModelError({ reason }))
      const runs = [
        failed.pipe(answerSpan("openai", asked)),
        Stream.runDrain(Stream.fromEffect(failed).pipe(streamSpan("openai", asked))),
        failed.pipe(countSpan("openai", asked))
      ]
      for (const run of runs) {
        const error = yield* Effect.flip(Effect.asVoid(run as Effect.Effect<unknown, ModelError>))
        assert.notMatch(error.message, /card number|4929|königstra|K\\u00f6nig|%C3%B6/i)
        assert.include(error.message, "…")
      }
    }
  })

  it.effect("have a server's own words", function* () {
    for (const detail of [
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      "messages.3.content.0: tool_use ids were found without tool_result blocks: toolu_01",
      "The model 'gpt-9' does not exist",
      "quota of 2026 reached (100 requests)"
    ]) {
      const failed = Effect.fail(new ModelError({ reason: new InvalidRequestError({ detail }) }))
      const error = yield* Effect.flip(failed.pipe(answerSpan("openai", request)))
      assert.include(error.message, detail)
    }
  })

  it.effect("begin anew with each run of a stream", function* () {
    const stream = Stream.fromIterable(chunks).pipe(streamSpan("openai", request))
    const [, [, second] = ["", {}]] = yield* spansOf(Effect.andThen(Stream.runDrain(stream), Stream.runDrain(stream)))
    assert.deepStrictEqual(second, expected)
  })
})
