import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import {
  type RetentionCandidate,
  expiredSessions,
  minRetentionMillis,
  parsePeriod,
  parseRetention
} from "../../../src/domain/session/SessionRetention.ts"
import { runsOf } from "../../support/runs.ts"

const hour = 3_600_000
const day = 24 * hour
const now = 1_763_000_000_000

const aged = (id: string, days: number, more: Partial<RetentionCandidate> = {}): RetentionCandidate => ({
  id,
  updatedAt: now - days * day,
  holder: undefined,
  problem: undefined,
  ...more
})
const gone = (
  sessions: ReadonlyArray<RetentionCandidate>,
  limits: { maxAge?: number; maxCount?: number },
  current?: string
) => expiredSessions(sessions, { maxAge: limits.maxAge, maxCount: limits.maxCount }, now, current).map(({ id }) => id)

describe("a period", () => {
  it.each([
    ["1h", hour],
    ["36h", 36 * hour],
    ["30d", 30 * day],
    ["2w", 14 * day],
    ["6m", 180 * day],
    ["007d", 7 * day]
  ] as const)("%s", (text, length) => {
    assert.strictEqual(parsePeriod(text), length)
  })

  it.each([
    "",
    "0d",
    "00h",
    "d",
    "30",
    "30 d",
    " 30d",
    "30d ",
    "30D",
    "1.5d",
    "-1d",
    "1y",
    "1d2h",
    "9".repeat(30) + "d",
    "٣d",
    "1d\n"
  ])("%j is none", (text) => {
    assert.isUndefined(parsePeriod(text))
  })
})

describe("settings", () => {
  it.each([
    [{ maxAge: "30" }, 'maxAge is "30"; expected a number above 0 and h, d, w or m, like 30d'],
    [{ maxAge: "0d" }, 'maxAge is "0d"; expected a number above 0 and h, d, w or m, like 30d'],
    [{ maxAge: "23h", maxCount: 3 }, 'maxAge is "23h"; expected at least a day, like 24h or 30d'],
    [{ maxCount: 0 }, "maxCount is 0; expected a whole number above 0"],
    [{ maxCount: 1.5 }, "maxCount is 1.5; expected a whole number above 0"],
    [{ maxAge: "30d", maxCount: Number.NaN }, "maxCount is NaN; expected a whole number above 0"]
  ] as const)("that are not understood name what was expected: %j", (settings, message) => {
    assert.deepStrictEqual(parseRetention(settings), Result.fail(message))
  })

  it("are parsed", () => {
    assert.deepStrictEqual(parseRetention({}), Result.succeed({ maxAge: undefined, maxCount: undefined }))
    assert.deepStrictEqual(
      parseRetention({ maxAge: "24h", maxCount: 1 }),
      Result.succeed({ maxAge: minRetentionMillis, maxCount: 1 })
    )
  })
})

describe("sessions to delete", () => {
  const all = [aged("a", 40), aged("b", 31), aged("c", 30), aged("d", 2), aged("e", 0.5)]

  it("by age: those not written for longer, oldest first", () => {
    assert.deepStrictEqual(gone(all, { maxAge: 30 * day }), ["a", "b"])
    assert.deepStrictEqual(gone(all, { maxAge: 30 * day - 1 }), ["a", "b", "c"])
  })

  it("by count: of two of the same age the one that is named first", () => {
    assert.deepStrictEqual(gone([aged("x", 40), aged("y", 40)], { maxCount: 1 }), ["x"])
    assert.deepStrictEqual(gone([aged("y", 40), aged("x", 40)], { maxCount: 1 }), ["x"])
  })

  it("never include one written within a day, even beyond the count", () => {
    assert.deepStrictEqual(gone([aged("x", 0), aged("y", 0.9), aged("z", 1)], { maxCount: 1, maxAge: day }), ["z"])
    assert.deepStrictEqual(gone([aged("later", -400)], { maxCount: 1, maxAge: day }), [])
  })

  it("never include the current one, which takes a place", () => {
    assert.deepStrictEqual(gone(all, { maxCount: 2 }, "a"), ["b", "c", "d"])
    assert.deepStrictEqual(gone(all, { maxAge: day }, "a"), ["b", "c", "d"])
  })

  it("never include one in use, nor one that cannot be opened", () => {
    const held = aged("held", 90, { holder: { pid: 1, since: 1 } })
    const broken = aged("broken", 90, { problem: "line 3: this is not JSON" })
    assert.deepStrictEqual(gone([held, broken, aged("old", 80)], { maxAge: day, maxCount: 1 }), ["old"])
  })

  it.prop(
    "by count are older than those kept, and leave at least as many as set",
    [
      Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 60 }))),
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 }))
    ],
    ([ages, maxCount]) => {
      const sessions = ages.map((days, index) => aged(`s${index}`, days))
      const left = new Set(gone(sessions, { maxCount }))
      const kept = sessions.filter(({ id }) => !left.has(id))
      const went = sessions.filter(({ id }) => left.has(id))
      assert.strictEqual(kept.length, Math.min(sessions.length, maxCount))
      assert.isTrue(kept.every((a) => went.every((b) => a.updatedAt >= b.updatedAt)))
    },
    { arbitrary: { runs: runsOf(500) } }
  )
})
