import { Schema } from "effect"
import { type Conversation, compressed, EntryId, Patch } from "./Conversation.ts"
import { TokenCount, Usage } from "./Tokens.ts"
import { OutputForm } from "./ToolOutput.ts"

/**
 * What a compression is asked for, what it decides, and how it can end: the values that strategies, the workflow and the
 * log share.
 */

/** Names of the strategies. Each is implemented by one file in `strategies/`. */
export const StrategyName = Schema.Literals(["palimpsest", "gemini"])
export type StrategyName = typeof StrategyName.Type

const Fraction = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** What is wanted of a compression. Tokens are the model's. */
export const Policy = Schema.Struct({
  strategy: StrategyName,
  /** The window. */
  limit: TokenCount,
  /** Share of the window that triggers (seed 000: 0.5). */
  threshold: Fraction,
  /** Share of the conversation's end that is kept (seed 001: 0.3). */
  preserve: Fraction,
  /** Least share of the request that has to be saved. */
  minGain: Fraction,
  /** Tokens of tool output kept in full, newest first (seed 001: 50,000). */
  toolBudget: TokenCount,
  /** Upper bound for the snapshot; absent: by what is summarised. */
  snapshotBudget: Schema.optionalKey(TokenCount),
  outputForm: OutputForm,
  /** Who writes the snapshot. */
  summarizer: Schema.Literals(["extractive", "model"]),
  /** The summarizing model; absent: one of the conversation's family. */
  model: Schema.optionalKey(Schema.String),
  /** What the person wants kept. */
  focus: Schema.optionalKey(Schema.String),
  /** Whether secrets are left out of what a summarizing model is sent; absent: yes. Snapshots never hold any. */
  redactSecrets: Schema.optionalKey(Schema.Boolean),
  /** Whether, when the plan does not reach the limit, stronger ones may be tried. */
  ladder: Schema.Boolean,
  /** What the API said of the latest request; absent: it is counted (strategy `gemini`). */
  promptTokens: Schema.optionalKey(TokenCount),
  /** Tokens of the request outside the history: system instruction, tool declarations, environment message. */
  overhead: TokenCount
})
export type Policy = typeof Policy.Type

/** The default strategy in a window of 1,048,576 tokens, its snapshots written by code. The least gain is ours, the rest the seeds'. */
export const defaultPolicy: Policy = {
  strategy: "palimpsest",
  limit: TokenCount.make(1_048_576),
  threshold: 0.5,
  preserve: 0.3,
  minGain: 0.1,
  toolBudget: TokenCount.make(50_000),
  outputForm: "last-lines",
  summarizer: "extractive",
  ladder: true,
  overhead: TokenCount.make(0)
}

/** Defaults of each strategy that differ from one to the other (Gemini CLI, March 2026). */
export const strategyDefaults = {
  palimpsest: { strategy: "palimpsest", minGain: defaultPolicy.minGain, outputForm: defaultPolicy.outputForm },
  gemini: { strategy: "gemini", minGain: 0, outputForm: "head-tail-chars" }
} as const satisfies Record<StrategyName, Partial<Policy>>

/**
 * Whether a strategy goes by what the API reported of the last request, in the model's own tokens, as Gemini CLI does (March
 * 2026); the others go by what the next request is expected to cost.
 */
export const goesByReport = (strategy: string): boolean => strategy === "gemini"

/** Whether a strategy that failed waits for the conversation to grow before it tries again by itself. Gemini CLI does not. */
export const waitsForGrowth = (strategy: string): boolean => strategy !== "gemini"

/**
 * The share of the window that triggers a compression (spec 3.1 step 3): what was set here, else what an experiment says,
 * else 0.5. 0 counts as not set; 1 leaves the window to the guard alone.
 */
export const thresholdOf = (local: number | undefined, experiment: number | undefined): number => {
  const set = [local, experiment].find((share) => share !== undefined && share > 0)
  return set === undefined ? defaultPolicy.threshold : Math.min(1, set)
}

/** One thing a plan does. */
export const PlanStep = Schema.TaggedUnion({
  /** Show a tool output shortened. */
  Shorten: {
    entry: EntryId,
    part: Schema.Natural,
    form: Schema.Literals([...OutputForm.literals, "note"]),
    tokensBefore: TokenCount,
    tokensAfter: TokenCount
  },
  /** Put a snapshot in the place of these entries (both ends included). */
  Summarize: {
    from: EntryId,
    to: EntryId,
    /** Whether an earlier snapshot lies among them. */
    prompt: Schema.Literals(["create", "merge"]),
    /** Whether a model's snapshot is checked by a second call; code checks every one. */
    verify: Schema.Boolean,
    /** Upper bound for the snapshot. */
    budget: TokenCount
  },
  /** Show these characters of the user's text word for word. */
  Pin: {
    entry: EntryId,
    part: Schema.Natural,
    start: Schema.Natural,
    end: Schema.Natural,
    why: Schema.Literals(["original request", "latest request", "pinned by the user"])
  },
  /** What the view is made of afterwards. */
  Layout: {
    /** Index in the curated history of the first kept message. */
    split: Schema.Natural,
    kept: Schema.Array(EntryId),
    /** Whether the model's side needs a turn between the snapshot and what follows. */
    acknowledge: Schema.Boolean
  }
})
export type PlanStep = typeof PlanStep.Type

/** What a compression would do, decided before anything is done. */
export const Plan = Schema.Struct({
  /** The conversation's version it was made for; on another it is refused. */
  version: Schema.Natural,
  strategy: StrategyName,
  /** 0: as asked; above: a stronger rung of the ladder. */
  rung: Schema.Natural,
  steps: Schema.Array(PlanStep),
  /** The request's tokens, before and as predicted after. */
  before: TokenCount,
  after: TokenCount
})
export type Plan = typeof Plan.Type

/** Why nothing is to be done. */
export const NoopReason = Schema.Literals([
  "empty",
  "below threshold",
  "waiting for growth",
  /** A model was asked for a summary of these very messages before, in vain. */
  "already tried",
  "nothing to compress",
  "nothing shrank",
  /** A hook did not want it (PreCompress). */
  "vetoed by a hook"
])
export type NoopReason = typeof NoopReason.Type

/** What a planner says. */
export type Decision =
  | { readonly _tag: "Skip"; readonly reason: NoopReason; readonly before: number }
  | { readonly _tag: "Go"; readonly plan: Plan }

/** Something that failed on the way and was replaced by something lesser. */
export const Degraded = Schema.Struct({ reason: Schema.String, message: Schema.String })
export type Degraded = typeof Degraded.Type

/** What a snapshot's exact facts were found to be. See `Audit` in Extractive.ts. */
export const AuditResult = Schema.Struct({
  anchors: Schema.Natural,
  inSnapshot: Schema.Natural,
  inTail: Schema.Natural,
  restored: Schema.Natural
})

/** One call of a model on the way to a snapshot: what it answered and what it cost. */
export const SummaryCall = Schema.Struct({
  purpose: Schema.Literals(["generate", "verify"]),
  /** What telemetry knows it by: the compression's, with `-verify` behind it for the second call. */
  promptId: Schema.optionalKey(Schema.String),
  model: Schema.String,
  /** Messages sent, the instruction among them. */
  messages: Schema.Natural,
  answer: Schema.String,
  finishReason: Schema.String,
  usage: Schema.NullOr(Usage)
})
export type SummaryCall = typeof SummaryCall.Type

/** What telemetry calls the part that a model plays in a compression, as Gemini CLI does (LlmRole.UTILITY_COMPRESSOR). */
export const summarizerRole = "utility_compressor"

/** The prompt id of one of the two calls of a compression. */
export const callPromptId = (promptId: string, purpose: SummaryCall["purpose"]): string =>
  purpose === "verify" ? `${promptId}-verify` : promptId

/** What a model's snapshot held that nobody had said. */
export const Doubts = Schema.Struct({
  /** Exact facts (paths, numbers, ids, addresses) that the conversation does not hold; they were taken out. */
  removed: Schema.Array(Schema.String),
  /** Names that the conversation does not hold; they are left, the reader is told. */
  unknown: Schema.Array(Schema.String)
})
export type Doubts = typeof Doubts.Type

/** A part that cannot be made smaller. */
const Stubborn = Schema.Struct({ entry: EntryId, what: Schema.String, tokens: TokenCount })

const changed = {
  before: TokenCount,
  after: TokenCount,
  plan: Plan,
  patch: Patch,
  degraded: Schema.NullOr(Degraded),
  calls: Schema.Array(SummaryCall)
}

/** Every way one compression can end. */
export const Outcome = Schema.TaggedUnion({
  Compressed: {
    ...changed,
    /** Who wrote the snapshot; `hook`: it was given by one (PreCompress). */
    by: Schema.Literals(["model", "extractive", "ladder", "hook"]),
    snapshot: Schema.String,
    audit: AuditResult,
    doubts: Doubts,
    /** Secrets that stand in what was summarised and were kept out of the snapshot, by kind; absent: none. */
    secrets: Schema.optionalKey(Schema.Record(Schema.String, Schema.Natural))
  },
  ContentTruncated: changed,
  Noop: {
    reason: NoopReason,
    before: TokenCount,
    /** Why, in somebody else's words. */
    detail: Schema.optionalKey(Schema.String)
  },
  FailedInflatedTokenCount: {
    reason: Schema.Literals(["inflated", "below minimum gain"]),
    before: TokenCount,
    after: TokenCount,
    plan: Plan,
    /** What is left and cannot shrink, largest first. */
    stubborn: Schema.Array(Stubborn),
    calls: Schema.Array(SummaryCall)
  },
  FailedTokenCountError: {
    before: TokenCount,
    message: Schema.String,
    /** Absent: counting failed before there was one. */
    plan: Schema.optionalKey(Plan),
    /** Absent: none was made. */
    calls: Schema.optionalKey(Schema.Array(SummaryCall))
  },
  FailedEmptySummary: { before: TokenCount, plan: Plan, calls: Schema.Array(SummaryCall) },
  FailedSummarizer: {
    before: TokenCount,
    plan: Plan,
    reason: Schema.String,
    message: Schema.String,
    calls: Schema.Array(SummaryCall)
  },
  Cancelled: {}
})
export type Outcome = typeof Outcome.Type
export const {
  Cancelled,
  Compressed,
  ContentTruncated,
  FailedEmptySummary,
  FailedInflatedTokenCount,
  FailedSummarizer,
  FailedTokenCountError,
  Noop
} = Outcome.cases

/** The seeds' CompressionStatus, and a name for the two ends that the original did not have. */
export const statusOf: (outcome: Outcome) => string = Outcome.match({
  Compressed: () => "COMPRESSED",
  ContentTruncated: () => "CONTENT_TRUNCATED",
  Noop: () => "NOOP",
  FailedInflatedTokenCount: () => "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
  FailedTokenCountError: () => "COMPRESSION_FAILED_TOKEN_COUNT_ERROR",
  FailedEmptySummary: () => "COMPRESSION_FAILED_EMPTY_SUMMARY",
  FailedSummarizer: () => "FAILED_SUMMARIZER",
  Cancelled: () => "CANCELLED"
})

/** Tokens of the request before and after. */
export const tokensOf: (outcome: Outcome) => { readonly before: number; readonly after: number } = Outcome.match({
  Compressed: ({ after, before }) => ({ before, after }),
  ContentTruncated: ({ after, before }) => ({ before, after }),
  Noop: ({ before }) => ({ before, after: before }),
  FailedInflatedTokenCount: ({ before }) => ({ before, after: before }),
  FailedTokenCountError: ({ before }) => ({ before, after: before }),
  FailedEmptySummary: ({ before }) => ({ before, after: before }),
  FailedSummarizer: ({ before }) => ({ before, after: before }),
  Cancelled: () => ({ before: 0, after: 0 })
})

/** What a model was paid for and did not help with: the range that was to be summarised. */
export const triedBy = (outcome: Outcome): { readonly from: EntryId; readonly to: EntryId } | undefined => {
  if (!("plan" in outcome) || outcome.plan === undefined || callsOf(outcome).length === 0) return undefined
  const step = outcome.plan.steps.find((each) => each._tag === "Summarize")
  return step === undefined ? undefined : { from: step.from, to: step.to }
}

/** The outcome with other counts of the request before and after: those that a person is shown. */
export const recounted = (outcome: Outcome, before: number, after: number): Outcome => {
  const counts = { before: count(before), after: count(after) }
  return Outcome.matchOrElse(
    outcome,
    {
      Compressed: (made): Outcome => Compressed.make({ ...made, ...counts }),
      ContentTruncated: (made) => ContentTruncated.make({ ...made, ...counts }),
      Noop: (made) => Noop.make({ ...made, before: counts.before }),
      FailedInflatedTokenCount: (made) => FailedInflatedTokenCount.make({ ...made, ...counts }),
      FailedTokenCountError: (made) => FailedTokenCountError.make({ ...made, before: counts.before }),
      FailedEmptySummary: (made) => FailedEmptySummary.make({ ...made, before: counts.before }),
      FailedSummarizer: (made) => FailedSummarizer.make({ ...made, before: counts.before })
    },
    () => outcome
  )
}

const count = (tokens: number): TokenCount => TokenCount.make(Math.max(0, Math.round(tokens)))

/** The model calls that were made and have to be paid for, however it ended. */
export const callsOf = (outcome: Outcome): ReadonlyArray<SummaryCall> =>
  "calls" in outcome ? (outcome.calls ?? []) : []

/** What a compression changes, if it changes anything. */
export const patchOf = (outcome: Outcome): Patch | undefined =>
  Outcome.matchOrElse(
    outcome,
    { Compressed: ({ patch }): Patch | undefined => patch, ContentTruncated: ({ patch }) => patch },
    () => undefined
  )

/** The conversation from now on: only a compression that changes something replaces it. */
export const adopt = (conversation: Conversation, outcome: Outcome): Conversation => {
  const patch = patchOf(outcome)
  return patch === undefined ? conversation : compressed(conversation, patch)
}
