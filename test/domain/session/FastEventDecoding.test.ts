import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { decodeCommonEvent } from "../../../src/domain/session/FastEventDecoding.ts"
import { SessionEvent } from "../../../src/domain/session/Session.ts"
import { histories } from "../../../src/layers/testing/SessionHistories.ts"
import { runsOf } from "../../support/runs.ts"

type Json = Readonly<Record<string, unknown>>

const decode = Schema.decodeUnknownResult(SessionEvent)
const encode = Schema.encodeSync(SessionEvent)

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null

/** Values that some key of an event must not hold, and that others may. */
const oddValues: ReadonlyArray<unknown> = [
  null,
  true,
  -1,
  1.5,
  2 ** 53,
  Number.NaN,
  "",
  "e0",
  "e12",
  "h_x",
  "user",
  [],
  [1],
  {},
  { name: "f" },
  { prompt: 1, answer: 1, thoughts: 0, cached: 0 }
]
const oddKeys = ["id", "at", "author", "usage", "model", "text", "thought", "functionCall", "functionResponse", "later"]

/** The value with one change, somewhere in it. */
const changed = (value: unknown, steps: ReadonlyArray<number>): unknown => {
  const [step = 0, ...rest] = steps
  if (rest.length < 2 || !isObject(value)) return oddValues[step % oddValues.length]
  if (Array.isArray(value)) {
    const at = step % (value.length + 1)
    return at === value.length ? [...value, changed(undefined, rest)] : value.with(at, changed(value[at], rest))
  }
  const keys = Object.keys(value)
  const key = keys[step % (keys.length + 2)]
  if (key === undefined) return { ...value, [oddKeys[(rest[0] ?? 0) % oddKeys.length] ?? ""]: changed(undefined, rest) }
  if (rest[0] === 0) return Object.fromEntries(Object.entries(value).filter(([other]) => other !== key))
  return { ...value, [key]: changed(value[key], rest) }
}

/** What the fast path makes of a value agrees with the schema, where it makes anything of it. */
const agrees = (value: unknown): boolean => {
  if (!isObject(value)) return true
  const fast = decodeCommonEvent(value)
  if (fast === undefined) return true
  const slow = Result.getOrThrowWith(decode(value), () => new Error(`accepts ${JSON.stringify(value)}`))
  assert.deepStrictEqual(fast, slow)
  return true
}

const number = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })))

describe("the fast path for common events", () => {
  it.prop(
    "agrees with the schema on every event, and on every malformed event",
    [histories, Arbitrary.array(Arbitrary.array(number, { minLength: 2, maxLength: 8 }), { maxLength: 30 })],
    ([events, changes]) =>
      events
        .map((event): unknown => JSON.parse(JSON.stringify(encode(event))))
        .every((value) => agrees(value) && changes.every((steps) => agrees(changed(value, steps)))),
    { arbitrary: { runs: runsOf(300) } }
  )

  it("accepts messages and turns", () => {
    const entry = {
      id: "e1",
      content: { role: "user", parts: [{ text: "a" }] },
      tokens: [1],
      handles: ["h_abcdefghij"]
    }
    for (const event of [
      { _tag: "Appended", entry },
      { _tag: "Answered", message: entry, answer: { ...entry, id: "e2", model: "m", at: 1 } }
    ]) {
      assert.isDefined(decodeCommonEvent(event))
    }
  })
})
