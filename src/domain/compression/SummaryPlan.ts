/** Plans of the strategies that keep the newest messages and replace the rest by one summary (`pi`, `openclaw`). */

import { cleanCuts, pendingFrom } from "../conversation/CleanCuts.ts"
import {
  beginsTurn,
  type Conversation,
  itemTokens,
  view,
  type ViewItem,
  viewTokens
} from "../conversation/Conversation.ts"
import type { FailureMemory } from "../conversation/FailureMemory.ts"
import { projecting, requestTokens } from "../conversation/Projection.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { TokenCount } from "../tokens/Tokens.ts"
import type { Decision } from "./Compression.ts"
import type { PolicyOptions } from "./PolicyOptions.ts"

/** Where a conversation is cut: what is before leaves, what is from there on stays. */
interface Cut {
  /** The index of the first message that stays. 0: nothing can leave. */
  readonly at: number
  /** Where the turn begins that the cut splits; `at` when the cut is between turns. */
  readonly turn: number
}

/**
 * Returns the cut that keeps about this many tokens at the end: at the first message at or after the budget's point that is
 * no tool result. When there is none, as after one giant result, at the last one before that point: Pi keeps everything then,
 * and cannot compact. `at` is 0 when everything fits the budget. Calls that wait for their results, and messages that the model
 * has not answered, always stay.
 */
export const cutOf = (items: ReadonlyArray<ViewItem>, keepTokens: number): Cut => {
  const clean = cleanCuts(items)
  const { length } = items
  const end = pendingFrom({ length, at: (index) => items[index], isClean: (index) => clean[index] === true })
  let kept = 0
  let from = items.length
  while (from > 0 && kept < keepTokens) {
    from -= 1
    const item = items[from]
    kept += item === undefined ? 0 : itemTokens(item)
  }
  if (from === 0 && kept < keepTokens) return { at: 0, turn: 0 }
  const isCut = (index: number) => clean[index] === true && index <= end
  let at = Math.min(from, end)
  while (at < end && !isCut(at)) at += 1
  // All that is kept would be nothing: a message without an answer stays.
  if (!isCut(at) || (at === items.length && keepTokens > 0)) {
    at = Math.min(from, end)
    while (at > 0 && !isCut(at)) at -= 1
  }
  let turn = at
  const begins = (index: number) => items[index] !== undefined && beginsTurn(items[index].entry)
  if (at < items.length) while (turn > 0 && !begins(turn)) turn -= 1
  return { at, turn: begins(turn) ? turn : at }
}

/** Default size of a summary that code writes: a share of what it replaces, but at least `minTokens`. */
const byCode = { share: 0.25, minTokens: 320 }

/** What distinguishes one strategy of this kind from another. Sizes are in tokens. */
export interface SummaryStrategy {
  readonly name: string
  /** Returns the tokens of the newest messages that stay, for a window of this many tokens. */
  readonly keepRecent: (window: number) => number
  /** Upper bound of the summary. */
  readonly maxSummaryTokens: number
  /** Returns the index of the first message that stays. Absent: by `keepRecent`. */
  readonly cut?: (items: ReadonlyArray<ViewItem>, policy: PolicyOptions) => number
}

/** The input of a plan besides the conversation and the policy. */
export interface PlanOptions {
  readonly forced: boolean
  readonly memory: FailureMemory
}

/** Returns the messages that a compaction may move: all but the environment message. */
export const movable = (conversation: Conversation): ReadonlyArray<ViewItem> =>
  view(conversation).filter(({ entry }) => entry.author !== "environment")

/** Returns where this conversation is cut under a policy. With `preserve` 0 only what the model has not answered is kept. */
export const cutIn = (
  { keepRecent }: SummaryStrategy,
  items: ReadonlyArray<ViewItem>,
  { limit, preserve }: PolicyOptions
): Cut => cutOf(items, preserve === 0 ? 0 : keepRecent(limit))

const isSummary = ({ entry }: ViewItem): boolean => entry.author === "summary"

/** Decides whether and how a conversation is compacted. */
export function* summaryPlan(
  strategy: SummaryStrategy,
  conversation: Conversation,
  policy: PolicyOptions,
  { forced, memory }: PlanOptions
): SlicedWork<Decision> {
  const items = movable(conversation)
  if (items.length === 0) return { _tag: "Skip", reason: "empty", before: 0 }
  const sent = yield* projecting(view(conversation))
  const before = policy.overhead + requestTokens(sent)
  if (!forced) {
    // The threshold is a share, so that rounding must not decide.
    if (before + 1e-6 < policy.threshold * policy.limit) return { _tag: "Skip", reason: "below threshold", before }
    if (viewTokens(conversation) < memory.waitUntil) return { _tag: "Skip", reason: "waiting for growth", before }
  }
  const at = strategy.cut?.(items, policy) ?? cutIn(strategy, items, policy).at
  const dropped = items.slice(0, at)
  const first = dropped[0]
  const last = dropped[dropped.length - 1]
  if (first === undefined || last === undefined || dropped.every(isSummary)) {
    return { _tag: "Skip", reason: "nothing to compress", before }
  }
  const kept = items.slice(at)
  const keptIds = new Set(kept.map(({ entry }) => entry.id))
  const droppedTokens = dropped.reduce((sum, item) => sum + itemTokens(item), 0)
  const requested =
    policy.snapshotBudget ??
    (policy.summarizer === "model"
      ? strategy.maxSummaryTokens
      : Math.max(byCode.minTokens, droppedTokens * byCode.share))
  const budget = TokenCount.make(Math.round(Math.min(strategy.maxSummaryTokens, requested)))
  const tail = kept.reduce((sum, item) => sum + itemTokens(item), 0)
  return {
    _tag: "Go",
    plan: {
      version: conversation.version,
      strategy: strategy.name,
      rung: 0,
      steps: [
        {
          _tag: "Summarize",
          from: first.entry.id,
          to: last.entry.id,
          prompt: dropped.some(isSummary) ? "merge" : "create",
          verify: false,
          budget
        },
        {
          _tag: "Layout",
          split: sent.length - sent.filter(({ entry }) => keptIds.has(entry)).length,
          kept: kept.map(({ entry }) => entry.id),
          acknowledge: false
        }
      ],
      before: TokenCount.make(before),
      after: TokenCount.make(Math.round(policy.overhead + tail + Math.min(budget, droppedTokens)))
    }
  }
}
