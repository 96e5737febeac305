import { Effect } from "effect"
import { bounded } from "../../../src/layers/agent/A2aConnection.ts"
import { assert, it } from "../../support/vitest.ts"

it.live("is read up to its limit, and keeps its headers", function* () {
  const of = (size: number) =>
    bounded(new Response("x".repeat(size), { status: 418, headers: { a: "b" } }), 1_000, () => new Error("too much"))
  const whole = of(1_000)
  assert.deepStrictEqual([whole.status, whole.headers.get("a")], [418, "b"])
  assert.lengthOf(yield* Effect.promise(() => whole.text()), 1_000)
  assert.isTrue(yield* Effect.isFailure(Effect.tryPromise(() => of(1_001).text())))
})

it("ends when its signal does, also while nothing comes", async () => {
  const stop = new AbortController()
  const silent = new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(3)) }))
  const reader = bounded(silent, 10, () => new Error("too large"), stop.signal).body?.getReader()
  assert.strictEqual((await reader?.read())?.value?.length, 3)
  const next = reader?.read().then(
    () => "more",
    (error: unknown) => error
  )
  stop.abort(new Error("stopped"))
  assert.include(String(await next), "stopped")
})
