import { Layer } from "effect"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { outputGuards } from "../../../src/services/runtime/AgentProfile.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { assert, it } from "../../support/vitest.ts"

const output = "one line of what a command printed, among many others\n".repeat(400)

it.effect(
  "budgets of output summaries are per tool; other tools have none",
  Layer.merge(ScriptedModel.layer(["short"]), TokenCounter.layerEstimate),
  function* () {
    const { summarize } = yield* outputGuards({ summarizeToolOutput: { run_shell_command: { tokenBudget: 200 } } })
    if (summarize === undefined) return assert.fail("no summaries")
    assert.isUndefined(yield* summarize("read_file", output, ""))
    assert.isUndefined(yield* summarize("constructor", output, ""))
    assert.isDefined(yield* summarize("run_shell_command", output, ""))
    assert.strictEqual((yield* ScriptedModel.Script.use(({ calls }) => calls)).length, 1)
  }
)

it.effect(
  "there is no loop detection where the settings disable it",
  Layer.merge(ScriptedModel.layer([]), TokenCounter.layerEstimate),
  function* () {
    assert.isUndefined((yield* outputGuards({ loopDetection: false })).loops)
    assert.isDefined((yield* outputGuards({})).loops)
  }
)
