import { Effect, Fiber } from "effect"
import { eachItem } from "../../../src/services/evaluation/Steps.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Works for about a millisecond. */
const work = (item: number): number => {
  const until = performance.now() + 1
  while (performance.now() < until);
  return item
}

describe("work on one item after another", () => {
  it.effect("returns the results in order", function* () {
    assert.deepStrictEqual(yield* eachItem(["a", "b"], (item) => `${item}${item}`), ["aa", "bb"])
    assert.deepStrictEqual(yield* eachItem([], work), [])
  })

  it.live("lets others run, and ends when it is interrupted", function* () {
    const working = yield* Effect.forkChild(
      eachItem(
        Array.from({ length: 1_000 }, (_, item) => item),
        work
      )
    )
    yield* Effect.sleep(20)
    yield* Fiber.interrupt(working)
    assert.strictEqual((yield* Fiber.await(working))._tag, "Failure")
  })
})
