import { Effect, Layer, Stream, Tracer } from "effect"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import type { ModelAnswer, ModelChunk, ModelRequest } from "../../../src/services/model/Model.ts"
import { answerSpan, streamSpan } from "../../../src/services/model/ModelSpans.ts"
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
    const spans: Array<Tracer.NativeSpan> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
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

  it.effect("begin anew with each run of a stream", function* () {
    const stream = Stream.fromIterable(chunks).pipe(streamSpan("openai", request))
    const [, [, second] = ["", {}]] = yield* spansOf(Effect.andThen(Stream.runDrain(stream), Stream.runDrain(stream)))
    assert.deepStrictEqual(second, expected)
  })
})
