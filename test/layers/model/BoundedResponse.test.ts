import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { bounded, boundedEvents } from "../../../src/layers/model/BoundedResponse.ts"
import { runsOf } from "../../support/runs.ts"

const { isBetween } = Schema

const ends = ["\n\n", "\r\r", "\r\n\r\n"]
const Index = Schema.Int.check(isBetween({ minimum: 0, maximum: 2 }))
/** An event, and how it ends. */
const Event = Schema.Struct({
  text: Schema.Literals(["data: {}", "data: {}\nid: 1", ": idle", "", '{"error":1}', "data: a\r\ndata: b"]),
  end: Index
})
const Sizes = Schema.NonEmptyArray(Schema.Int.check(isBetween({ minimum: 1, maximum: 9 })))

/** A body in pieces of these sizes, again and again; and what waits until it is cancelled. */
const pieces = (text: string, sizes: ReadonlyArray<number>) => {
  const bytes = new TextEncoder().encode(text)
  const { promise: cancelled, resolve } = Promise.withResolvers<void>()
  let at = 0
  let count = 0
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const size = sizes[count % sizes.length] ?? 1
      count += 1
      if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + size))
      at += size
      if (at >= bytes.length) controller.close()
    },
    cancel: () => resolve()
  })
  return { response: new Response(body), cancelled }
}

const chunksOf = (response: Response) =>
  Effect.promise(async () => {
    const chunks: Array<string> = []
    for await (const chunk of response.body ?? []) chunks.push(new TextDecoder().decode(chunk))
    return chunks
  })

describe("a response of events", () => {
  it.effect.prop(
    "yields each event, for any chunks, and skips empty ones",
    [Schema.Array(Event), Schema.Literals(["", "data: cut"]), Sizes],
    ([events, rest, sizes]) =>
      Effect.gen(function* () {
        const whole = events.map(({ end, text }) => `${text}${ends[end]}`)
        const { response } = pieces(whole.join("") + rest, sizes)
        const most = { bytes: 1_000_000, events: 1_000 }
        const read = yield* chunksOf(boundedEvents(response, most, (what) => new Error(what)))
        const said = [...whole, rest].filter((event) => event.includes("data") || event.includes("error"))
        // An empty event may begin with the line end of the one before it.
        assert.deepStrictEqual(
          read.map((event) => event.trim()),
          said.map((event) => event.trim())
        )
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  for (const [what, most] of [
    ["bytes", { bytes: 10_000, events: 1_000_000 }],
    ["events", { bytes: 1_000_000, events: 100 }]
  ] as const) {
    it.live(`is cancelled after too many ${what}`, () =>
      Effect.gen(function* () {
        const { cancelled, response } = pieces("data: {}\n\n".repeat(50_000), [3, 900])
        const failed = yield* Effect.flip(
          Effect.tryPromise(() => boundedEvents(response, most, (it) => new Error(it)).text())
        )
        assert.strictEqual(failed.cause instanceof Error ? failed.cause.message : failed.cause, what)
        yield* Effect.promise(() => cancelled)
      })
    )
  }
})

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
