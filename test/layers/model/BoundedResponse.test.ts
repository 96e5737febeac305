import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { bounded } from "../../../src/layers/model/BoundedResponse.ts"

it.live("is read up to its limit, and keeps its headers", () =>
  Effect.gen(function* () {
    const of = (size: number) =>
      bounded(new Response("x".repeat(size), { status: 418, headers: { a: "b" } }), 1_000, () => new Error("too much"))
    const whole = of(1_000)
    assert.deepStrictEqual([whole.status, whole.headers.get("a")], [418, "b"])
    assert.lengthOf(yield* Effect.promise(() => whole.text()), 1_000)
    assert.isTrue(yield* Effect.isFailure(Effect.tryPromise(() => of(1_001).text())))
  })
)
