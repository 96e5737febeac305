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

describe("a count of a prompt that the server cut", () => {
  it.each(sequences)("%s", (_, isLonger, counts, expected) => {
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
})
