import { assert, describe, it } from "@effect/vitest"
import { estimate } from "../../../src/domain/evaluation/EvaluationReport.ts"
import { seededRandom } from "../../../src/domain/evaluation/SeededRandom.ts"

const sessions = [9, 8, 10, 6, 7, 10, 9, 3].map((part) => ({ part, whole: 10 }))

describe("estimate", () => {
  it("has an interval around it that the seed decides", () => {
    const first = estimate(sessions, 7)
    assert.deepStrictEqual(first, estimate(sessions, 7))
    assert.notDeepEqual(first?.interval, estimate(sessions, 8)?.interval)
    const [low, high] = first?.interval ?? [1, 0]
    assert.isBelow(low, 0.775)
    assert.isAbove(high, 0.775)
    assert.isAtLeast(low, 0.3)
    assert.isAtMost(high, 1)
  })

  it("has no interval for one session, and is none without anything measured", () => {
    assert.deepStrictEqual(
      estimate(
        [
          { part: 1, whole: 2 },
          { part: 0, whole: 0 }
        ],
        1
      ),
      { value: 0.5, interval: undefined }
    )
    assert.isUndefined(estimate([{ part: 0, whole: 0 }], 1))
  })

  it("draws numbers evenly", () => {
    const next = seededRandom(3)
    const bins = [0, 0, 0, 0]
    for (let n = 0; n < 8_000; n += 1) {
      const bin = Math.floor(next() * 4)
      bins[bin] = (bins[bin] ?? 0) + 1
    }
    for (const bin of bins) assert.isAbove(bin, 1_500)
  })
})
