import { Effect, Layer, Schema } from "effect"
import { ContentTruncated, type Plan } from "../../../../src/domain/compression/Compression.ts"
import {
  strategies,
  strategyNamed,
  StrategyName,
  waitsForGrowth
} from "../../../../src/domain/compression/strategies/Strategies.ts"
import type { Strategy } from "../../../../src/domain/compression/Strategy.ts"
import { text, user } from "../../../../src/domain/content/Content.ts"
import { entryId, type Patch, viewTokens } from "../../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import { applyWith, compressWith } from "../../../../src/services/compression/Compression.ts"
import { noop } from "../../../../src/services/compression/strategies/CompressRequest.ts"
import type { StrategyRunner } from "../../../../src/services/compression/strategies/StrategyRunner.ts"
import { runners } from "../../../../src/services/compression/strategies/StrategyRunners.ts"
import { Summarizer } from "../../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { HookSystem } from "../../../../src/services/hooks/HookSystem.ts"
import { servicesWith } from "../../../support/compressing.ts"
import { subscribed } from "../../../support/hooks.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const halving: Strategy = {
  name: "halving",
  description: "by half",
  defaults: { minGain: 0.5, outputForm: "last-lines" },
  countsByReport: false,
  waitsForGrowth: true,
  trigger: (window) => window * 0.5,
  overflowAttempts: 1,
  heedsHooks: true,
  hasSnapshotBudget: false
}

const planFor = (version: number, before: number): Plan => ({
  version,
  strategy: halving.name,
  rung: 0,
  steps: [],
  before: TokenCount.make(before),
  after: TokenCount.make(Math.floor(before / 2))
})

/** The first message leaves, and a short one takes its place. */
const patch: Patch = {
  drop: { from: entryId(1), to: entryId(1) },
  insert: [{ id: entryId(99), content: user(text("A long request.")), author: "summary", tokens: [], handles: [] }],
  shorten: []
}

/** A strategy that halves the conversation. */
const runner: StrategyRunner = {
  strategy: halving,
  decide: ({ conversation }) =>
    Effect.succeed({ _tag: "Go", plan: planFor(conversation.version, viewTokens(conversation)) }),
  compress: ({ conversation, policy }) =>
    policy.focus === undefined
      ? Effect.succeed({
          outcome: ContentTruncated.make({
            ...planFor(conversation.version, viewTokens(conversation)),
            plan: planFor(conversation.version, viewTokens(conversation)),
            patch,
            degraded: null,
            calls: []
          }),
          dropped: undefined
        })
      : Effect.succeed(noop("nothing shrank", 0, policy.focus)),
  apply: (_, plan) => Effect.succeed(noop("nothing to compress", plan.before))
}

const services = servicesWith(Layer.mock(Summarizer, {}))
const request = requestFor([
  { content: user(text("A long request. ".repeat(100))) },
  { content: user(text("Make the build green.")) }
])

describe("a strategy of another program", () => {
  it.effect("plans and carries out under its own name", services, function* () {
    const { outcome } = yield* compressWith(runner, yield* request)
    assert.strictEqual(outcome._tag === "ContentTruncated" ? outcome.plan.strategy : outcome._tag, "halving")
  })

  it.effect("can be vetoed by a hook when it declares that it uses hooks", services, function* () {
    const seen = yield* subscribed(yield* HookSystem, { PreCompress: { decision: "block", reason: "not now" } })
    const vetoed = yield* compressWith(runner, yield* request)
    assert.deepInclude(vetoed.outcome, { reason: "vetoed by a hook", detail: "not now" })
    const deaf = { ...runner, strategy: { ...halving, heedsHooks: false } }
    assert.strictEqual((yield* compressWith(deaf, yield* request)).outcome._tag, "ContentTruncated")
    assert.deepStrictEqual(
      seen.map(({ _tag }) => _tag),
      ["PreCompress", "PostCompress", "PreCompress", "PostCompress"]
    )
  })

  it.effect("takes a hook's focus", services, function* () {
    yield* subscribed(yield* HookSystem, { PreCompress: { hookSpecificOutput: { focus: "errors" } } })
    const { outcome } = yield* compressWith(runner, yield* request)
    assert.deepInclude(outcome, { reason: "nothing shrank", detail: "errors" })
  })

  it.effect("refuses a plan for another version before it runs", services, function* () {
    const refused = yield* Effect.flip(applyWith(runner, yield* request, planFor(99, 10)))
    assert.include(refused.message, "version 99")
  })
})

describe("the registry", () => {
  it.each(strategies)("has a runner for $name", ({ name }) => {
    assert.strictEqual(runners[name].strategy, strategyNamed(name))
    assert.isTrue(Schema.is(StrategyName)(name))
  })

  it("finds a strategy by name", () => {
    assert.strictEqual(strategyNamed("halving", [...strategies, halving]), halving)
  })

  it.each(["halving", "", "Palimpsest", "toString"])("does not know %j", (name) => {
    assert.isUndefined(strategyNamed(name))
    assert.isFalse(Schema.is(StrategyName)(name))
  })

  it("handles a name from another version's log", () => {
    assert.isTrue(waitsForGrowth("halving"))
  })
})
