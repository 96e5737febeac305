import { Effect } from "effect"
import { Outcome } from "../../../../src/domain/compression/Compression.ts"
import { defaultPolicy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { OwnStrategyName } from "../../../../src/domain/compression/strategies/Strategies.ts"
import { model, plainText, text, user } from "../../../../src/domain/content/Content.ts"
import { isFromUser } from "../../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../../src/layers/testing/MemoryTempStore.ts"
import { strategyContract } from "../../../../src/layers/testing/StrategyContract.ts"
import { compressWith } from "../../../../src/services/compression/CompressionWorkflow.ts"
import { type OwnStrategy, ownRunner } from "../../../../src/services/compression/strategies/OwnRunner.ts"
import { Summarizer } from "../../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { servicesWith } from "../../../support/compressing.ts"
import { runsOf } from "../../../support/runs.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const diary: OwnStrategy = {
  name: "diary",
  description: "to a list of what was asked",
  cut: (items) => items.length - 2,
  write: (gone) =>
    Effect.succeed(
      `Asked before:\n${gone
        .filter(isFromUser)
        .map(({ content }) => plainText(content).slice(0, 80))
        .join("\n")}`
    )
}

strategyContract({ describe, it }, { runner: ownRunner(diary), tempStore: MemoryTempStore.layer, runs: runsOf(40, 10) })

const contents = Array.from({ length: 12 }, (_, n) => [
  user(text(`question ${n}, api_key = sk-${"k3y".repeat(12)}: ${"what about this? ".repeat(30)}`)),
  model(text(`answer ${n}: ${"that is so. ".repeat(30)}`))
]).flat()

const compressed = (strategy: OwnStrategy) =>
  Effect.gen(function* () {
    const messages = contents.map((content) => ({ content }))
    const policy = {
      ...defaultPolicy,
      strategy: OwnStrategyName.make(strategy.name),
      minGain: 0,
      limit: TokenCount.make(4_000)
    }
    return (yield* compressWith(ownRunner(strategy), yield* requestFor(messages, policy))).outcome
  }).pipe(Effect.provide(servicesWith(Summarizer.layerExtractive)))

describe("a strategy of a program", () => {
  it.effect("has its text stand for what leaves, with a handle and without secrets", function* () {
    const outcome = yield* compressed(diary)
    assert.isTrue(Outcome.guards.Compressed(outcome))
    if (!Outcome.guards.Compressed(outcome)) return
    const [entry] = outcome.patch.insert
    const shown = entry === undefined ? "" : plainText(entry.content)
    assert.match(shown, /recall \S+ for all of it[^]*Asked before:\nquestion 0/)
    assert.notInclude(shown, "k3yk3y")
    assert.strictEqual(outcome.by, "extractive")
    assert.isNull(outcome.degraded)
  })

  it.effect.each([
    ["fails", Effect.fail("no ink")],
    ["throws", Effect.sync(() => assert.fail("no ink"))]
  ] as const)("that %s is replaced by the default one, and the outcome says so", function* ([, write]) {
    const outcome = yield* compressed({ ...diary, write: () => write })
    assert.strictEqual(outcome._tag, "Compressed")
    if (outcome._tag !== "Compressed") return
    assert.include(outcome.degraded?.message ?? "", "the strategy diary was not used: it failed: no ink")
  })
})
