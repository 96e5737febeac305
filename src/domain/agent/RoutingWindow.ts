/**
 * Selects the part of a conversation that a routing or loop-checking model sees: the last messages, without those that hold only tool calls or
 * results.
 */

import { type Content, isCall, isResponse, isThought, type Part } from "../content/Content.ts"

/** The size of a routing window. */
export interface RoutingSize {
  /** The number of newest messages that are considered (Gemini CLI: 20). */
  readonly search: number
  /** The number of newest messages without tool traffic that are shown (Gemini CLI: 4). */
  readonly turns: number
}

/** The sizes of Gemini CLI, March 2026. */
export const defaultRoutingSize: RoutingSize = { search: 20, turns: 4 }

/** Messages that a loop check considers, as in Gemini CLI, March 2026. */
const loopCheckMessages = 20

/** Whether all parts of a message, thoughts aside, are of one kind. An empty message is of every kind. */
const isOnly =
  (kind: (part: Part) => boolean) =>
  ({ parts }: Content): boolean =>
    parts.every((part) => isThought(part) || kind(part))

const asksOnly = isOnly(isCall)
const answersOnly = isOnly(isResponse)

/** Whether a message holds only tool calls, or only tool results. */
const isToolTraffic = (content: Content): boolean =>
  content.role === "model" ? asksOnly(content) : answersOnly(content)

/** The last `count` elements of a list; none for 0, for which `slice` would return all. */
const lastOf = <A>(all: ReadonlyArray<A>, count: number): ReadonlyArray<A> => all.slice(Math.max(0, all.length - count))

/** The last messages without tool traffic, among the last messages considered. */
export const routingWindow = (
  contents: ReadonlyArray<Content>,
  { search, turns }: RoutingSize = defaultRoutingSize
): ReadonlyArray<Content> =>
  lastOf(
    lastOf(contents, search).filter((content) => !isToolTraffic(content)),
    turns
  )

/** The last 20 messages, without the calls at their end and the results at their beginning, whose counterparts are missing. */
export const loopWindow = (contents: ReadonlyArray<Content>): ReadonlyArray<Content> => {
  const last = contents.slice(-loopCheckMessages)
  const from = last.findIndex((content) => !(content.role === "user" && answersOnly(content)))
  const to = last.findLastIndex((content) => !(content.role === "model" && asksOnly(content)))
  return from < 0 ? [] : last.slice(from, to + 1)
}
