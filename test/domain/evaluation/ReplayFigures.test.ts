import { assert, describe, it } from "@effect/vitest"
import { repeatedInVain, stablePrefix } from "../../../src/domain/evaluation/ReplayFigures.ts"

describe("stablePrefix", () => {
  const requests = [
    { tokens: 100, prefix: 0 },
    { tokens: 150, prefix: 100 },
    { tokens: 60, prefix: 10 },
    { tokens: 80, prefix: 30 }
  ]

  it("adds what each request passes on to the next one, and names the least share", () =>
    assert.deepStrictEqual(stablePrefix(requests, []), { part: 140, whole: 310, least: 10 / 150 }))

  it("leaves out what a compression changed", () =>
    assert.deepStrictEqual(stablePrefix(requests, [2]), { part: 130, whole: 160, least: 0.5 }))

  it("has nothing to compare in one request", () =>
    assert.deepStrictEqual(stablePrefix(requests.slice(0, 1), []), { part: 0, whole: 0, least: 1 }))
})

describe("repeatedInVain", () => {
  const table = [
    ["a compression long after another one", [1, 100, 50], [9, 100, 99], 0],
    ["one right after another that saves much", [1, 100, 50], [2, 100, 50], 0],
    ["one right after another that saves less than a tenth", [1, 100, 50], [2, 100, 91], 1],
    ["one of the same turn that fails", [2, 100, 50], [2, 90, 90], 1]
  ] as const
  for (const [what, first, second, count] of table) {
    it(`counts ${count}: ${what}`, () =>
      assert.strictEqual(
        repeatedInVain([first, second].map(([turn, before, after]) => ({ turn, before, after }))),
        count
      ))
  }
})
