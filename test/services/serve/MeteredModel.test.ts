import { Context, Effect, Fiber, Layer, Stream } from "effect"
import { text, user } from "../../../src/domain/content/Content.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { AuthenticationError, Model, ModelError } from "../../../src/services/model/Model.ts"
import { metered } from "../../../src/services/serve/MeteredModel.ts"
import { TenantLimiter } from "../../../src/services/serve/TenantLimiter.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const request = { model: "m", contents: [user(text("How high is the tide today?"))] }
const usage = { prompt: 60, answer: 30, thoughts: 10, cached: 0, total: 100 }
const answer = { content: { role: "model", parts: [{ text: "12:10" }] }, finishReason: "STOP", usage } as const
const failure = new ModelError({ reason: new AuthenticationError({ kind: "MissingKey" }) })

/** Uses the model of a tenant, and returns the tokens that were counted. */
const counted = Effect.fnUntraced(
  function* (step: ScriptedModel.Step, use: (model: Model["Service"]) => Effect.Effect<unknown, ModelError>) {
    const limiter = yield* TenantLimiter
    let tokens = 0
    const counting = {
      ...limiter,
      tokens: (tenant: string, amount: number) =>
        Effect.sync(() => {
          assert.strictEqual(tenant, "acme")
          tokens += amount
        })
    }
    const model = Context.get(yield* Layer.build(ScriptedModel.layer([step])), Model)
    yield* Effect.exit(use(metered(model, "acme", counting, yield* TokenCounter)))
    return tokens
  },
  Effect.scoped,
  Effect.provide(Layer.merge(TenantLimiter.layer({}), TokenCounter.layerEstimate))
)

const streamed = (model: Model["Service"]) => Stream.runDrain(model.stream(request))
const cut = <E>(work: Effect.Effect<unknown, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(work, { startImmediately: true })
    yield* Fiber.interrupt(fiber)
  })

describe("the tokens of a tenant's model", () => {
  it.effect("are those that the provider reports, once for each request", function* () {
    assert.strictEqual(yield* counted(answer, (model) => model.generate(request)), 100)
    assert.strictEqual(yield* counted(answer, streamed), 100)
  })

  it.effect("are estimated where the provider reports none, and where the answer is cut short", function* () {
    const asked = yield* counted(ScriptedModel.hang, (model) => cut(streamed(model)))
    assert.isAbove(asked, 0)
    assert.strictEqual(yield* counted(ScriptedModel.hang, (model) => cut(model.generate(request))), asked)
    const answered = yield* counted({ ...answer, usage: null }, streamed)
    assert.isAbove(answered, asked)
    assert.strictEqual(yield* counted({ ...answer, usage: null }, (model) => model.generate(request)), answered)
  })

  it.effect("are none where the model refused the request", function* () {
    assert.strictEqual(yield* counted(failure, streamed), 0)
    assert.strictEqual(yield* counted(failure, (model) => model.generate(request)), 0)
  })
})
