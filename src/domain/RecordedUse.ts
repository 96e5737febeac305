import { Schema } from "effect"
import { counted } from "./Compactions.ts"
import { isThought } from "./Content.ts"
import { type Entry, EntryId, sum } from "./Conversation.ts"
import { builtIn, type Cost, costOf, type Prices, type Request, sumUp } from "./Prices.ts"
import type { SessionEvent } from "./Session.ts"
import { Usage } from "./Tokens.ts"

/** What providers counted, beside what we count, and what it cost. */

/** What providers counted, beside what we count. */
export const Recorded = Schema.Struct({
  /** Answers that came with a count. */
  answers: Schema.Natural,
  /** Sums over them. */
  recorded: Usage,
  /** For each answer: the request as the provider counted it, and our count of the view before the answer. */
  points: Schema.Array(Schema.Struct({ entry: EntryId, recorded: Schema.Natural, ours: Schema.Natural })),
  /** Recorded ≈ overhead + factor × ours. Tokens of each request that no transcript holds: instructions, tools. */
  overhead: Schema.Finite,
  factor: Schema.Finite,
  /** Mean of |recorded − fitted| / recorded. */
  error: Schema.Finite
})
export type Recorded = typeof Recorded.Type

/** An answer of the model, which may be written down in several messages. */
export interface Answer {
  entry: EntryId
  model: string | undefined
  /** Our count of the view that was asked about. */
  readonly asked: number
  answer: number
  thoughts: number
  usage: Usage | undefined
}

/** Whether a provider counted anything. */
export const isCounted = (usage: Usage): boolean => usage.prompt + usage.answer + usage.thoughts > 0

/** The answers in order. Model messages in a row are one answer, unless the provider counted them one by one. */
export const answersIn = (log: ReadonlyArray<Entry>, sizes: ReadonlyArray<number>): ReadonlyArray<Answer> => {
  const answers: Array<Answer> = []
  let open: Answer | undefined
  for (const [index, entry] of log.entries()) {
    if (entry.content.role !== "model" || entry.author !== undefined) {
      open = undefined
      continue
    }
    if (open === undefined) {
      const asked = (sizes[index] ?? 0) - counted(entry)
      open = { entry: entry.id, model: undefined, asked, answer: 0, thoughts: 0, usage: undefined }
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

type Point = Recorded["points"][number]

/** An estimate of tokens is not further off than this: points that say so say nothing about it. */
const plausible = { least: 0.25, most: 4 }

/**
 * The line through the points, by least squares of what it is off in proportion: recorded ≈ overhead + factor × ours, with
 * no overhead below 0. So small requests, which are mostly overhead, say as much as large ones. Where the points do not
 * tell the two apart (one point, views of one size), our count is taken as right.
 */
const fitted = (points: ReadonlyArray<Point>): Pick<Recorded, "overhead" | "factor" | "error"> => {
  const known = points.filter(({ recorded }) => recorded > 0)
  if (known.length === 0) return { overhead: 0, factor: 1, error: 0 }
  const weight = sum(known.map(({ recorded }) => recorded ** -2))
  const mean = (of: (point: Point) => number) => sum(known.map((point) => of(point) * point.recorded ** -2)) / weight
  const ours = mean((point) => point.ours)
  const recorded = mean((point) => point.recorded)
  const spread = mean((point) => (point.ours - ours) ** 2)
  const slope =
    spread <= ours ** 2 * 1e-12 ? 1 : mean((point) => (point.ours - ours) * (point.recorded - recorded)) / spread
  const steep = slope >= plausible.least && slope <= plausible.most ? slope : 1
  const isOver = recorded - steep * ours < 0
  const factor = isOver ? mean((point) => point.ours * point.recorded) / mean((point) => point.ours ** 2) : steep
  const overhead = isOver ? 0 : recorded - factor * ours
  const off = known.map((point) => Math.abs(point.recorded - overhead - factor * point.ours) / point.recorded)
  return { overhead, factor, error: sum(off) / known.length }
}

/** What the provider counted in all, and how our counts compare; null: nobody counted. */
export const usageOf = (answers: Iterable<Answer>): Recorded | null => {
  let recorded: Usage = { prompt: 0, answer: 0, thoughts: 0, cached: 0 }
  let count = 0
  const points: Array<Point> = []
  for (const { asked, entry, usage } of answers) {
    if (usage === undefined) continue
    count += 1
    const written = usage.cacheWrite ?? recorded.cacheWrite
    recorded = {
      prompt: sumUp(recorded.prompt, usage.prompt),
      answer: sumUp(recorded.answer, usage.answer),
      thoughts: sumUp(recorded.thoughts, usage.thoughts),
      cached: sumUp(recorded.cached, usage.cached),
      ...(written === undefined ? {} : { cacheWrite: sumUp(recorded.cacheWrite ?? 0, usage.cacheWrite ?? 0) })
    }
    if (usage.prompt > 0) points.push({ entry, recorded: usage.prompt, ours: asked })
  }
  return count === 0 ? null : { answers: count, recorded, points, ...fitted(points) }
}

/** The model calls of the compressions in a log, those that were undone or failed too: they were paid for. */
export const summaryRequests = (events: ReadonlyArray<SessionEvent>): ReadonlyArray<Request> =>
  events.flatMap((event) =>
    event._tag !== "Compressed" && event._tag !== "CompressionFailed"
      ? []
      : (event.calls ?? []).flatMap(({ model, usage }) => (usage === null ? [] : [{ model, usage }]))
  )

/**
 * The requests as they were counted, or where none was, as we count them: one for each answer, of the view before it. The
 * calls that compressed come with them.
 */
export const priced = (
  answers: Iterable<Answer>,
  isEstimated: boolean,
  summaries: ReadonlyArray<Request>,
  about: { readonly model?: string | undefined; readonly prices?: Prices | undefined }
): Cost => costOf(requestsOf(answers, isEstimated, summaries, about.model), about.prices ?? builtIn, isEstimated)

function* requestsOf(
  answers: Iterable<Answer>,
  isEstimated: boolean,
  summaries: ReadonlyArray<Request>,
  usual = "unknown"
): Generator<Request> {
  for (const { answer, asked, model = usual, thoughts, usage } of answers) {
    const counts = usage ?? (isEstimated ? { prompt: asked, answer, thoughts, cached: 0 } : undefined)
    if (counts !== undefined) yield { model, usage: counts }
  }
  yield* summaries
}
