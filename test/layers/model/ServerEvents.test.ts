import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type EventBounds, ServerEvents } from "../../../src/layers/model/ServerEvents.ts"
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

/** The events of a body in pieces of these sizes, again and again; what is left of one; and how many bytes were taken. */
const split = (text: string, sizes: ReadonlyArray<number>, bounds: EventBounds) => {
  const bytes = new TextEncoder().encode(text)
  const decoder = new TextDecoder()
  const whole: Array<string> = []
  const events = new ServerEvents(
    bounds,
    (event) => whole.push(decoder.decode(event)),
    (what) => new Error(what)
  )
  let at = 0
  for (let count = 0; at < bytes.length; count += 1) {
    const size = sizes[count % sizes.length] ?? 1
    try {
      events.push(bytes.subarray(at, at + size))
    } catch (error) {
      return { whole, rest: undefined, failed: error instanceof Error ? error.message : String(error), at }
    }
    at += size
  }
  const rest = events.end()
  return { whole, rest: rest === undefined ? undefined : decoder.decode(rest), failed: undefined, at }
}

describe("server-sent events", () => {
  it.effect.prop(
    "are whole, for any pieces, without empty ones",
    [Schema.Array(Event), Schema.Literals(["", "data: cut"]), Sizes],
    ([events, rest, sizes]) =>
      Effect.sync(() => {
        const written = events.map(({ end, text }) => `${text}${ends[end]}`)
        const read = split(written.join("") + rest, sizes, { bytes: 1_000_000, events: 1_000 })
        const said = [...written, rest].filter((event) => event.includes("data") || event.includes("error"))
        // An empty event may begin with the line end of the one before it.
        assert.deepStrictEqual(
          [...read.whole, ...(read.rest === undefined ? [] : [read.rest])].map((event) => event.trim()),
          said.map((event) => event.trim())
        )
        assert.strictEqual(read.rest !== undefined, rest !== "")
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  for (const [what, most] of [
    ["bytes", { bytes: 10_000, events: 1_000_000 }],
    ["events", { bytes: 1_000_000, events: 100 }]
  ] as const) {
    it(`end after too many ${what}`, () => {
      const { at, failed } = split("data: {}\n\n".repeat(50_000), [3, 900], most)
      assert.strictEqual(failed, what)
      assert.isBelow(at, 12_000)
    })
  }
})
