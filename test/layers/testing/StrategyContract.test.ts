import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ContentTruncated, type Plan } from "../../../src/domain/compression/Compression.ts"
import { response, text, user } from "../../../src/domain/content/Content.ts"
import { type Entry, entryId, type Patch, view } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { strategyContract } from "../../../src/layers/testing/StrategyContract.ts"
import type { CompressRequest } from "../../../src/services/compression/strategies/CompressRequest.ts"
import type { StrategyRunner } from "../../../src/services/compression/strategies/StrategyRunner.ts"
import { runners } from "../../../src/services/compression/strategies/StrategyRunners.ts"
import { firstFailure } from "../../support/contracts.ts"
import { isUnitTier } from "../../support/runs.ts"

/** The suite notices strategies that break the contract. */

const base = runners.pi

const planOf = ({ conversation }: CompressRequest): Plan => ({
  version: conversation.version,
  strategy: base.strategy.name,
  rung: 0,
  steps: [],
  before: TokenCount.make(100),
  after: TokenCount.make(1)
})

const patching =
  (patch: (request: CompressRequest) => Patch): StrategyRunner["compress"] =>
  (request) =>
    Effect.sync(() => {
      const plan = planOf(request)
      const { after, before } = plan
      const outcome = ContentTruncated.make({ before, after, plan, patch: patch(request), degraded: null, calls: [] })
      return { outcome, dropped: undefined }
    })

const note = (sequence: number): Entry => ({
  id: entryId(sequence),
  content: user(text("…")),
  author: "summary",
  tokens: [1],
  handles: []
})

const first = ({ conversation }: CompressRequest) => view(conversation)[0]?.entry.id ?? entryId(1)
const last = ({ conversation }: CompressRequest) => view(conversation).at(-1)?.entry.id ?? entryId(1)

const shrinks = "compresses to a smaller result that breaks no rule, or returns a reason"

describe.skipIf(isUnitTier)("the contract of strategies fails one that", () => {
  let decisions = 0
  const mutants: ReadonlyArray<readonly [what: string, parts: Partial<StrategyRunner>, test: string]> = [
    [
      "decides otherwise each time",
      {
        decide: (request) =>
          Effect.sync(() => {
            decisions += 1
            return { _tag: "Go", plan: { ...planOf(request), after: TokenCount.make(decisions) } }
          })
      },
      "decides the same for the same request, and changes nothing"
    ],
    [
      "drops everything",
      {
        compress: patching((request) => ({
          drop: { from: first(request), to: last(request) },
          insert: [note(request.conversation.next)],
          shorten: []
        }))
      },
      shrinks
    ],
    ["dies", { compress: () => Effect.die("no") }, shrinks],
    ["never ends", { compress: () => Effect.never }, shrinks],
    [
      "states another size",
      {
        compress: (request) =>
          Effect.map(base.compress(request), (result) =>
            result.outcome._tag === "Compressed"
              ? { ...result, outcome: { ...result.outcome, after: TokenCount.make(1) } }
              : result
          )
      },
      shrinks
    ],
    [
      "states a plan of another version",
      {
        compress: (request) =>
          Effect.map(base.compress(request), (result) =>
            result.outcome._tag === "Compressed"
              ? { ...result, outcome: { ...result.outcome, plan: { ...result.outcome.plan, version: 999 } } }
              : result
          )
      },
      shrinks
    ],
    ["changes nothing and says it did", { compress: patching(() => ({ insert: [], shorten: [] })) }, shrinks],
    [
      "inserts under an id that is taken",
      {
        compress: patching((request) => ({
          drop: { from: first(request), to: first(request) },
          insert: [note(1)],
          shorten: []
        }))
      },
      shrinks
    ],
    [
      "compresses below its trigger",
      { decide: (request) => base.decide({ ...request, forced: true }) },
      "does nothing below its trigger, and compresses at it"
    ],
    [
      "carries out another plan than it makes",
      {
        apply: (request, plan) =>
          base.apply({ ...request, policy: { ...request.policy, focus: "?" } }, { ...plan, steps: [] })
      },
      "applies a plan like a compression, and refuses a plan of another version"
    ],
    [
      "shortens the same again and again",
      {
        open: () =>
          Effect.succeed({
            assemble: ({ conversation }) =>
              Effect.sync(() => ({
                shorten: view(conversation).flatMap((item) =>
                  item.entry.content.parts.flatMap((part, index) => {
                    const { functionResponse: answer } = part
                    if (answer === undefined) return []
                    const tokens = item.shortened.get(index)?.tokens ?? item.entry.tokens[index] ?? 0
                    const output = "word ".repeat(Math.floor(tokens / 2))
                    const replacement = response(answer.name ?? "", { output }, answer.id)
                    return [{ entry: item.entry.id, part: index, replacement }]
                  })
                )
              }))
          })
      },
      "shortens a request before it is sent, and only once"
    ],
    [
      "has a trigger above its window",
      { strategy: { ...base.strategy, trigger: (window) => window + 1 } },
      "describes itself within bounds"
    ]
  ]

  it.each(mutants)("%s", async (_, parts, name) => {
    const runner = { ...base, ...parts }
    const failure = await firstFailure(
      (functions) => strategyContract(functions, { runner, tempStore: MemoryTempStore.layer, runs: 12 }),
      (test) => test === name
    )
    assert.strictEqual(failure, name)
  })
})
