import { assert, it } from "@effect/vitest"
import { stateOfWork } from "../../../src/domain/evaluation/StateMeasure.ts"
import { compactionOf, measured, ran, replacementOf } from "../../support/compactions.ts"

it.each([
  ["right answers", "- tests passed: npm test (e9)", 2, 0],
  ["no answers", "Go on.", 0, 0],
  ["false answers, which count twice", "- tests failed: npm test (e9)", -2, 2]
] as const)("of two questions, the exit code and whether the tests pass: %s", (_, context, right, wrong) => {
  const figures = measured(
    stateOfWork,
    compactionOf(ran("Bash", { command: "npm test" }, "3 tests passed"), []),
    replacementOf(context)
  )
  assert.deepStrictEqual(
    ["statesRight", "statesStale", "statesWrong"].map((key) => figures[key]),
    [right, 0, wrong].map((part) => ({ part, whole: 2 }))
  )
})
