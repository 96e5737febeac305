import { type Conversation, type Pin, type ViewItem, viewTokens } from "../../../conversation/Conversation.ts"
import type { FailureMemory } from "../../../conversation/FailureMemory.ts"
import { type IndexedView, indexedView } from "../../../conversation/IndexedView.ts"
import type { SlicedWork } from "../../../text/SlicedWork.ts"
import { tokenCount } from "../../../tokens/Tokens.ts"
import type { Decision, PlanStep } from "../../Compression.ts"
import { requestSpans, type Span } from "../../evidence/UserRequests.ts"
import type { PolicyOptions } from "../../PolicyOptions.ts"
import { originalRequest } from "./OriginalRequest.ts"
import { palimpsest } from "./Palimpsest.ts"
import { outputsBeyond, rungAt, shortenings, shortenStep } from "./Shortening.ts"
import { pendingFrom, splitIndex, unansweredFrom } from "./Split.ts"

/** Share of the threshold that a plan aims for, so that one or two turns fit before the next compression. */
const headroom = 0.9
/**
 * Default size of a snapshot: a share of what it replaces, within bounds in tokens. Large, because a token of a snapshot helps
 * the next steps more than a token of kept messages (docs/strategies.md, "Measured"). A snapshot may end up smaller.
 */
const snapshotSize = { ofDropped: 0.6, ofCeiling: 0.5, minTokens: 320, maxTokens: 12_000 }

const pinOf = (span: Pin, why: Extract<PlanStep, { _tag: "Pin" }>["why"]): PlanStep => ({
  _tag: "Pin",
  entry: span.entry,
  part: span.part,
  start: span.start,
  end: span.end,
  why
})

/** The input of a plan besides the conversation and the policy. */
export interface PlanOptions {
  readonly forced: boolean
  readonly memory: FailureMemory
  /** The user's pins, wherever they are in the log. */
  readonly pins?: ReadonlyArray<Pin> | undefined
  /** The rung of the ladder: 0 to `rungCount - 1`. */
  readonly rung: number
}

/** Whether these messages are at most one besides the summaries, and none of the user's. */
const isOnlySnapshot = (dropped: ReadonlyArray<ViewItem>): boolean =>
  dropped.every(({ entry }) => entry.author === "summary" || entry.content.role === "model") &&
  dropped.filter(({ entry }) => entry.author !== "summary").length <= 1

/** Returns the user's latest request between two indexes. */
const latestRequest = (view: IndexedView, from: number, to: number): Span | undefined => {
  for (const { entry } of view.asking(from, to)) {
    const latest = requestSpans(entry).at(-1)
    if (latest !== undefined) return latest
  }
  return undefined
}

/** Decides whether and how a conversation is compressed. */
export function* plan(conversation: Conversation, policy: PolicyOptions, options: PlanOptions): SlicedWork<Decision> {
  const view = yield* indexedView(conversation.view)
  /** The environment message comes first and stays. */
  const start = view.environment
  if (view.length === start) return { _tag: "Skip", reason: "empty", before: 0 }
  const before = policy.overhead + view.requestTokens
  if (!options.forced) {
    if (before < policy.threshold * policy.limit) return { _tag: "Skip", reason: "below threshold", before }
    if (viewTokens(conversation) < options.memory.waitUntil)
      return { _tag: "Skip", reason: "waiting for growth", before }
  }
  const level = rungAt(policy, options.rung)
  const window = policy.threshold < 1 ? policy.threshold * policy.limit : policy.limit
  const ceiling = Math.max(0, window * headroom - policy.overhead)
  const toolBudget = Math.min(policy.toolBudget, ceiling * 0.5) * level.tools
  const large = outputsBeyond(view, toolBudget)
  const pending = policy.preserve === 0 ? unansweredFrom(view) : pendingFrom(view, start)
  const maxSnapshotTokens = policy.snapshotBudget ?? Math.min(snapshotSize.maxTokens, ceiling * snapshotSize.ofCeiling)
  const tailBudget = Math.min(
    policy.preserve * level.preserve * large.total(start),
    Math.max(0, ceiling - maxSnapshotTokens)
  )
  const split = splitIndex(view, start, large.size, pending, tailBudget)
  yield (view.length - split) * 40

  const shorter = yield* shortenings(view, large.from(split), level)

  const first = split > start ? view.at(start) : undefined
  const last = split > start ? view.at(split - 1) : undefined
  const steps: Array<PlanStep> = []
  for (const one of shorter) steps.push(...shortenStep(view, one, level.form))
  if (first === undefined || last === undefined || (split - start <= 2 && isOnlySnapshot(view.slice(start, split)))) {
    const everything = split === start ? shorter : yield* shortenings(view, large.from(start), level)
    if (everything.length === 0) return { _tag: "Skip", reason: "nothing to compress", before }
    const saved = everything.reduce((sum, one) => sum + one.before - one.after, 0)
    return go(
      conversation,
      options,
      everything.flatMap((one) => shortenStep(view, one, level.form)),
      before,
      before - saved
    )
  }
  const budget = Math.round(
    Math.min(
      maxSnapshotTokens,
      policy.snapshotBudget ?? Math.max(snapshotSize.minTokens, view.tokens(start, split) * snapshotSize.ofDropped)
    )
  )
  steps.push({
    _tag: "Summarize",
    from: first.entry.id,
    to: last.entry.id,
    prompt: view.summaries(start, split) > 0 ? "merge" : "create",
    verify: true,
    budget: tokenCount(budget)
  })
  const original = originalRequest(conversation)
  const latest = latestRequest(view, start, split)
  if (original !== undefined) steps.push(pinOf(original, "original request"))
  if (latest !== undefined && (latest.entry !== original?.entry || latest.start !== original.start))
    steps.push(pinOf(latest, "latest request"))
  const kept = view.slice(split)
  const keptIds = new Set(kept.map((item) => item.entry.id))
  for (const pin of options.pins ?? []) if (!keptIds.has(pin.entry)) steps.push(pinOf(pin, "pinned by the user"))
  steps.push({
    _tag: "Layout",
    split: view.sent(0, split),
    kept: kept.map((item) => item.entry.id),
    acknowledge: kept[0]?.entry.content.role !== "model"
  })
  const saved = shorter.reduce((sum, one) => sum + one.before - one.after, 0)
  return go(conversation, options, steps, before, policy.overhead + view.tokens(split) - saved + budget)
}

const go = (
  conversation: Conversation,
  options: PlanOptions,
  steps: ReadonlyArray<PlanStep>,
  before: number,
  after: number
): Decision => ({
  _tag: "Go",
  plan: {
    version: conversation.version,
    strategy: palimpsest.name,
    rung: options.rung,
    steps,
    before: tokenCount(before),
    after: tokenCount(after)
  }
})
