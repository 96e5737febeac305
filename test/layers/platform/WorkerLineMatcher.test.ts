import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import * as WorkerLineMatcher from "../../../src/layers/platform/WorkerLineMatcher.ts"
import { LineMatcher } from "../../../src/services/platform/LineMatcher.ts"

const matcher = (source: string) => Effect.flatMap(LineMatcher, (matchers) => matchers.make(source, "u"))

describe("WorkerLineMatcher", () => {
  layer(WorkerLineMatcher.layer)((it) => {
    it.effect("returns the matching lines with numbers, without line ends, up to the limit", () =>
      Effect.gen(function* () {
        const { lines } = yield* matcher("^a")
        assert.deepStrictEqual(yield* lines("a1\nb\r\na2\r\n\na3", 10), [
          { number: 1, text: "a1" },
          { number: 3, text: "a2" },
          { number: 5, text: "a3" }
        ])
        assert.deepStrictEqual(yield* lines("a1\na2", 1), [{ number: 1, text: "a1" }])
        assert.deepStrictEqual(yield* lines("", 1), [])
      }).pipe(Effect.scoped)
    )

    it.effect("serves concurrent searches separately", () =>
      Effect.gen(function* () {
        const { lines } = yield* matcher("x")
        const numbers = Array.from({ length: 50 }, (_, i) => i)
        const found = yield* Effect.forEach(numbers, (i) => lines(`x${i}`, 1), { concurrency: "unbounded" })
        assert.deepStrictEqual(
          found.map((each) => each[0]?.text),
          numbers.map((i) => `x${i}`)
        )
      }).pipe(Effect.scoped)
    )

    it.effect("interruption ends an endless pattern", () =>
      Effect.gen(function* () {
        const run = Effect.scoped(Effect.flatMap(matcher("^(a+)+$"), ({ lines }) => lines(`${"a".repeat(60)}!`, 1)))
        const fiber = yield* Effect.forkChild(run, { startImmediately: true })
        yield* Effect.yieldNow
        const exit = yield* Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber))
        assert.isTrue(Exit.hasInterrupts(exit))
      })
    )
  })
})
