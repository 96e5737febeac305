import { Effect, Layer } from "effect"
import { callsOf, failedModelsOf, type SummaryCall } from "../../../../src/domain/compression/Compression.ts"
import { modelNames } from "../../../../src/domain/compression/PolicyOptions.ts"
import { defaultPolicy, type Policy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { strategies } from "../../../../src/domain/compression/strategies/Strategies.ts"
import { model, text, user } from "../../../../src/domain/content/Content.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import { compressWith } from "../../../../src/services/compression/CompressionWorkflow.ts"
import { runners } from "../../../../src/services/compression/strategies/StrategyRunners.ts"
import { Summarizer, SummarizerError } from "../../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { limited, servicesWith, written } from "../../../support/compressing.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** Several summarizing models, in every strategy. */

const sections = ["overall_goal", "active_constraints", "key_knowledge", "artifact_trail", "file_system_state"]
const snapshot = `<state_snapshot>${[...sections, "recent_actions", "task_state"]
  .map((name) => `<${name}>\n- the decision was made\n</${name}>`)
  .join("\n")}</state_snapshot>`

const contents = Array.from({ length: 24 }, (_, n) => [
  user(text(`question ${n}: ${"what about this? ".repeat(60)}`)),
  model(text(`answer ${n}: ${"that is so. ".repeat(60)}`))
]).flat()

/** Compresses with models of which these fail. Returns the outcome and the models in the order in which they were asked. */
const compressed = Effect.fnUntraced(function* (
  strategy: keyof typeof runners,
  failing: Readonly<Record<string, SummarizerError | string>>,
  policy: Partial<Policy>
) {
  const asked: Array<string | undefined> = []
  const answerOf = (name: string | undefined, purpose: SummaryCall["purpose"]) =>
    Effect.suspend((): Effect.Effect<SummaryCall, SummarizerError> => {
      if (asked.at(-1) !== name) asked.push(name)
      const bad = failing[name ?? ""]
      if (bad instanceof SummarizerError) return Effect.fail(bad)
      return Effect.succeed(written(bad ?? snapshot, purpose, name ?? ""))
    })
  const summarizer = Layer.succeed(Summarizer, {
    summarize: (request) =>
      Effect.map(answerOf(request.model, "generate"), (call) => ({ text: call.answer, calls: [call] })),
    ask: (request) => answerOf(request.model, request.purpose)
  })
  return yield* Effect.gen(function* () {
    const request = yield* requestFor(
      contents.map((content) => ({ content })),
      {
        ...defaultPolicy,
        strategy,
        summarizer: "model",
        ladder: false,
        minGain: 0,
        preserve: 0.1,
        limit: TokenCount.make(16_000),
        ...policy
      }
    )
    const { outcome } = yield* compressWith(runners[strategy], { ...request, forced: true })
    return { outcome, asked }
  }).pipe(Effect.provide(servicesWith(summarizer)))
})

describe("several summarizing models", () => {
  it.effect.each(strategies.map(({ name }) => name))("%s asks the next one, and keeps to it", function* (strategy) {
    const { asked, outcome } = yield* compressed(strategy, { a: limited, b: " " }, { model: ["a", "b", "c", "d"] })
    assert.strictEqual(outcome._tag, "Compressed")
    assert.deepStrictEqual(asked, ["a", "b", "c"])
    assert.deepStrictEqual(
      failedModelsOf(outcome).map(({ message, model: name }) => `${name}: ${message}`),
      ["a: slow down", "b: the model returned an empty summary"]
    )
    // The answer without words was paid for, too.
    assert.deepStrictEqual([...new Set(callsOf(outcome).map(({ model: name }) => name))], ["b", "c"])
  })

  it.effect.each(strategies.map(({ name }) => name))("%s takes a single name as before", function* (strategy) {
    const one = yield* compressed(strategy, {}, { model: "a" })
    assert.strictEqual(one.outcome._tag, "Compressed")
    assert.deepStrictEqual(one.asked, ["a"])
    const failing = yield* compressed(strategy, { a: limited }, { model: "a" })
    assert.deepInclude(failing.outcome, { _tag: "FailedSummarizer", reason: "RateLimitError", message: "slow down" })
  })

  it.effect("an unusable snapshot makes the default strategy ask the next model", function* () {
    const unusable = "<state_snapshot><overall_goal></state_snapshot>"
    const { asked, outcome } = yield* compressed("palimpsest", { a: unusable }, { model: ["a", "b"] })
    assert.strictEqual(outcome._tag, "Compressed")
    assert.deepStrictEqual(asked, ["a", "b"])
    assert.deepStrictEqual(
      failedModelsOf(outcome).map(({ reason }) => reason),
      ["InvalidOutputError"]
    )
  })

  it.effect("code writes the snapshot after the last model where it may, and says why", function* () {
    const failing = { a: limited, b: "<state_snapshot><overall_goal></state_snapshot>" }
    const { outcome } = yield* compressed("palimpsest", failing, { model: ["a", "b"], ladder: true })
    assert.strictEqual(outcome._tag, "Compressed")
    if (outcome._tag !== "Compressed") return
    assert.strictEqual(outcome.by, "extractive")
    assert.match(outcome.degraded?.message ?? "", /^a: slow down; b: the summarizer wrote an unusable snapshot/)
  })

  it("a name that is given twice is tried once", () => {
    assert.deepStrictEqual(modelNames(["a", "b", "a"]), ["a", "b"])
    assert.deepStrictEqual(modelNames("a"), ["a"])
  })
})
