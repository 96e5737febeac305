/** The measure of the user's messages: whether a context still has them. */

import { requestSpans, type Span } from "../compression/evidence/UserRequests.ts"
import type { Entry } from "../conversation/Conversation.ts"
import { eachItem } from "../text/SlicedWork.ts"
import type { Measure } from "./Measure.ts"
import { relativeTo } from "./WholeWords.ts"

/** Characters of each end that a clipped message has to show. */
const endChars = 24

/** White space, escapes of tags and quotation marks differ from one summary to the next. */
const plain = (text: string): string =>
  text
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&amp;/g, "&")
    .replace(/\\"/g, '"')
    .replace(/\s+/g, " ")
    .trim()

/** Returns what the user wrote in an entry, without what programs put into it, and each of the user's answers in the result of a call. */
export const userMessages = (entry: Entry, relative: (text: string) => string): ReadonlyArray<string> => {
  const spans = requestSpans(entry)
  const isAnswer = ({ part }: Span) => entry.content.parts[part]?.functionResponse !== undefined
  const written = spans.filter((span) => !isAnswer(span)).map(({ text }) => text)
  return [written.join(" "), ...spans.filter(isAnswer).map(({ text }) => text)]
    .map((text) => plain(relative(text)))
    .filter((text) => text !== "")
}

/** Whether a text, made plain, has a message: whole, or by both of its ends. */
const hasMessage = (text: string, message: string): boolean =>
  text.includes(message) ||
  (message.length > 2 * endChars &&
    text.includes(message.slice(0, endChars)) &&
    text.includes(message.slice(-endChars)))

/** Returns how many of the messages a text has. */
export const messagesIn = (text: string, messages: ReadonlyArray<string>): number => {
  const searched = plain(text)
  return messages.filter((message) => hasMessage(searched, message)).length
}

/** The share of the user's messages that the context has, whole or by both ends. */
export const keptUserMessages: Measure = {
  figures: [{ key: "userMessages", title: "user", unit: "share" }],
  *prepare({ before, roots }) {
    const relative = relativeTo(roots)
    const messages = (yield* eachItem(before, (entry) => userMessages(entry, relative))).flat()
    return function* ({ context }) {
      return [{ userMessages: { part: messagesIn(context.text, messages), whole: messages.length } }]
    }
  }
}
