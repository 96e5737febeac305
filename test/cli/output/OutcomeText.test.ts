import { assert, describe, it } from "@effect/vitest"
import { failureLine, outcomeSentence } from "../../../src/cli/output/OutcomeText.ts"
import {
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
  type SummaryCall
} from "../../../src/domain/compression/Compression.ts"
import { type Entry, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { builtInPrices } from "../../../src/domain/tokens/Prices.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"

const tokens = TokenCount.make
const limit = 1_000_000

const plan = (kept: number): Plan => ({
  version: 1,
  strategy: "palimpsest",
  rung: 0,
  steps: [
    {
      _tag: "Layout",
      split: 10,
      kept: Array.from({ length: kept }, (_, index) => entryId(index + 1)),
      acknowledge: false
    }
  ],
  before: tokens(120_000),
  after: tokens(20_000)
})

const snapshot: Entry = {
  id: entryId(20),
  at: 0,
  content: { role: "user", parts: [{ text: "what was said" }] },
  tokens: [tokens(2_500)],
  handles: []
}

const call: SummaryCall = {
  purpose: "generate",
  model: "gemini-2.5-flash",
  messages: 3,
  answer: "",
  finishReason: "STOP",
  usage: { prompt: tokens(100_000), answer: tokens(2_000), thoughts: tokens(0), cached: tokens(0) }
}
const unpriced: SummaryCall = { ...call, model: "somebody's model" }

const sizes = { before: tokens(120_000), after: tokens(20_000) }
const compressed = (change: {
  readonly kept: number
  readonly by?: "model" | "extractive" | "ladder" | "hook"
  readonly calls?: ReadonlyArray<SummaryCall>
  readonly degraded?: { readonly reason: string; readonly message: string }
}) =>
  Compressed.make({
    ...sizes,
    plan: plan(change.kept),
    patch: { insert: [snapshot], shorten: [] },
    by: change.by ?? "model",
    calls: change.calls ?? [],
    degraded: change.degraded ?? null,
    snapshot: "what was said",
    audit: { anchors: 0, inSnapshot: 0, inTail: 0, restored: 0 },
    doubts: { removed: [], unknown: [] }
  })
const shortened = (count: number) =>
  ContentTruncated.make({
    ...sizes,
    plan: plan(3),
    patch: {
      insert: [],
      shorten: Array.from({ length: count }, (_, index) => ({
        entry: entryId(index + 1),
        part: 0,
        replacement: { text: "" },
        tokens: tokens(1)
      }))
    },
    calls: [],
    degraded: null
  })
const inflated = (before: number, after: number, reason: "inflated" | "below minimum gain") =>
  FailedInflatedTokenCount.make({
    before: tokens(before),
    after: tokens(after),
    reason,
    plan: plan(3),
    stubborn: [],
    calls: [call]
  })
const failed = { before: tokens(60_000), plan: plan(3), calls: [] }
const cost = "It took 1 call of 102,000 tokens (about $0.0350)."
const nothing = (reason: NoopReason) => Noop.make({ reason, before: tokens(10) })

const cases: ReadonlyArray<readonly [rule: string, outcome: Outcome, sentence: string]> = [
  [
    "compressed by a model: from, to, what was kept, what it cost, how to undo",
    compressed({ kept: 12, calls: [call] }),
    `Compressed from 120,000 to 20,000 tokens (2 % of the window). The last 12 messages are unchanged; the rest is now a snapshot of 2,500 tokens, written by the model, and stays recallable. ${cost} /undo reverses it.`
  ],
  [
    "code costs nothing",
    compressed({ kept: 1, by: "extractive" }),
    "Compressed from 120,000 to 20,000 tokens (2 % of the window). The last message is unchanged; the rest is now a snapshot of 2,500 tokens, made without a model, and stays recallable. /undo reverses it."
  ],
  [
    "what failed on the way is told, and that no message was kept; no price is guessed",
    compressed({
      kept: 0,
      by: "ladder",
      calls: [unpriced, unpriced],
      degraded: { reason: "RateLimitError", message: "the model was busy, so code wrote the snapshot" }
    }),
    "Compressed from 120,000 to 20,000 tokens (2 % of the window). The whole conversation is now a snapshot of 2,500 tokens, made without a model, and stays recallable. It took 2 calls of 204,000 tokens. Note: the model was busy, so code wrote the snapshot. /undo reverses it."
  ],
  [
    "one tool output shortened",
    shortened(1),
    "Shortened 1 tool output, from 120,000 to 20,000 tokens (2 % of the window). Everything else is unchanged, and the full output stays recallable. /undo reverses it."
  ],
  [
    "tool outputs shortened",
    shortened(3),
    "Shortened 3 tool outputs, from 120,000 to 20,000 tokens (2 % of the window). Everything else is unchanged, and the full outputs stay recallable. /undo reverses it."
  ],
  ["an empty conversation", nothing("empty"), "Nothing to compress."],
  ["nothing that could go", nothing("nothing to compress"), "Nothing to compress."],
  ["below the threshold", nothing("below threshold"), "Not compressed: below the threshold."],
  [
    "after a failure",
    nothing("waiting for growth"),
    "Not compressed: waiting for the conversation to grow after a failure."
  ],
  ["requested in vain before", nothing("already tried"), "Not compressed: a model failed to summarize this before."],
  ["nothing became smaller", nothing("nothing shrank"), "Not compressed: nothing got smaller."],
  [
    "a hook prevented it, and why",
    Noop.make({ reason: "vetoed by a hook", before: tokens(10), detail: "not during the release." }),
    "Not compressed: a hook prevented it (not during the release)."
  ],
  [
    "written by a hook",
    compressed({ kept: 1, by: "hook" }),
    "Compressed from 120,000 to 20,000 tokens (2 % of the window). The last message is unchanged; the rest is now a snapshot of 2,500 tokens, written by a hook, and stays recallable. /undo reverses it."
  ],
  [
    "below 50,000 tokens it is the size",
    inflated(49_999, 51_000, "inflated"),
    `Compression does not help at this size: 49,999 tokens would become 51,000. Nothing was changed. ${cost}`
  ],
  [
    "from 50,000 tokens on it may be the summary",
    inflated(50_000, 51_000, "inflated"),
    `The summary would not make it smaller (50,000 to 51,000 tokens); the conversation keeps its full history. Try another model with /model, or name what matters most: /compress FOCUS. ${cost}`
  ],
  [
    "too little is saved",
    inflated(50_000, 49_000, "below minimum gain"),
    `The summary would save too little (50,000 to 49,000 tokens); the conversation keeps its full history. Try another model with /model, or name what matters most: /compress FOCUS. ${cost}`
  ],
  [
    "tokens that could not be counted",
    FailedTokenCountError.make({ before: tokens(60_000), message: "the model could not be reached." }),
    "The tokens could not be counted (the model could not be reached), so nothing was compressed. Try again."
  ],
  [
    "an empty summary",
    FailedEmptySummary.make({ ...failed, calls: [call] }),
    `The model returned an empty summary, so nothing was changed. Try again, or another model with /model. ${cost}`
  ],
  [
    "a summary that failed",
    FailedSummarizer.make({ ...failed, reason: "QuotaExhaustedError", message: "the quota is used up" }),
    "The summary failed: the quota is used up. Nothing was changed."
  ],
  ["cancelled", Cancelled.make({}), "Cancelled. The conversation is unchanged."]
]

describe("the chat's text for a compression", () => {
  it.each(cases)("%s", (_rule, outcome, sentence) =>
    assert.strictEqual(outcomeSentence(outcome, limit, builtInPrices), sentence)
  )

  it("covers every outcome and every reason for doing nothing", () => {
    const tags = new Set(cases.map(([, { _tag }]) => _tag))
    assert.deepStrictEqual([...tags].sort(), Object.keys(Outcome.cases).sort())
    const reasons = new Set(cases.flatMap(([, outcome]) => (outcome._tag === "Noop" ? [outcome.reason] : [])))
    assert.deepStrictEqual([...reasons].sort(), [...NoopReason.literals].sort())
  })

  it("the command line treats a useful outcome as success", () => {
    const quiet = cases.filter(([, outcome]) => failureLine(outcome) === undefined).map(([, { _tag }]) => _tag)
    assert.deepStrictEqual([...new Set(quiet)], ["Compressed", "ContentTruncated", "Noop"])
  })
})
