import { assert, describe, it } from "@effect/vitest"
import type { Figures } from "../../../src/domain/evaluation/Measure.ts"
import { type PlayedStrategy, replayVerdict } from "../../../src/domain/evaluation/ReplayVerdict.ts"

/** The figures of facts: how many there are, how many of them are in the context, and how many there after one recall. */
const facts = (whole: number, kept: number, reachable = whole): Figures => ({
  factsKept: { part: kept, whole },
  factsReachable: { part: reachable, whole }
})
const one: PlayedStrategy = {
  strategy: "palimpsest",
  sent: 3_041_713,
  cost: 3.83,
  refused: 0,
  compressions: 7,
  figures: facts(377, 320)
}
const other: PlayedStrategy = { ...one, strategy: "pi", sent: 4_775_948, cost: 4.8, figures: facts(332, 305) }

const rows: ReadonlyArray<
  readonly [rule: string, played: ReadonlyArray<PlayedStrategy>, verdict: ReadonlyArray<string>]
> = [
  ["nothing", [], []],
  [
    "one strategy",
    [one],
    [
      "139 turns in a window of 64,000 tokens took 7 compressions with `palimpsest`: 3,041,713 tokens sent, $3.83.",
      "Of 377 names that the agent used again, 85 % are still in the context with `palimpsest`; the others are one recall away."
    ]
  ],
  [
    "all facts in the context",
    [{ ...one, figures: facts(100, 100) }],
    [
      "139 turns in a window of 64,000 tokens took 7 compressions with `palimpsest`: 3,041,713 tokens sent, $3.83.",
      "Of 100 names that the agent used again, 100 % are still in the context with `palimpsest`."
    ]
  ],
  [
    "two strategies",
    [one, other],
    [
      "`palimpsest` costs least in a window of 64,000 tokens: $3.83, 20 % less than `pi` ($4.80).",
      "Of the names that the agent used again, 92 % of 332 are still in the context with `pi`, 85 % of 377 with `palimpsest`; the others are one recall away."
    ]
  ],
  [
    "without prices, with losses and refusals",
    [
      { ...one, cost: null, figures: facts(100, 50, 80), refused: 2 },
      { ...other, cost: null, figures: facts(100, 40, 70) }
    ],
    [
      "`palimpsest` sends least in a window of 64,000 tokens: 3,041,713 tokens, 36 % less than `pi` (4,775,948 tokens).",
      "Of the names that the agent used again, 50 % of 100 are still in the context with `palimpsest`, 40 % of 100 with `pi`; with one recall, 80 % with `palimpsest`, 70 % with `pi`.",
      "Messages that no request could hold: 2 with `palimpsest`; take a larger window."
    ]
  ],
  [
    "no compression",
    [{ ...one, cost: null, compressions: 0, figures: facts(0, 0) }],
    [
      "139 turns in a window of 64,000 tokens took 0 compressions with `palimpsest`: 3,041,713 tokens sent.",
      "Nothing was compressed; a smaller window shows what a strategy does."
    ]
  ],
  [
    "equal costs",
    [one, { ...one, strategy: "pi", figures: facts(0, 0) }],
    [
      "All strategies cost the same in a window of 64,000 tokens: $3.83.",
      "Of 377 names that the agent used again, 85 % are still in the context with `palimpsest`; the others are one recall away."
    ]
  ]
]

describe("the verdict on a replay", () => {
  for (const [rule, played, verdict] of rows) {
    it(rule, () => assert.deepStrictEqual(replayVerdict(played, { window: 64_000, turns: 139 }), verdict))
  }
})
