/** Compares the providers' token counts with ours, and computes the cost. */

import { Schema } from "effect"
import { isThought } from "../content/Content.ts"
import { type Entry, EntryId, sum } from "../conversation/Conversation.ts"
import type { SessionEvent } from "../session/Session.ts"
import { builtInPrices, type Cost, costOf, type Prices, type PricedRequest } from "../tokens/Prices.ts"
import { addUsage, Usage } from "../tokens/Tokens.ts"
import { countedTokens } from "./Compactions.ts"

/** The providers' token counts, compared with ours. */
export const RecordedUsage = Schema.Struct({
  /** Number of answers with a count. */
  answers: Schema.Natural,
  /** Sums over these answers. */
  recorded: Usage,
  /** For each answer: the provider's count of the request, and our count of the view before the answer. */
  points: Schema.Array(Schema.Struct({ entry: EntryId, recorded: Schema.Natural, ours: Schema.Natural })),
  /**
   * Recorded ≈ overhead + factor × ours. The overhead is the part of each request that no transcript holds: instructions and
   * tools.
   */
  overhead: Schema.Finite,
  factor: Schema.Finite,
  /** Mean of |recorded − fitted| / recorded. */
  error: Schema.Finite
})
export type RecordedUsage = typeof RecordedUsage.Type

/** An answer of the model, which may span several messages. */
export interface RecordedAnswer {
  entry: EntryId
  model: string | undefined
  /** Estimated tokens of the view that the request sent. */
  readonly viewTokens: number
  answer: number
  thoughts: number
  usage: Usage | undefined
}

/** Whether a provider counted anything. */
export const isCounted = (usage: Usage): boolean => usage.prompt + usage.answer + usage.thoughts > 0

/** Returns the answers in order. Consecutive model messages are one answer, unless the provider counted them separately. */
export const answersIn = (log: ReadonlyArray<Entry>, sizes: ReadonlyArray<number>): ReadonlyArray<RecordedAnswer> => {
  const answers: Array<RecordedAnswer> = []
  let open: RecordedAnswer | undefined
  for (const [index, entry] of log.entries()) {
    if (entry.content.role !== "model" || entry.author !== undefined) {
      open = undefined
      continue
    }
    if (open === undefined) {
      const viewTokens = (sizes[index] ?? 0) - countedTokens(entry)
      open = { entry: entry.id, model: undefined, viewTokens, answer: 0, thoughts: 0, usage: undefined }
      answers.push(open)
    }
    open.model = entry.model ?? open.model
    for (const [at, part] of entry.content.parts.entries()) {
      open[isThought(part) ? "thoughts" : "answer"] += entry.tokens[at] ?? 0
    }
    if (entry.usage === undefined || !isCounted(entry.usage)) continue
    open.entry = entry.id
    open.usage = entry.usage
    open = undefined
  }
  return answers
}

type Point = RecordedUsage["points"][number]

/** Bounds of a plausible factor. A slope outside them is not used; the factor is 1 then. */
const plausibleFactor = { min: 0.25, max: 4 }

/**
 * Fits a line through the points by least squares of the relative error: recorded ≈ overhead + factor × ours, with an
 * overhead of at least 0. Relative errors give small requests, which are mostly overhead, the same influence as large ones.
 * When the points cannot separate the two (one point, views of one size), the factor is 1.
 */
const fitted = (points: ReadonlyArray<Point>): Pick<RecordedUsage, "overhead" | "factor" | "error"> => {
  const counted = points.filter(({ recorded }) => recorded > 0)
  if (counted.length === 0) return { overhead: 0, factor: 1, error: 0 }
  const weight = sum(counted.map(({ recorded }) => recorded ** -2))
  const mean = (of: (point: Point) => number) => sum(counted.map((point) => of(point) * point.recorded ** -2)) / weight
  const ours = mean((point) => point.ours)
  const recorded = mean((point) => point.recorded)
  const spread = mean((point) => (point.ours - ours) ** 2)
  const slope =
    spread <= ours ** 2 * 1e-12 ? 1 : mean((point) => (point.ours - ours) * (point.recorded - recorded)) / spread
  const steep = slope >= plausibleFactor.min && slope <= plausibleFactor.max ? slope : 1
  const isOver = recorded - steep * ours < 0
  const factor = isOver ? mean((point) => point.ours * point.recorded) / mean((point) => point.ours ** 2) : steep
  const overhead = isOver ? 0 : recorded - factor * ours
  const off = counted.map((point) => Math.abs(point.recorded - overhead - factor * point.ours) / point.recorded)
  return { overhead, factor, error: sum(off) / counted.length }
}

/** Returns the provider's total counts and how our counts compare; null when no provider counted. */
export const usageOf = (answers: Iterable<RecordedAnswer>): RecordedUsage | null => {
  let recorded: Usage = { prompt: 0, answer: 0, thoughts: 0, cached: 0 }
  let count = 0
  const points: Array<Point> = []
  for (const { entry, usage, viewTokens } of answers) {
    if (usage === undefined) continue
    count += 1
    recorded = addUsage(recorded, usage)
    if (usage.prompt > 0) points.push({ entry, recorded: usage.prompt, ours: viewTokens })
  }
  return count === 0 ? null : { answers: count, recorded, points, ...fitted(points) }
}

/** Returns the model calls of all compressions in a log. Undone, failed and prepared ones count, because they cost money too. */
export const summaryRequests = (events: ReadonlyArray<SessionEvent>): ReadonlyArray<PricedRequest> =>
  events.flatMap((event) =>
    "calls" in event
      ? (event.calls ?? []).flatMap(({ model, usage }) => (usage === null ? [] : [{ model, usage }]))
      : []
  )

/**
 * Returns the cost of the requests: as the provider counted them, or without its counts, as we count them (one request per
 * answer, the size of the view before it). Includes the compressions' calls.
 */
export const recordedCost = (
  answers: Iterable<RecordedAnswer>,
  isEstimated: boolean,
  summaries: ReadonlyArray<PricedRequest>,
  about: { readonly model?: string | undefined; readonly prices?: Prices | undefined }
): Cost =>
  costOf(
    [...[...answers].flatMap((answer) => requestOf(answer, isEstimated, about.model) ?? []), ...summaries],
    about.prices ?? builtInPrices,
    isEstimated
  )

/** Returns the request of an answer; undefined without a count of the provider, unless it is estimated. */
export const requestOf = (
  { answer, model, thoughts, usage, viewTokens }: RecordedAnswer,
  isEstimated: boolean,
  defaultModel = "unknown"
): PricedRequest | undefined => {
  const counts = usage ?? (isEstimated ? { prompt: viewTokens, answer, thoughts, cached: 0 } : undefined)
  return counts && { model: model ?? defaultModel, usage: counts }
}
