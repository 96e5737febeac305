/** The data of the charts on the page of `inspect`. */

import {
  type Conversation,
  entries,
  type EntryId,
  entryTokens,
  sequenceOf
} from "../../domain/conversation/Conversation.ts"
import type { Report } from "../output/InspectReport.ts"
import { maxOf } from "../output/InspectSections.ts"
import { number, plural } from "../output/Output.ts"
import type { Chart, MarkedPoint, Point } from "./Charts.ts"

/** Maximum points of a chart line; more cannot be distinguished. */
const pointLimit = 800
/** Maximum number of messages marked on a chart. */
const markLimit = 10
/** Maximum number of compactions on a chart. */
const cutLimit = 200

/** Reduces points to what a chart line shows, keeping highs and lows. */
export const thinned = (points: ReadonlyArray<Point>): ReadonlyArray<Point> => {
  if (points.length <= pointLimit) return points
  const columns = Math.max(1, Math.floor(pointLimit / 4))
  return Array.from({ length: columns }, (_, column) => {
    const run = points.slice(
      Math.floor((column * points.length) / columns),
      Math.floor(((column + 1) * points.length) / columns)
    )
    const [first] = run
    const last = run.at(-1)
    if (first === undefined || last === undefined) return []
    let low = first
    let high = first
    for (const point of run) {
      if (point.tokens < low.tokens) low = point
      if (point.tokens > high.tokens) high = point
    }
    return [...new Set([first, low, high, last])].sort((a, b) => a.message - b.message)
  }).flat()
}

/** Returns the messages that added most to the view. */
export const marksOf = (
  conversation: Conversation,
  sizes: ReadonlyArray<number>,
  isShown: (entry: EntryId) => boolean
): ReadonlyArray<MarkedPoint> =>
  entries(conversation)
    .map((entry, index) => ({ id: entry.id, index, added: entry.author === "environment" ? 0 : entryTokens(entry) }))
    .filter(({ added }) => added > 0)
    .sort((a, b) => b.added - a.added)
    .slice(0, markLimit)
    .sort((a, b) => a.index - b.index)
    .map(({ added, id, index }) => ({
      message: index + 1,
      tokens: sizes[index] ?? 0,
      href: isShown(id) ? `#${id}` : undefined,
      title: `${id} added ${plural(added, "token")}`
    }))

/** The chart of the view's growth, with the messages that added most. */
export const growthChart = (
  report: Report,
  sizes: ReadonlyArray<number>,
  laidAt: ReadonlyArray<number>,
  marks: ReadonlyArray<MarkedPoint>
): Chart => {
  const points = thinned(sizes.map((tokens, index) => ({ message: index + 1, tokens })))
  const cuts = laidAt.map((laid, index) => {
    const tokens = report.compactions[index]?.tokens
    return {
      message: laid + 0.5,
      before: tokens?.before ?? 0,
      after: tokens?.after ?? 0,
      title:
        tokens === undefined ? "compaction" : `compaction: ${number(tokens.before)} → ${number(tokens.after)} tokens`
    }
  })
  return {
    label: "Tokens in the view after each message",
    description: `${plural(sizes.length, "message")}, at most ${plural(maxOf(sizes), "token")}, ${plural(cuts.length, "compaction")}`,
    messages: sizes.length,
    lines: [{ name: "ours", points, filled: true, stepped: true }],
    marks,
    cuts: cuts.slice(-cutLimit)
  }
}

/** The chart of the provider's token counts and our estimates. */
export const usageChart = ({ usage }: Report, places: ReadonlyMap<EntryId, number>, messages: number): Chart => {
  const points = usage?.points ?? []
  const line = (tokensOf: (point: (typeof points)[number]) => number) =>
    thinned(
      points.map((point) => ({ message: places.get(point.entry) ?? sequenceOf(point.entry), tokens: tokensOf(point) }))
    )
  return {
    label: "Tokens of each request, as the provider counted them and as we do",
    description: `${plural(points.length, "request")}`,
    messages,
    lines: [
      { name: "ours", points: line((point) => point.ours) },
      { name: "recorded", points: line((point) => point.recorded) }
    ]
  }
}

type Grown = readonly [report: Report, sizes: ReadonlyArray<number>]

/** The growth of two conversations in one chart. */
export const comparisonChart = (one: Grown, other: Grown): Chart => ({
  label: "Tokens in the view after each message, of both",
  description: [one, other].map(([{ file }, sizes]) => `${file}: ${plural(sizes.length, "message")}`).join("; "),
  messages: Math.max(one[1].length, other[1].length),
  lines: [one, other].map(([, sizes], index) => ({
    name: `series-${index}`,
    points: thinned(sizes.map((tokens, at) => ({ message: at + 1, tokens }))),
    stepped: true
  }))
})
