import { type Content, isCall, isResponse, isThought, type Part } from "./Content.ts"

/**
 * What is shown of a conversation to a model that only judges it: its last messages, without those that are nothing but the
 * traffic of tools (spec 12, seed 002).
 */

/** How much of a conversation is shown. */
export interface RoutingSize {
  /** The newest messages that are looked at (spec 12, seed 002: 20). */
  readonly search: number
  /** The newest of those without tool traffic, which are shown (spec 12, seed 002: 4). */
  readonly turns: number
}

/** Spec 12, seed 002. */
export const usualRouting: RoutingSize = { search: 20, turns: 4 }

/** Spec 12: messages that are looked at for a loop. */
const looked = 20

/** Whether all that a message says, thoughts aside, is of one kind; one that says nothing is of every kind. */
const isOnly =
  (kind: (part: Part) => boolean) =>
  ({ parts }: Content): boolean =>
    parts.every((part) => isThought(part) || kind(part))

const asksOnly = isOnly(isCall)
const answersOnly = isOnly(isResponse)

/** Whether a message is nothing but calls of the model, or nothing but answers of tools. */
const isToolTraffic = (content: Content): boolean =>
  content.role === "model" ? asksOnly(content) : answersOnly(content)

/** The last so many of a list: none of them for 0, which `slice` takes for all. */
const lastOf = <A>(all: ReadonlyArray<A>, count: number): ReadonlyArray<A> => all.slice(Math.max(0, all.length - count))

/** The last messages, and of those without tool traffic the last. */
export const routingWindow = (
  contents: ReadonlyArray<Content>,
  { search, turns }: RoutingSize = usualRouting
): ReadonlyArray<Content> =>
  lastOf(
    lastOf(contents, search).filter((content) => !isToolTraffic(content)),
    turns
  )

/** The last 20 messages without the calls at their end and the answers at their beginning, whose other halves are not there. */
export const loopWindow = (contents: ReadonlyArray<Content>): ReadonlyArray<Content> => {
  const last = contents.slice(-looked)
  const from = last.findIndex((content) => !(content.role === "user" && answersOnly(content)))
  const to = last.findLastIndex((content) => !(content.role === "model" && asksOnly(content)))
  return from < 0 ? [] : last.slice(from, to + 1)
}
