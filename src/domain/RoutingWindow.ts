import { type Content, isCall, isResponse, isThought, type Part } from "./Content.ts"

/**
 * What is shown of a conversation to a model that only judges it: its last messages, without those that are nothing but the
 * traffic of tools (spec 12, seed 002).
 */

/** Seed 002: messages that are looked at, and those of them that are shown. */
const looked = 20
const shown = 4

/** Whether all that a message says, thoughts aside, is of one kind; one that says nothing is of every kind. */
const isOnly =
  (kind: (part: Part) => boolean) =>
  ({ parts }: Content): boolean =>
    parts.every((part) => isThought(part) || kind(part))

const asksOnly = isOnly(isCall)
const answersOnly = isOnly(isResponse)

/** Whether a message is nothing but calls of the model, or nothing but answers of tools. */
export const isToolTraffic = (content: Content): boolean =>
  content.role === "model" ? asksOnly(content) : answersOnly(content)

/** The last 20 messages, of those without tool traffic the last 4. */
export const routingWindow = (contents: ReadonlyArray<Content>): ReadonlyArray<Content> =>
  contents
    .slice(-looked)
    .filter((content) => !isToolTraffic(content))
    .slice(-shown)

/** The last 20 messages without the calls at their end and the answers at their beginning, whose other halves are not there. */
export const loopWindow = (contents: ReadonlyArray<Content>): ReadonlyArray<Content> => {
  const last = contents.slice(-looked)
  const from = last.findIndex((content) => !(content.role === "user" && answersOnly(content)))
  const to = last.findLastIndex((content) => !(content.role === "model" && asksOnly(content)))
  return from < 0 ? [] : last.slice(from, to + 1)
}
