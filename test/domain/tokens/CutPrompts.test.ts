import { assert, describe, it } from "@effect/vitest"
import { type CountHistory, isCut, withCount } from "../../../src/domain/tokens/CutPrompts.ts"

/** Estimates and counts in order, as `estimate/count`, and the numbers from 0 of those that are doubted. */
const sequences: ReadonlyArray<
  readonly [title: string, isLonger: boolean, counts: string, doubted: ReadonlyArray<number>]
> = [
  ["Ollama, from the second full prompt on", false, "3000/2900 4300/4096 4400/4096 9000/4096", [2, 3]],
  ["a shorter request afterwards is believed", false, "5000/4096 5100/4096 2000/1900 5000/4096", [1, 3]],
  ["far below the estimate, at once", false, "20000/4096", [0]],
  ["whole messages are dropped", true, "4000/3900 5000/3700 6000/4010", [1, 2]],
  ["another conversation may count fewer", false, "4000/3900 5000/3700", []],
  ["the same request again", true, "4000/3900 4000/3900", []],
  ["every tokenizer", true, "1000/1500 2000/3000 3000/3500 9000/5000", []],
  ["a part of a count, as gateways report it", true, "9000/12 9500/14", []],
  ["a server with a larger window since", false, "5000/4096 5100/4096 9000/8800 4700/4100", [1]]
]

it.each(sequences)("a count of a prompt that the server cut %s", (_, isLonger, counts, expected) => {
  let history: CountHistory = {}
  const doubted: Array<number> = []
  for (const [at, pair] of counts.split(" ").entries()) {
    const [estimated = 0, counted = 0] = pair.split("/").map(Number)
    const isDoubted = isCut(history, estimated, counted, isLonger)
    if (isDoubted) doubted.push(at)
    history = withCount(history, estimated, counted, isDoubted)
  }
  assert.deepStrictEqual(doubted, expected)
})

const last = { estimated: 4_000, counted: 3_900 }

describe("the edges of what is doubted", () => {
  it.each<readonly [string, CountHistory, estimated: number, counted: number, isLonger: boolean, isDoubted: boolean]>([
    ["no window is smaller", {}, 10_000, 511, true, false],
    ["the smallest window", {}, 10_000, 512, false, true],
    ["three tenths are plausible", {}, 2_000, 600, false, false],
    ["fewer are not", {}, 2_000, 599, false, true],
    ["the same count of hardly more", { last }, 4_023, 3_900, false, false],
    ["the same count of more", { last }, 4_024, 3_900, false, true],
    ["the same conversation, hardly longer", { last }, 4_255, 3_901, true, false],
    ["longer, and hardly more counted", { last }, 4_256, 3_901, true, true],
    ["longer, and a tenth counted", { last }, 4_256, 3_926, true, false],
    ["another conversation", { last }, 4_256, 3_901, false, false],
    ["near what it kept", { last, kept: 1_000 }, 1_211, 1_100, false, true],
    ["near what it kept, and sent so", { last, kept: 1_000 }, 1_210, 1_100, false, false],
    ["not near what it kept", { last, kept: 1_000 }, 1_400, 1_101, false, false],
    ["near from below", { kept: 1_000 }, 991, 900, false, true]
  ])("%s", (_, history, estimated, counted, isLonger, isDoubted) => {
    assert.strictEqual(isCut(history, estimated, counted, isLonger), isDoubted)
  })

  it("what a server keeps is forgotten when it counts more", () => {
    const kept = [999, 1_000, 1_001].map((counted) => withCount({ kept: 1_000 }, 5_000, counted, false).kept)
    assert.deepStrictEqual(kept, [1_000, 1_000, undefined])
    assert.deepStrictEqual(withCount({ last, kept: 1_000 }, 5_000, 2_000, true), {
      last: { estimated: 5_000, counted: 2_000 },
      kept: 2_000
    })
  })
})
