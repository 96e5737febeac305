import { Cause, Effect, Exit, Fiber, Stream } from "effect"
import { call, model, text, user } from "../../../src/domain/content/Content.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { Model, type ModelAnswer, ModelError, RateLimitError } from "../../../src/services/model/Model.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const request = { model: "scripted", contents: [user(text("What is the time?"))] }
const limited = new ModelError({ reason: new RateLimitError({}) })
const called: ModelAnswer = {
  content: model(text("I will look.\nNow."), call("clock", {}, "c1")),
  finishReason: "STOP",
  usage: { prompt: 7, answer: 3, thoughts: 0, cached: 0 }
}

const generate = Model.use((service) => service.generate(request))

describe("a scripted model", () => {
  it.effect(
    "returns texts, responses and errors in order, and records the requests",
    ScriptedModel.layer(["noon", called, limited]),
    function* () {
      const service = yield* Model
      const script = yield* ScriptedModel.Script
      const first = yield* service.generate(request)
      assert.deepStrictEqual(first, { content: model(text("noon")), finishReason: "STOP", usage: null })
      assert.strictEqual(yield* service.generate(request), called)
      assert.strictEqual(yield* script.left, 1)
      assert.strictEqual(yield* Effect.flip(service.generate(request)), limited)
      assert.strictEqual(yield* script.left, 0)
      const calls = yield* script.calls
      assert.deepStrictEqual(
        calls.map(({ method }) => method),
        ["generate", "generate", "generate"]
      )
      assert.isTrue(calls.every((made) => made.request === request))
    }
  )

  it.effect("dies at a call without a step, and names it", ScriptedModel.layer(["once"]), function* () {
    yield* generate
    const exit = yield* Effect.exit(generate)
    assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    assert.include(
      Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "",
      "the script of 1 answers has no step for call 2 (generate)"
    )
  })

  it.effect("streams a response line by line, then its end", ScriptedModel.layer([called, limited]), function* () {
    const service = yield* Model
    const chunks = yield* Stream.runCollect(service.stream(request))
    assert.deepStrictEqual(chunks, [
      { parts: [text("I will look.\n")] },
      { parts: [text("Now.")] },
      { parts: [call("clock", {}, "c1")] },
      { parts: [], finishReason: "STOP", usage: { prompt: 7, answer: 3, thoughts: 0, cached: 0 } }
    ])
    assert.strictEqual(yield* Effect.flip(Stream.runDrain(service.stream(request))), limited)
  })

  it.effect(
    "hangs until interrupted, and records the interruption",
    ScriptedModel.layer(() => ScriptedModel.hang),
    function* () {
      const service = yield* Model
      const script = yield* ScriptedModel.Script
      for (const work of [generate, Stream.runDrain(service.stream(request))]) {
        const fiber = yield* Effect.forkChild(work, { startImmediately: true })
        yield* Fiber.interrupt(fiber)
      }
      assert.strictEqual(yield* script.interrupted, 2)
    }
  )

  it.effect(
    "responds by a function of the request and the call number",
    ScriptedModel.layer((asked, index) => `${asked.model} ${index}`),
    function* () {
      const answers = yield* Effect.all([generate, generate])
      assert.deepStrictEqual(
        answers.map(({ content }) => content),
        [model(text("scripted 0")), model(text("scripted 1"))]
      )
    }
  )

  it.effect("counts by the estimator, or as configured", function* () {
    const count = Model.use((service) => service.countTokens(request))
    assert.isAbove(yield* Effect.provide(count, ScriptedModel.layer([])), 3)
    assert.strictEqual(
      yield* Effect.provide(
        count,
        ScriptedModel.layer([], () => 99)
      ),
      99
    )
    const failed = yield* Effect.flip(
      Effect.provide(
        count,
        ScriptedModel.layer([], () => limited)
      )
    )
    assert.strictEqual(failed, limited)
  })
})
