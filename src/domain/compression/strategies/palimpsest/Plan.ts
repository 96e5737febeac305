import { cleanCuts } from "../../../conversation/CleanCuts.ts"
import { type Conversation, itemTokens, type Pin, view, viewTokens } from "../../../conversation/Conversation.ts"
import type { FailureMemory } from "../../../conversation/FailureMemory.ts"
import { projecting, requestTokens } from "../../../conversation/Projection.ts"
import type { SlicedWork } from "../../../text/SlicedWork.ts"
import type { Decision, PlanStep } from "../../Compression.ts"
import { requestSpans } from "../../evidence/UserRequests.ts"
import type { PolicyOptions } from "../../PolicyOptions.ts"
import { originalRequest } from "./OriginalRequest.ts"
import { palimpsest } from "./Palimpsest.ts"
import { outputsBeyond, rungAt, shortenedTokens, shortenings, shortenStep, tokenCount } from "./Shortening.ts"
import { pendingFrom, splitIndex, unansweredFrom } from "./Split.ts"

/** Share of the threshold that a plan aims for, so that one or two turns fit before the next compression. */
const headroom = 0.9
/**
 * Default size of a snapshot: a share of what it replaces, within bounds in tokens. It tells more of what comes next than as
 * many tokens of kept messages do (docs/strategies.md, "Measured"); an index fills only the room that it has names for.
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

/** Decides whether and how a conversation is compressed. */
export function* plan(conversation: Conversation, policy: PolicyOptions, options: PlanOptions): SlicedWork<Decision> {
  const all = view(conversation)
  const environment = all.filter((item) => item.entry.author === "environment").length
  const items = all.slice(environment)
  if (items.length === 0) return { _tag: "Skip", reason: "empty", before: 0 }
  const sent = yield* projecting(all)
  const before = policy.overhead + requestTokens(sent)
  if (!options.forced) {
    if (before < policy.threshold * policy.limit) return { _tag: "Skip", reason: "below threshold", before }
    if (viewTokens(conversation) < options.memory.waitUntil)
      return { _tag: "Skip", reason: "waiting for growth", before }
  }
  const level = rungAt(policy, options.rung)
  const window = policy.threshold < 1 ? policy.threshold * policy.limit : policy.limit
  const ceiling = Math.max(0, window * headroom - policy.overhead)
  const toolBudget = Math.min(policy.toolBudget, ceiling * 0.5) * level.tools
  const large = outputsBeyond(items, toolBudget)
  const estimatedSavings = new Map<number, number>()
  for (const { before: tokens, item } of large) {
    estimatedSavings.set(item, (estimatedSavings.get(item) ?? 0) + Math.max(0, tokens - shortenedTokens))
  }
  const sizes = items.map((item, index) => itemTokens(item) - (estimatedSavings.get(index) ?? 0))
  const total = sizes.reduce((sum, size) => sum + size, 0)
  yield items.length * 20

  const clean = cleanCuts(items)
  yield items.length * 40
  const pending = policy.preserve === 0 ? unansweredFrom(items) : pendingFrom(items, clean)
  const maxSnapshotTokens = policy.snapshotBudget ?? Math.min(snapshotSize.maxTokens, ceiling * snapshotSize.ofCeiling)
  const tailBudget = Math.min(policy.preserve * level.preserve * total, Math.max(0, ceiling - maxSnapshotTokens))
  const split = splitIndex(items, sizes, clean, pending, tailBudget)

  const shorter = yield* shortenings(
    items,
    large.filter(({ item }) => item >= split),
    level
  )

  const dropped = items.slice(0, split)
  const droppedTokens = dropped.reduce((sum, item) => sum + itemTokens(item), 0)
  const first = dropped[0]
  const last = dropped[dropped.length - 1]
  const onlySnapshot =
    dropped.every((item) => item.entry.author === "summary" || item.entry.content.role === "model") &&
    dropped.filter((item) => item.entry.author !== "summary").length <= 1
  const steps: Array<PlanStep> = []
  for (const one of shorter) steps.push(...shortenStep(items, one, level.form))
  if (first === undefined || last === undefined || (onlySnapshot && dropped.length <= 2)) {
    const everything = split === 0 ? shorter : yield* shortenings(items, large, level)
    if (everything.length === 0) return { _tag: "Skip", reason: "nothing to compress", before }
    const saved = everything.reduce((sum, one) => sum + one.before - one.after, 0)
    return go(
      conversation,
      options,
      everything.flatMap((one) => shortenStep(items, one, level.form)),
      before,
      before - saved
    )
  }
  const budget = Math.round(
    Math.min(
      maxSnapshotTokens,
      policy.snapshotBudget ?? Math.max(snapshotSize.minTokens, droppedTokens * snapshotSize.ofDropped)
    )
  )
  steps.push({
    _tag: "Summarize",
    from: first.entry.id,
    to: last.entry.id,
    prompt: dropped.some((item) => item.entry.author === "summary") ? "merge" : "create",
    verify: true,
    budget: tokenCount(budget)
  })
  const requests = dropped.flatMap((item) => requestSpans(item.entry))
  const original = originalRequest(conversation)
  const latest = requests[requests.length - 1]
  if (original !== undefined) steps.push(pinOf(original, "original request"))
  if (latest !== undefined && (latest.entry !== original?.entry || latest.start !== original.start))
    steps.push(pinOf(latest, "latest request"))
  const kept = items.slice(split)
  const keptIds = new Set(kept.map((item) => item.entry.id))
  for (const pin of options.pins ?? []) if (!keptIds.has(pin.entry)) steps.push(pinOf(pin, "pinned by the user"))
  steps.push({
    _tag: "Layout",
    split: sent.length - sent.filter(({ entry }) => keptIds.has(entry)).length,
    kept: kept.map((item) => item.entry.id),
    acknowledge: kept[0]?.entry.content.role !== "model"
  })
  yield items.length * 40
  const tail = kept.reduce((sum, item) => sum + itemTokens(item), 0)
  const saved = shorter.reduce((sum, one) => sum + one.before - one.after, 0)
  return go(conversation, options, steps, before, policy.overhead + tail - saved + budget)
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
