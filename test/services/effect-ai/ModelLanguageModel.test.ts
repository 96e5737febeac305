import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import { layerLanguageModel } from "../../../src/services/effect-ai/ModelLanguageModel.ts"
import * as Models from "../../../src/services/model/Model.ts"
import { isRetryable } from "../../../src/services/model/Retry.ts"

/** Every reason of a failure, as `effect/ai` calls it. */
const reasons: ReadonlyArray<readonly [Models.ModelErrorReason, string]> = [
  [new Models.NetworkError({ detail: "gone" }), "NetworkError"],
  [new Models.TimeoutError({ seconds: 3 }), "InternalProviderError"],
  [new Models.RateLimitError({}), "RateLimitError"],
  [new Models.QuotaExhaustedError({ detail: "all" }), "QuotaExhaustedError"],
  [new Models.AuthenticationError({ kind: "InvalidKey" }), "AuthenticationError"],
  [new Models.ContentPolicyError({ finishReason: "SAFETY" }), "ContentPolicyError"],
  [new Models.InvalidRequestError({ detail: "no" }), "InvalidRequestError"],
  [new Models.ContextLengthError({}), "InvalidRequestError"],
  [new Models.RequestBytesError({}), "InvalidRequestError"],
  [new Models.InternalProviderError({ status: 500 }), "InternalProviderError"],
  [new Models.InvalidResponseError({ detail: "no" }), "InvalidResponseError"],
  [new Models.AnswerTooLargeError({ unit: "bytes", limit: 1 }), "InvalidResponseError"]
]

describe("a failure of a model", () => {
  it("has a case for every reason", () => {
    assert.lengthOf(new Set(reasons.map(([{ _tag }]) => _tag)), Models.ModelErrorReason.members.length)
  })

  it.effect.each(reasons)("%s is %s of effect/ai, and can be retried as before", ([reason, tag]) =>
    Effect.gen(function* () {
      const failure = new Models.ModelError({ reason })
      const failing = Layer.mock(Models.Model, {
        generate: () => Effect.fail(failure),
        stream: () => Stream.fail(failure)
      })
      const layer = layerLanguageModel({ model: "m" }).pipe(Layer.provide(failing))
      for (const call of [
        LanguageModel.generateText({ prompt: "?" }),
        Stream.runDrain(LanguageModel.streamText({ prompt: "?" }))
      ]) {
        const { reason: given } = yield* Effect.flip(Effect.provide(Effect.asVoid(call), layer))
        assert.strictEqual(given._tag, tag)
        if (isRetryable(failure)) assert.isTrue(given.isRetryable)
      }
    })
  )
})
