/** Plans a compression of the strategy `palimpsest`: what is shortened, where to split, and which words are pinned. */

import { pendingFrom } from "../../../conversation/CleanCuts.ts"
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
import {
  type OutputsBeyond,
  outputsBeyond,
  type Rung,
  rungAt,
  type Shortening,
  shortenings,
  shortenStep,
  shortenedToShare
} from "./Shortening.ts"
import { splitIndex } from "./Split.ts"

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
    const latest = requestSpans(entry).findLast(({ question }) => question === undefined)
    if (latest !== undefined) return latest
  }
  return undefined
}

const savedBy = (shorter: ReadonlyArray<Shortening>): number =>
  shorter.reduce((sum, one) => sum + one.before - one.after, 0)

/** What is decided on: the messages, and how far a plan may go. */
interface PlanContext {
  readonly view: IndexedView
  readonly policy: PolicyOptions
  readonly level: Rung
  /** The outputs beyond their budget. */
  readonly large: OutputsBeyond
  /** From this index on, the model has answered nothing. */
  readonly pending: number
  /** The threshold is a wish and the window a limit: what the model has not answered yet gives way to the limit alone. */
  readonly isGentle: boolean
}

/** The shortened outputs from an index on. `added`: tokens that the plan adds. */
function* shorteningsFrom(
  { isGentle, large, level, pending, policy, view }: PlanContext,
  index: number,
  added: number
): SlicedWork<ReadonlyArray<Shortening>> {
  const outputs = large.from(index)
  if (!isGentle) return yield* shortenings(view, outputs, level)
  const early = outputs.filter(({ item }) => item < pending)
  const answered = yield* shortenings(view, early, level)
  const room = policy.limit - policy.overhead - added - view.tokens(index) + savedBy(answered)
  if (room >= 0) return answered
  return [...answered, ...(yield* shortenedToShare(view, pending, -room, level))]
}

const shortenSteps = ({ level, view }: PlanContext, shorter: ReadonlyArray<Shortening>): ReadonlyArray<PlanStep> =>
  shorter.flatMap((one) => shortenStep(view, one, level.form))

/** What a snapshot of the messages between two indexes quotes. */
const pinSteps = (
  conversation: Conversation,
  view: IndexedView,
  from: number,
  to: number,
  pins: ReadonlyArray<Pin>
): ReadonlyArray<PlanStep> => {
  const original = originalRequest(conversation)
  const latest = latestRequest(view, from, to)
  const isSame = latest?.entry === original?.entry && latest?.start === original?.start
  return [
    ...(original === undefined ? [] : [pinOf(original, "original request")]),
    ...(latest === undefined || isSame ? [] : [pinOf(latest, "latest request")]),
    ...pins.map((pin) => pinOf(pin, "pinned by the user"))
  ]
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
  const large = outputsBeyond(view, Math.min(policy.toolBudget, ceiling * 0.5) * level.tools)
  const pending = pendingFrom(view, start)
  const isGentle = options.rung === 0 || before <= policy.limit
  const context: PlanContext = { view, policy, level, large, pending, isGentle }

  const { snapshotBudget } = policy
  const maxSnapshot = snapshotBudget ?? Math.min(snapshotSize.maxTokens, ceiling * snapshotSize.ofCeiling)
  const tail = Math.min(policy.preserve * level.preserve * large.total(start), Math.max(0, ceiling - maxSnapshot))
  const sizeAt = (index: number) => (isGentle && index >= pending ? view.tokens(index, index + 1) : large.size(index))
  const split = yield* splitIndex(view, start, sizeAt, pending, tail)
  const first = split > start ? view.at(start) : undefined
  const last = split > start ? view.at(split - 1) : undefined
  if (first === undefined || last === undefined || (split - start <= 2 && isOnlySnapshot(view.slice(start, split)))) {
    const everything = yield* shorteningsFrom(context, start, 0)
    if (everything.length === 0) return { _tag: "Skip", reason: "nothing to compress", before }
    return go(conversation, options, shortenSteps(context, everything), before, before - savedBy(everything))
  }

  const ofDropped = Math.max(snapshotSize.minTokens, view.tokens(start, split) * snapshotSize.ofDropped)
  const budget = Math.round(snapshotBudget ?? Math.min(maxSnapshot, ofDropped))
  const shorter = yield* shorteningsFrom(context, split, budget)
  const after = policy.overhead + view.tokens(split) - savedBy(shorter) + budget
  // What would gain enough are results that have to stay whole.
  if (before <= policy.limit && after >= before && large.from(pending).length > 0) {
    return { _tag: "Skip", reason: "nothing to compress", before }
  }
  const prompt = view.summaries(start, split) > 0 ? "merge" : "create"
  const kept = view.slice(split).map(({ entry }) => entry)
  const keptIds = kept.map(({ id }) => id)
  const isKept = new Set(keptIds)
  const pins = (options.pins ?? []).filter(({ entry }) => !isKept.has(entry))
  const steps: ReadonlyArray<PlanStep> = [
    ...shortenSteps(context, shorter),
    { _tag: "Summarize", from: first.entry.id, to: last.entry.id, prompt, verify: true, budget: tokenCount(budget) },
    ...pinSteps(conversation, view, start, split, pins),
    { _tag: "Layout", split: view.sent(0, split), kept: keptIds, acknowledge: kept[0]?.content.role !== "model" }
  ]
  return go(conversation, options, steps, before, after)
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
