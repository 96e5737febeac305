import { assert, describe, it } from "@effect/vitest"
import type { AgentResult } from "../../../src/services/agent/AgentRunner.ts"
import { outcomeOf, type RunEnd } from "../../../src/services/agent/LocalAgentProgress.ts"

const late: RunEnd = { reason: "MAX_TURNS", words: "reached its limit of 3 turns", hasGrace: true }

describe("the result of an agent", () => {
  const cases: ReadonlyArray<
    readonly [
      name: string,
      end: RunEnd | undefined,
      submitted: string | undefined,
      soFar: string,
      Pick<AgentResult, "text" | "reason" | "note">
    ]
  > = [
    ["submitted in time", undefined, "all is well", "so", { text: "all is well", reason: "GOAL" }],
    [
      "submitted in the grace turn says so",
      late,
      "half of it",
      "so",
      {
        text: "half of it",
        reason: "GOAL",
        note: "It had reached its limit of 3 turns; this is what it had until then."
      }
    ],
    ["submitted empty is a result", undefined, "", "so", { text: "", reason: "GOAL" }],
    [
      "not submitted is what it wrote last",
      late,
      undefined,
      "I looked at a.ts",
      {
        text: "It reached its limit of 3 turns. Its last text follows; it is not a finished result:\nI looked at a.ts",
        reason: "MAX_TURNS"
      }
    ],
    [
      "not submitted without a word is not empty",
      late,
      undefined,
      "",
      {
        text: "It reached its limit of 3 turns. It wrote nothing that could be returned.",
        reason: "MAX_TURNS"
      }
    ],
    [
      "not submitted without another reason is its silence",
      undefined,
      undefined,
      "",
      {
        text: "It stopped without submitting a result with complete_task. It wrote nothing that could be returned.",
        reason: "ERROR_NO_COMPLETE_TASK_CALL"
      }
    ]
  ]
  for (const [name, end, submitted, soFar, expected] of cases) {
    it(name, () => assert.deepStrictEqual(outcomeOf(end, submitted, soFar), expected))
  }
})
