import { assert, describe, it } from "@effect/vitest"
import { type CountHistory, isCut, withCount } from "../../../src/domain/tokens/CutPrompts.ts"

/** Estimates and counts in order, and the numbers from 0 of those that are doubted. */
const sequences: ReadonlyArray<
  readonly [
    title: string,
    isLonger: boolean,
    counts: ReadonlyArray<readonly [number, number]>,
    doubted: ReadonlyArray<number>
  ]
> = [
  [
    "Ollama, from the second full prompt on",
    false,
    [
      [3_000, 2_900],
      [4_300, 4_096],
      [4_400, 4_096],
      [9_000, 4_096]
    ],
    [2, 3]
  ],
  [
    "a shorter request afterwards is believed",
    false,
    [
      [5_000, 4_096],
      [5_100, 4_096],
      [2_000, 1_900],
      [5_000, 4_096]
    ],
    [1, 3]
  ],
  ["far below the estimate, at once", false, [[20_000, 4_096]], [0]],
  [
    "whole messages are dropped",
    true,
    [
      [4_000, 3_900],
      [5_000, 3_700],
      [6_000, 4_010]
    ],
    [1, 2]
  ],
  [
    "another conversation may count fewer",
    false,
    [
      [4_000, 3_900],
      [5_000, 3_700]
    ],
    []
  ],
  [
    "the same request again",
    true,
    [
      [4_000, 3_900],
      [4_000, 3_900]
    ],
    []
  ],
  [
    "every tokenizer",
    true,
    [
      [1_000, 1_500],
      [2_000, 3_000],
      [3_000, 3_500],
      [9_000, 5_000]
    ],
    []
  ],
  [
    "a part of a count, as gateways report it",
    true,
    [
      [9_000, 12],
      [9_500, 14]
    ],
    []
  ],
  [
    "a server with a larger window since",
    false,
    [
      [5_000, 4_096],
      [5_100, 4_096],
      [9_000, 8_800],
      [4_700, 4_100]
    ],
    [1]
  ]
]

describe("a count of a prompt that the server cut", () => {
  it.each(sequences)("%s", (_, isLonger, counts, expected) => {
    let history: CountHistory = {}
    const doubted: Array<number> = []
    for (const [at, [estimated, counted]] of counts.entries()) {
      const isDoubted = isCut(history, estimated, counted, isLonger)
      if (isDoubted) doubted.push(at)
      history = withCount(history, estimated, counted, isDoubted)
    }
    assert.deepStrictEqual(doubted, expected)
  })
})
