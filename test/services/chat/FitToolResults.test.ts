import { Effect } from "effect"
import { type Part, response, text } from "../../../src/domain/content/Content.ts"
import type { OutputBound } from "../../../src/domain/conversation/ToolOutputBound.ts"
import { entry } from "../../../src/layers/testing/SessionHistories.ts"
import { withBounds } from "../../../src/services/chat/AppendMessages.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { assert, it } from "../../support/vitest.ts"

const result = (words: number, name = "f") => response(name, { output: "word ".repeat(words) })
const image: Part = { inlineData: { mimeType: "image/png", data: "A".repeat(4_000) } }
const chars: OutputBound = { most: 20_000, form: "head-tail-chars", lines: 7 }
const lines: OutputBound = { most: 20_000, form: "head-tail-lines", lines: 7 }
const sizes = (...words: ReadonlyArray<number>) => words.map((count) => result(count))

/** The tokens of the parts, the room, and how the parts are shown: their form or text, size and tokens. */
const cases: ReadonlyArray<
  readonly [what: string, parts: ReadonlyArray<Part>, room: number, shown: string, bound?: OutputBound]
> = [
  ["all that fits", sizes(100, 200), 400, ""],
  ["nothing without a bound", sizes(100, 200), 1, "", { ...chars, most: 0 }],
  ["no texts", [text("word ".repeat(999))], 1, ""],
  ["one too long", sizes(100, 5_000), 90_000, "1: head-tail-chars 20000 4098"],
  ["one as long as it may be", sizes(4_000), 90_000, ""],
  ["by lines", sizes(4_001), 90_000, "0: head-tail-lines 7 229", lines],
  ["the largest gives way", sizes(3_000, 10, 200), 1_000, "0: head-tail-chars 4255 918, 2: text 23"],
  [
    "equal shares",
    sizes(3_000, 1_000, 2_000),
    1_200,
    "0: head-tail-chars 2614 586, 1: head-tail-chars 2598 583, 2: text 23"
  ],
  ["one that is just its share", sizes(1_000, 3_000), 2_038, "1: head-tail-chars 4526 971"],
  ["a little too much", sizes(501, 500), 1_000, "0: head-tail-chars 2188 499, 1: head-tail-chars 2188 499"],
  ["no room", sizes(3_000, 3_000), 1, "0: head-tail-chars 400 137, 1: head-tail-chars 400 137"],
  ["media", [image, result(3_000)], 100, "0: text 41 3000 bytes, 1: head-tail-chars 400 137"],
  ["media that fit", [image, result(3_000)], 2_000, "1: head-tail-chars 7738 1622"],
  ["a summary in place of the third", sizes(10, 10, 3_000), 90_000, "2: text 23"],
  ["a summary that is longer is not taken", sizes(10, 10, 10), 90_000, ""]
]

it.effect(
  "results get their share of the room, the small ones what they need",
  TokenCounter.layerEstimate,
  function* () {
    const counter = yield* TokenCounter
    const found = yield* Effect.forEach(cases, ([what, parts, room, , bound = chars]) =>
      Effect.gen(function* () {
        const whole = { ...entry(2, parts), tokens: yield* counter.count(parts) }
        const { bounded = {} } = yield* withBounds(whole, { "2": "a summary of this" }, bound, room)
        const shown = Object.entries(bounded).map(([index, one]) =>
          "text" in one
            ? `${index}: text ${one.tokens}${/ \d+ bytes/.exec(one.text)?.[0] ?? ""}`
            : `${index}: ${one.form} ${one.size} ${one.tokens}`
        )
        return [what, shown.join(", ")]
      })
    )
    assert.deepStrictEqual(
      found,
      cases.map(([what, , , shown]) => [what, shown])
    )
  }
)
