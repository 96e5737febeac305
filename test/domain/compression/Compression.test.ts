import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  adopt,
  Cancelled,
  Compressed,
  ContentTruncated,
  FailedEmptySummary,
  FailedInflatedTokenCount,
  FailedSummarizer,
  FailedTokenCountError,
  Noop,
  NoopReason,
  Outcome,
  type Plan,
  patchOf,
  statusOf,
  tokensOf,
  summarizedRangeOf,
  withCounts
} from "../../../src/domain/compression/Compression.ts"
import { defaultPolicy, Policy } from "../../../src/domain/compression/strategies/Policy.ts"
import { text, user } from "../../../src/domain/content/Content.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { entryOf } from "../../support/entries.ts"

const tokens = (n: number) => TokenCount.make(n)
const entry = (sequence: number, author?: Conversation.Author) =>
  entryOf(sequence, user(text(`message ${sequence}`)), { tokens: [10], ...(author === undefined ? {} : { author }) })
const conversation = [1, 2, 3].map((sequence) => entry(sequence)).reduce(Conversation.append, Conversation.empty)
const patch: Conversation.Patch = {
  drop: { from: Conversation.entryId(1), to: Conversation.entryId(2) },
  insert: [entry(4, "summary")],
  shorten: []
}
const plan: Plan = { version: 3, strategy: "palimpsest", rung: 0, steps: [], before: tokens(30), after: tokens(20) }
const changed = { before: tokens(30), after: tokens(20), plan, patch, degraded: null, calls: [] }

const outcomes: ReadonlyArray<readonly [status: string, outcome: Outcome, before: number, after: number]> = [
  [
    "COMPRESSED",
    Compressed.make({
      ...changed,
      by: "model",
      snapshot: "s",
      audit: { anchors: 1, inSnapshot: 1, inTail: 0, restored: 0 },
      doubts: { removed: [], unknown: [] }
    }),
    30,
    20
  ],
  ["CONTENT_TRUNCATED", ContentTruncated.make(changed), 30, 20],
  ["NOOP", Noop.make({ reason: "below threshold", before: tokens(30) }), 30, 30],
  [
    "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
    FailedInflatedTokenCount.make({
      reason: "inflated",
      before: tokens(30),
      after: tokens(40),
      plan,
      stubborn: [],
      calls: []
    }),
    30,
    40
  ],
  ["COMPRESSION_FAILED_TOKEN_COUNT_ERROR", FailedTokenCountError.make({ before: tokens(30), message: "no" }), 30, 30],
  ["COMPRESSION_FAILED_EMPTY_SUMMARY", FailedEmptySummary.make({ before: tokens(30), plan, calls: [] }), 30, 30],
  [
    "FAILED_SUMMARIZER",
    FailedSummarizer.make({ before: tokens(30), plan, reason: "RateLimited", message: "later", calls: [] }),
    30,
    30
  ],
  ["CANCELLED", Cancelled.make({}), 0, 0]
]
const changing = new Set(["COMPRESSED", "CONTENT_TRUNCATED"])

describe("outcomes", () => {
  it("has exactly these cases", () => {
    assert.deepStrictEqual(
      outcomes.map(([, outcome]) => outcome._tag).toSorted(),
      Object.keys(Outcome.cases).toSorted()
    )
    assert.strictEqual(new Set(outcomes.map(([status]) => status)).size, outcomes.length)
  })

  it("a count that fails after a paid call names the range that was paid for", () => {
    const range = { from: Conversation.entryId(1), to: Conversation.entryId(4) }
    const step = { _tag: "Summarize", ...range, prompt: "create", verify: true, budget: tokens(9) } as const
    const call = {
      purpose: "generate",
      model: "m",
      messages: 3,
      answer: "",
      finishReason: "STOP",
      usage: null
    } as const
    const failed = { before: tokens(30), message: "no", plan: { ...plan, steps: [step] } }
    assert.deepStrictEqual(summarizedRangeOf(FailedTokenCountError.make({ ...failed, calls: [call] })), range)
    assert.isUndefined(summarizedRangeOf(FailedTokenCountError.make({ ...failed, calls: [] })))
    assert.isUndefined(summarizedRangeOf(FailedTokenCountError.make({ before: tokens(30), message: "no" })))
  })

  it.each(outcomes)("status: %s", (status, outcome) => {
    assert.strictEqual(statusOf(outcome), status)
  })

  it.each(outcomes)("tokens before and after: %s", (_, outcome, before, after) => {
    assert.deepStrictEqual(tokensOf(outcome), { before, after })
  })

  it.each(outcomes)("other counts change nothing else: %s", (_, outcome, before, after) => {
    const counted = withCounts(outcome, 7.4, 5.6)
    assert.deepStrictEqual(tokensOf(counted), { before: 7, after: "after" in outcome ? 6 : 7 })
    const back = withCounts(counted, before, after)
    assert.deepStrictEqual(back, outcome._tag === "Cancelled" ? { ...outcome, before: tokens(0) } : outcome)
  })

  it.each(outcomes)("adopt replaces the conversation only for outcomes that change it (%s)", (status, outcome) => {
    const adopted = adopt(conversation, outcome)
    if (changing.has(status)) {
      assert.deepStrictEqual(
        Conversation.view(adopted).map((item) => item.entry.id),
        [4, 3].map(Conversation.entryId)
      )
      assert.deepStrictEqual(patchOf(outcome), patch)
      assert.isTrue(Conversation.canUndo(adopted))
    } else {
      assert.strictEqual(adopted, conversation)
      assert.isUndefined(patchOf(outcome))
    }
  })

  it.each(outcomes)("survives a JSON round trip (%s)", (_, outcome) => {
    const json = Schema.fromJsonString(Schema.toCodecJson(Outcome))
    const written = Schema.encodeSync(json)(outcome)
    assert.strictEqual(Schema.encodeSync(json)(Schema.decodeSync(json)(written)), written)
  })

  it.each(NoopReason.literals)("reason for no change: %s", (reason) => {
    assert.strictEqual(statusOf(Noop.make({ reason, before: tokens(0) })), "NOOP")
  })
})

describe("policy", () => {
  it("defaults: half the window, 30 % kept, 50,000 tokens of tool output, at least a tenth saved", () => {
    assert.strictEqual(defaultPolicy.limit, 1_048_576)
    assert.strictEqual(defaultPolicy.threshold, 0.5)
    assert.strictEqual(defaultPolicy.preserve, 0.3)
    assert.strictEqual(defaultPolicy.toolBudget, 50_000)
    assert.strictEqual(defaultPolicy.minGain, 0.1)
    assert.strictEqual(defaultPolicy.outputForm, "last-lines")
    assert.isTrue(Schema.is(Policy)(defaultPolicy))
  })
  it.each([
    { threshold: 1.1 },
    { threshold: -0.1 },
    { preserve: 2 },
    { minGain: -1 },
    { limit: -1 },
    { limit: 1.5 },
    { outputForm: "first-lines" }
  ])("refuses %j", (wrong) => {
    assert.isFalse(Schema.is(Policy)({ ...defaultPolicy, ...wrong }))
  })
})
