import { assert, describe, it } from "@effect/vitest"
import {
  FailedEmptySummary,
  FailedSummarizer,
  type Outcome,
  type Plan,
  PlanStep
} from "../../../../src/domain/compression/Compression.ts"
import { contextLength } from "../../../../src/domain/compression/Compression.ts"
import { defaultPolicy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { empty, entryId } from "../../../../src/domain/conversation/Conversation.ts"
import { defaultModelName, freshMemory } from "../../../../src/domain/conversation/FailureMemory.ts"
import { failedEvent } from "../../../../src/domain/session/CompressionEvent.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import { noop, wasTriedWithoutResult } from "../../../../src/services/compression/strategies/CompressionResults.ts"
import { type CompressRequest } from "../../../../src/services/compression/strategies/CompressRequest.ts"
import { givenUpText, unusableIn, withUsableModels } from "../../../../src/services/compression/UsableModels.ts"
import { HandleIndex } from "../../../../src/services/session/EntryBuilder.ts"

const range = { from: entryId(1), to: entryId(4) }
const policy = { ...defaultPolicy, summarizer: "model" as const }
const request: CompressRequest = {
  conversation: empty,
  policy,
  forced: false,
  memory: { ...freshMemory, tried: [range] },
  held: new HandleIndex()
}

const one = TokenCount.make(1)
const plan: Plan = { version: 1, strategy: "pi", rung: 0, steps: [], before: one, after: one }
const base = { before: one, plan, calls: [], message: "no" }

describe("a range for which a model was paid without a result", () => {
  it.each<readonly [string, Partial<CompressRequest>, boolean]>([
    ["is not paid for again", {}, true],
    ["but where the user asks again", { forced: true }, false],
    ["nor where it must fit, whoever asks", { forced: true, mustFit: true }, true],
    ["is unknown to code", { policy: { ...policy, summarizer: "extractive" } }, false],
    ["is another one", { memory: { ...freshMemory, tried: [{ from: entryId(1), to: entryId(3) }] } }, false]
  ])("%s", (_, change, wasTried) => {
    assert.strictEqual(wasTriedWithoutResult({ ...request, ...change }, range), wasTried)
  })

  it("is in the event of the failure", () => {
    const steps = [PlanStep.cases.Summarize.make({ ...range, prompt: "create", verify: false, budget: one })]
    const call = {
      purpose: "generate",
      model: "m",
      messages: 1,
      answer: "",
      finishReason: "STOP",
      usage: null
    } as const
    const record = { at: 1, strategy: "pi", forced: false, unusable: [] }
    const tried = [[], [call]].map(
      (calls) => failedEvent(FailedEmptySummary.make({ ...base, plan: { ...plan, steps }, calls }), record).tried
    )
    assert.deepStrictEqual(tried, [undefined, range])
  })
})

describe("models that gave nothing usable", () => {
  const memory = { ...freshMemory, unusable: { a: 2, b: 1, [defaultModelName]: 2 } }
  it("are not asked again; where none is left, code writes", () => {
    const modelsFor = (model: typeof policy.model) => {
      const { model: left, summarizer } = withUsableModels({ ...policy, ...(model && { model }) }, memory)
      return [left, summarizer]
    }
    assert.deepStrictEqual(modelsFor(["a", "b", "c"]), [["b", "c"], "model"])
    assert.deepStrictEqual(modelsFor(["b", "c"]), [["b", "c"], "model"])
    assert.deepStrictEqual(modelsFor("a"), ["a", "extractive"])
    assert.deepStrictEqual(modelsFor(undefined), [undefined, "extractive"])
    assert.strictEqual(withUsableModels(policy, freshMemory), policy)
  })

  it("are those of the failure, but for one that was too long, and those that others made up for", () => {
    const failed = (reason: string) => FailedSummarizer.make({ ...base, reason })
    const named = { ...policy, model: ["a", "b"] as const }
    const of = (outcome: Outcome, change: Partial<typeof policy> = {}) =>
      unusableIn({ outcome }, { ...named, ...change })
    assert.deepStrictEqual(of(failed("RateLimitError")), ["a", "b"])
    assert.deepStrictEqual(of(failed(contextLength)), [])
    assert.deepStrictEqual(of(FailedEmptySummary.make(base)), ["a", "b"])
    assert.deepStrictEqual(unusableIn({ outcome: failed("x") }, policy), [defaultModelName])
    assert.deepStrictEqual(of(noop("empty", 0).outcome), [])
    assert.deepStrictEqual(unusableIn({ ...noop("empty", 0), unusable: ["c"] }, named), ["c"])
    assert.deepStrictEqual(unusableIn({ outcome: failed("x") }, defaultPolicy), [])
  })

  it("are named once they are given up, and no others", () => {
    assert.match(givenUpText(memory, ["a", "b"]) ?? "", /^no usable summary from a 2 times/)
    assert.isUndefined(givenUpText(memory, ["b", "c"]))
  })
})
