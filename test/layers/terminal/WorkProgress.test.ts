import { Deferred } from "effect"
import * as Highlight from "../../../src/layers/terminal/Highlight.ts"
import * as Theme from "../../../src/layers/terminal/Theme.ts"
import {
  endOfWorkSignal,
  progressRows,
  type ProgressState,
  WorkProgress
} from "../../../src/layers/terminal/WorkProgress.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const theme = Theme.make(
  false,
  Highlight.make(() => {})
)

const idle: ProgressState = {
  work: undefined,
  cards: [],
  areCardsOpen: false,
  queued: [],
  panel: [],
  isFirst: false
}
const thinking = { label: "thinking", seconds: 0, frame: 0, isStopping: false }
const card = { key: "1", isRunning: true, head: "run tests", body: ["ok 1"], more: ["ok 0", "ok 1"] }

const cases: ReadonlyArray<
  readonly [rule: string, state: Partial<ProgressState>, width: number, rows: ReadonlyArray<string>]
> = [
  ["without work there is a blank row", {}, 80, [""]],
  ["and none at the start", { isFirst: true }, 80, []],
  ["a panel stands below it", { panel: ["1 of 2"] }, 80, ["", "1 of 2"]],
  [
    "a long panel is cut",
    { isFirst: true, panel: ["1", "2", "3", "4", "5", "6", "7"] },
    80,
    ["1", "2", "3", "4", "5", "…"]
  ],
  ["work has a label", { work: thinking }, 80, ["", "⠋ thinking · Esc cancels", ""]],
  [
    "and that it stops",
    { work: { ...thinking, seconds: 3, frame: 11, isStopping: true } },
    80,
    ["", "⠙ stopping · 3 s", ""]
  ],
  [
    "and the seconds that are left of a wait, which count down",
    { work: { ...thinking, label: "waiting to retry", seconds: 25, left: 4 } },
    80,
    ["", "⠋ waiting to retry · 4 s left · Esc cancels", ""]
  ],
  ["and seconds", { work: { ...thinking, seconds: 3, frame: 11 } }, 80, ["", "⠙ thinking · 3 s · Esc cancels", ""]],
  [
    "a narrow screen cuts the label before the hint",
    { work: { ...thinking, label: "reading every file" } },
    24,
    ["", "⠋ reading… · Esc cancels", ""]
  ],
  [
    "calls and queued messages stand around it",
    {
      work: thinking,
      cards: [card],
      queued: [
        { text: "first", waits: false },
        { text: "next\nline", waits: true }
      ],
      panel: ["1 of 2"]
    },
    80,
    [
      "",
      "⠋ run tests ▸",
      "  ok 1",
      "⠋ thinking · Esc cancels",
      "at the next step: first",
      "after this: next line",
      "↑ takes back",
      "",
      "1 of 2"
    ]
  ],
  [
    "open cards show all of a call",
    { work: thinking, cards: [card], areCardsOpen: true },
    80,
    ["", "⠋ run tests", "  ok 0", "  ok 1", "⠋ thinking · Esc cancels", ""]
  ]
]
it.each(cases)("progressRows %s", (_rule, state, width, rows) =>
  assert.deepStrictEqual(progressRows({ ...idle, ...state }, theme, width), rows)
)

describe("endOfWorkSignal", () => {
  it.each([
    [9, 10, false],
    [60, 0, false],
    [10, 10, true]
  ] as const)("after %s s with bellAfter %s: %s", (seconds, bellAfter, isSent) =>
    assert.strictEqual(
      endOfWorkSignal(seconds, bellAfter),
      isSent ? "\u0007\u001b]9;palimpsest: done after 10 s\u0007" : ""
    )
  )
})

it.effect("WorkProgress cancels the innermost work, and returns to the one around it", function* () {
  const progress = new WorkProgress()
  const outer = progress.begin("outer", 0)
  const inner = progress.begin("inner\u001b[2J", 1)
  assert.strictEqual(inner.outer, outer.work)
  assert.notInclude(progress.label, "\u001b")
  progress.cancel()
  assert.isTrue(yield* Deferred.isDone(inner.work.interrupted))
  assert.isFalse(yield* Deferred.isDone(outer.work.interrupted))
  progress.cards.set("1", card)
  progress.end(inner.outer)
  assert.strictEqual(progress.current, outer.work)
  assert.strictEqual(progress.cards.size, 0)
  progress.end(outer.outer)
  progress.cancel()
  assert.isUndefined(progress.current)
})
