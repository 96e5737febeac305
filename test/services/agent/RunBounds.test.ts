import { TestClock } from "effect/testing"
import { builtInPrices, pricesWith } from "../../../src/domain/tokens/Prices.ts"
import { afterUse, exceededLimit, type Limits, watchBounds } from "../../../src/services/agent/RunBounds.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const used = { turns: 3, tokens: 1_000, cost: 0.5 }

describe("the limit that a run has reached", () => {
  const cases: ReadonlyArray<readonly [limits: Limits, limit: string | undefined]> = [
    [{}, undefined],
    [{ turns: 4, tokens: 1_001, cost: 0.51 }, undefined],
    [{ turns: 3 }, "turns"],
    [{ tokens: 1_000 }, "tokens"],
    [{ cost: 0.5 }, "cost"],
    [{ turns: 3, tokens: 1, cost: 0 }, "turns"],
    [{ turns: Number.NaN }, "turns"],
    [{ tokens: Number.NaN }, "tokens"],
    [{ cost: Number.NaN }, "cost"]
  ]
  for (const [limits, limit] of cases) {
    it(`${JSON.stringify(limits)}: ${limit ?? "none"}`, () => {
      const stop = exceededLimit(limits, used)
      assert.strictEqual(stop?._tag === "Limit" ? stop.limit : undefined, limit)
    })
  }
})

it("an answer uses its tokens, and dollars where its model has a price", () => {
  const usage = { prompt: 100, answer: 10, thoughts: 5, cached: 0 }
  assert.deepStrictEqual(afterUse(used, "m", null, builtInPrices), used)
  assert.deepStrictEqual(afterUse(used, "nobody's-model", usage, builtInPrices), { turns: 3, tokens: 1_115, cost: 0.5 })
  assert.isAbove(afterUse(used, "gemini-2.5-pro", usage, builtInPrices).cost, 0.5)
  const own = pricesWith({ "nobody's-model": { price: { input: 1_000_000, output: 0 } } })
  assert.isAbove(afterUse(used, "nobody's-model", usage, own).cost, 1)
})

it.effect.each([
  [59_940, "59.9 seconds"],
  [60_000, "1 minute"],
  [5_430_000, "90.5 minutes"]
] as const)("a run of %d ms is stopped with its length", function* ([time, length]) {
  const { isStopped, stopped } = yield* watchBounds({ time }, undefined, (work) => work)
  yield* TestClock.adjust(time - 1)
  assert.isFalse(yield* isStopped)
  yield* TestClock.adjust(1)
  const stop = yield* stopped
  assert.include(stop._tag === "Limit" ? stop.message : "", ` ${length},`)
})
