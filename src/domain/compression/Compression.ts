/** The plan of a compression and its possible outcomes: the values that strategies, the workflow and the log share. */

import { Schema } from "effect"
import { type Conversation, compressed, EntryId, Patch } from "../conversation/Conversation.ts"
import { OutputForm } from "../conversation/ToolOutputShortening.ts"
import { TokenCount, Usage, tokenCount } from "../tokens/Tokens.ts"

/** One step of a plan. */
export const PlanStep = Schema.TaggedUnion({
  /** Shows a tool output in a shortened form. */
  Shorten: {
    entry: EntryId,
    part: Schema.Natural,
    form: Schema.Literals([...OutputForm.literals, "note"]),
    /** How many characters of both ends are shown. Absent: as many as the form shows. */
    chars: Schema.optionalKey(Schema.Natural),
    tokensBefore: TokenCount,
    tokensAfter: TokenCount
  },
  /** Replaces these entries, both ends included, by a snapshot. */
  Summarize: {
    from: EntryId,
    to: EntryId,
    /** `merge` when an earlier snapshot is among the entries. */
    prompt: Schema.Literals(["create", "merge"]),
    /** Whether a second call checks a model's snapshot. Code checks every snapshot. */
    verify: Schema.Boolean,
    /** Upper bound for the snapshot, in tokens. */
    budget: TokenCount
  },
  /** Shows these characters of the user's text verbatim. */
  Pin: {
    entry: EntryId,
    part: Schema.Natural,
    start: Schema.Natural,
    end: Schema.Natural,
    why: Schema.Literals(["original request", "latest request", "pinned by the user"])
  },
  /** The layout of the view after the compression. */
  Layout: {
    /** Index of the first kept message in the curated history. */
    split: Schema.Natural,
    kept: Schema.Array(EntryId),
    /** Whether the layout needs a model message between the snapshot and the next message. */
    acknowledge: Schema.Boolean
  }
})
export type PlanStep = typeof PlanStep.Type

/**
 * Names the messages that leave: `e1 to e12`, or `up to e12` where an earlier snapshot is the first of them. It stands for all
 * messages before it, and its own id can be higher than those after it.
 */
export const rangeText = (
  first: { readonly author?: string | undefined } | undefined,
  from: string,
  to: string
): string => (first?.author === "summary" ? `up to ${to}` : `${from} to ${to}`)

/** What a compression will do, decided before anything changes. */
export const Plan = Schema.Struct({
  /** The version of the conversation that the plan was made for. The plan is refused on any other version. */
  version: Schema.Natural,
  /** The name of the strategy that made the plan. */
  strategy: Schema.String,
  /** Rung of the ladder: 0 follows the policy, each higher rung keeps less. */
  rung: Schema.Natural,
  steps: Schema.Array(PlanStep),
  /** Tokens of the request: before, and the prediction for after. */
  before: TokenCount,
  after: TokenCount
})
export type Plan = typeof Plan.Type

/** Why a compression changed nothing. */
export const NoopReason = Schema.Literals([
  "empty",
  "below threshold",
  "waiting for growth",
  /** A model was already asked for a summary of these messages and gave no usable result. */
  "already tried",
  "nothing to compress",
  "nothing shrank",
  /** A PreCompress hook vetoed it. */
  "vetoed by a hook"
])
export type NoopReason = typeof NoopReason.Type

/** The decision of a planner: a plan, or the reason why there is none. */
export const Decision = Schema.TaggedUnion({
  Skip: { reason: NoopReason, before: Schema.Finite },
  Go: { plan: Plan }
})
export type Decision = typeof Decision.Type

/** A failure during a compression that a fallback made up for. */
export const Degraded = Schema.Struct({ reason: Schema.String, message: Schema.String })
export type Degraded = typeof Degraded.Type

/** The audit of a snapshot: how many of the exact facts (`Anchors`) of the summarised messages are still in the window. */
export const AuditResult = Schema.Struct({
  /** Facts that were checked: the 1,000 with the highest weight, or all. */
  anchors: Schema.Natural,
  /** Those in the snapshot. */
  inSnapshot: Schema.Natural,
  /** Those that only the kept messages have. */
  inTail: Schema.Natural,
  /** Facts in the index of names, which code adds to the snapshot. */
  restored: Schema.Natural
})
export type AuditResult = typeof AuditResult.Type

/** A summarizing model that failed, after which the next one was asked. */
export const FailedModel = Schema.Struct({ model: Schema.String, reason: Schema.String, message: Schema.String })
export type FailedModel = typeof FailedModel.Type

/** One model call made for a snapshot, with its answer and its cost. */
export const SummaryCall = Schema.Struct({
  /**
   * `generate` and `verify`: the snapshot, and its check. `prefix`: the beginning of a split turn. `stage` and `merge`: a part
   * of a long range, and the summary of all parts. `branch`: a branch of the session that was left.
   */
  purpose: Schema.Literals(["generate", "verify", "prefix", "stage", "merge", "branch"]),
  /** The id of the call in telemetry: the id of the compression, with the purpose as a suffix unless it is `generate`. */
  promptId: Schema.optionalKey(Schema.String),
  model: Schema.String,
  /** Number of messages sent, including the instruction. */
  messages: Schema.Natural,
  answer: Schema.String,
  finishReason: Schema.String,
  usage: Schema.NullOr(Usage),
  /** The models that failed before this one was asked. Absent: none. */
  failed: Schema.optionalKey(Schema.Array(FailedModel))
})
export type SummaryCall = typeof SummaryCall.Type

/** The role of these calls in telemetry, as in Gemini CLI (LlmRole.UTILITY_COMPRESSOR). */
export const summarizerRole = "utility_compressor"

/** Returns the prompt id of one call of a compression. */
export const callPromptId = (promptId: string, purpose: SummaryCall["purpose"]): string =>
  purpose === "generate" ? promptId : `${promptId}-${purpose}`

/** Facts in a model's snapshot that do not occur in the conversation. */
export const UnsupportedFacts = Schema.Struct({
  /** Exact facts (paths, numbers, ids, addresses). They were removed. */
  removed: Schema.Array(Schema.String),
  /** Names. They stay in the snapshot and are reported. */
  unknown: Schema.Array(Schema.String)
})
export type UnsupportedFacts = typeof UnsupportedFacts.Type

/** A message that no plan made smaller, as `unshrinkable` reports it. */
const UnshrinkablePart = Schema.Struct({ entry: EntryId, what: Schema.String, tokens: TokenCount })

const changed = {
  before: TokenCount,
  after: TokenCount,
  plan: Plan,
  patch: Patch,
  degraded: Schema.NullOr(Degraded),
  calls: Schema.Array(SummaryCall)
}

/** Every way in which a compression can end. */
export const Outcome = Schema.TaggedUnion({
  Compressed: {
    ...changed,
    /** Who wrote the snapshot. `hook`: a PreCompress hook supplied it. */
    by: Schema.Literals(["model", "extractive", "ladder", "hook"]),
    snapshot: Schema.String,
    audit: AuditResult,
    doubts: UnsupportedFacts,
    /** Secrets left out of the snapshot, counted by kind. Absent when there were none. */
    secrets: Schema.optionalKey(Schema.Record(Schema.String, Schema.Natural))
  },
  ContentTruncated: changed,
  Noop: {
    reason: NoopReason,
    before: TokenCount,
    /** The reason that a hook gave. */
    detail: Schema.optionalKey(Schema.String)
  },
  FailedInflatedTokenCount: {
    reason: Schema.Literals(["inflated", "below minimum gain"]),
    before: TokenCount,
    after: TokenCount,
    plan: Plan,
    /** The remaining messages that cannot shrink, largest first. */
    stubborn: Schema.Array(UnshrinkablePart),
    calls: Schema.Array(SummaryCall)
  },
  FailedTokenCountError: {
    before: TokenCount,
    message: Schema.String,
    /** Absent when counting failed before there was a plan. */
    plan: Schema.optionalKey(Plan),
    /** Absent when no call was made. */
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
  /** Absent before the request was measured. */
  Cancelled: { before: Schema.optionalKey(TokenCount) }
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

/** The reason of a failed summary whose request did not fit the summarizing model's window. */
export const contextLength = "ContextLengthError"

/** Gemini CLI's CompressionStatus. The two outcomes that Gemini CLI does not have get names of their own. */
export const CompressionStatus = Schema.Literals([
  "COMPRESSED",
  "CONTENT_TRUNCATED",
  "NOOP",
  "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
  "COMPRESSION_FAILED_TOKEN_COUNT_ERROR",
  "COMPRESSION_FAILED_EMPTY_SUMMARY",
  "FAILED_SUMMARIZER",
  "CANCELLED"
])
export type CompressionStatus = typeof CompressionStatus.Type

const statuses: Readonly<Record<Outcome["_tag"], CompressionStatus>> = {
  Compressed: "COMPRESSED",
  ContentTruncated: "CONTENT_TRUNCATED",
  Noop: "NOOP",
  FailedInflatedTokenCount: "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
  FailedTokenCountError: "COMPRESSION_FAILED_TOKEN_COUNT_ERROR",
  FailedEmptySummary: "COMPRESSION_FAILED_EMPTY_SUMMARY",
  FailedSummarizer: "FAILED_SUMMARIZER",
  Cancelled: "CANCELLED"
}

/**
 * Returns the status of an outcome.
 *
 * **Example** (Naming what came of a compression)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compress, Compression, Palimpsest } from "palimpsest"
 *
 * const compressed = Compress.openAi([{ role: "user", content: "Hello" }]).pipe(
 *   Effect.provide(Palimpsest.layer())
 * )
 * const { outcome } = await Effect.runPromise(compressed)
 * console.log(Compression.statusOf(outcome)) // => NOOP
 * ```
 */
export const statusOf = ({ _tag }: Pick<Outcome, "_tag">): CompressionStatus => statuses[_tag]

/** Returns the tokens of the request before, and after; of an inflated one as it would have been. */
export const tokensOf = (outcome: Outcome): { readonly before: number; readonly after: number } => {
  const { before = 0 } = outcome
  return { before, after: "after" in outcome ? outcome.after : before }
}

/** Returns the range that a model was asked to summarise, whatever came of it; undefined when no call was made. */
export const summarizedRangeOf = (outcome: Outcome): { readonly from: EntryId; readonly to: EntryId } | undefined => {
  if (!("plan" in outcome) || outcome.plan === undefined || callsOf(outcome).length === 0) return undefined
  const step = outcome.plan.steps.find((each) => each._tag === "Summarize")
  return step === undefined ? undefined : { from: step.from, to: step.to }
}

/** Returns the outcome with other token counts for the request before and after: the counts that the user sees. */
export const withCounts = (outcome: Outcome, before: number, after: number): Outcome => {
  // Not checked again: with long plans, that takes longer than all else of a prepared compression.
  const counted = { ...outcome, before: tokenCount(before) }
  return "after" in counted ? { ...counted, after: tokenCount(after) } : counted
}

/** Returns the model calls that were made. They cost money however the compression ended. */
export const callsOf = (outcome: Outcome): ReadonlyArray<SummaryCall> =>
  "calls" in outcome ? (outcome.calls ?? []) : []

/** The calls as an event of the log keeps them; no field where there was none. */
export const paidCalls = (
  calls: ReadonlyArray<SummaryCall>
): { readonly calls?: Array<Pick<SummaryCall, "model" | "usage">> } =>
  calls.length === 0 ? {} : { calls: calls.map(({ model, usage }) => ({ model, usage })) }

/** Returns the summarizing models that failed before another one was asked. */
export const failedModelsOf = (outcome: Outcome): ReadonlyArray<FailedModel> =>
  callsOf(outcome).flatMap(({ failed = [] }) => failed)

/** Returns the change to the conversation; undefined when there is none. */
export const patchOf = (outcome: Outcome): Patch | undefined =>
  Outcome.matchOrElse(
    outcome,
    { Compressed: ({ patch }): Patch | undefined => patch, ContentTruncated: ({ patch }) => patch },
    () => undefined
  )

/**
 * Returns the conversation after the outcome. Only a compression that changes something replaces it.
 *
 * **Example** (Going on with a compressed conversation)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compression, Content, Conversation, Palimpsest, Tokens } from "palimpsest"
 *
 * const drafts = Array.from({ length: 40 }, (_, n) => ({
 *   content: (n % 2 === 0 ? Content.user : Content.model)(
 *     Content.text(`Message ${n}. ${"Of oak. ".repeat(60)}`)
 *   )
 * }))
 * const policy = { ...Compression.defaultPolicy, limit: Tokens.TokenCount.make(4_000) }
 * const program = Effect.gen(function* () {
 *   const request = yield* Compression.requestFor(drafts, policy)
 *   const { outcome } = yield* Compression.Compression.use((compression) => compression.compress(request))
 *   return Conversation.viewTokens(Compression.adopt(request.conversation, outcome))
 * })
 * console.log((await Effect.runPromise(Effect.provide(program, Palimpsest.layer()))) < 4_000) // => true
 * ```
 */
export const adopt = (conversation: Conversation, outcome: Outcome): Conversation => {
  const patch = patchOf(outcome)
  return patch === undefined ? conversation : compressed(conversation, patch)
}
