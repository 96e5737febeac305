import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import path from "node:path"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { answerHook } from "../../../src/services/transcripts/CompactionHook.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { root } from "../../support/paths.ts"

const services = Transcripts.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(NodeServices.layer, TokenCounter.layerEstimate, MemoryTempStore.layer))
)

const file = path.join(root, "examples/claude-code-subagent.jsonl")
const input = (fields: Record<string, string>) => JSON.stringify({ transcript_path: file, session_id: "s", ...fields })

describe("a hook around a compaction of Claude Code", () => {
  it.effect("hands in what the summary lost, within the hook's 10,000 characters", () =>
    Effect.gen(function* () {
      const answer: { hookSpecificOutput: { hookEventName: string; additionalContext: string } } = JSON.parse(
        yield* answerHook(input({ hook_event_name: "SessionStart", source: "compact" }))
      )
      const { additionalContext, hookEventName } = answer.hookSpecificOutput
      assert.strictEqual(hookEventName, "SessionStart")
      assert.isAtMost(additionalContext.length, 10_000)
      assert.include(additionalContext, "<user_words")
      assert.match(additionalContext, /entry="e1"/)
      assert.include(additionalContext, file)
    }).pipe(Effect.provide(services))
  )

  it.effect("gives a focus before it, and says nothing to other events", () =>
    Effect.gen(function* () {
      assert.isAtMost((yield* answerHook(input({ hook_event_name: "PreCompact", trigger: "auto" }))).length, 8_000)
      for (const fields of [{ hook_event_name: "SessionStart", source: "startup" }, { hook_event_name: "Stop" }]) {
        assert.strictEqual(yield* answerHook(input(fields)), "")
      }
    }).pipe(Effect.provide(services))
  )

  it.effect("refuses anything else in one line", () =>
    Effect.gen(function* () {
      for (const text of ["", "garbage", "[]", '{"hook_event_name":1}']) {
        assert.notInclude((yield* Effect.flip(answerHook(text))).message, "\n")
      }
    }).pipe(Effect.provide(services))
  )
})
