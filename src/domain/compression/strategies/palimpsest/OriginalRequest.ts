/** Finds the user's first request, which the strategy `palimpsest` keeps in every snapshot. */

import { hasResponses, isCall } from "../../../content/Content.ts"
import { type Conversation, type Entry, sequenceOf } from "../../../conversation/Conversation.ts"
import * as PersistentList from "../../../text/PersistentList.ts"
import { requestSpans, type Span } from "../../evidence/UserRequests.ts"

const wordsIn = ({ text }: Span): number => text.trim().split(/\s+/).length

/**
 * Whether a message states a request by its length: "hi", "yes" and "continue" do not; a sentence of a script without spaces may. "Clean
 * up." does where the agent sets to work.
 */
const asks = (span: Span): boolean => wordsIn(span) >= 3 || /\P{ASCII}/u.test(span.text)

/** By version of a log: its first request, which is that of every later version. */
const firstRequests = new WeakMap<PersistentList.Node<Entry>, Span>()

/**
 * Returns the user's first request in the log. Earlier compressions removed it from the view, but not from the log.
 * Undefined when the log begins with a summary, because no later request is the first one.
 */
export const originalRequest = ({ log }: Conversation): Span | undefined => {
  let node = log
  while (node !== undefined && !firstRequests.has(node)) node = node.before
  const before = node === undefined ? undefined : firstRequests.get(node)
  const { first, isSure } =
    before === undefined ? firstRequest(PersistentList.toArray(log)) : { first: before, isSure: true }
  if (log !== undefined && first !== undefined && isSure) firstRequests.set(log, first)
  return first
}

/** A first request. Unless it is sure, a later message may take its place. */
interface FirstRequest {
  readonly first: Span | undefined
  readonly isSure: boolean
}

const firstRequest = (log: ReadonlyArray<Entry>): FirstRequest => {
  let first: Span | undefined
  let last = 0
  for (const entry of log) {
    const sequence = sequenceOf(entry.id)
    // The missing entries are a summary, or were not read.
    if (sequence > last + 1 || entry.author === "summary") return { first, isSure: false }
    last = sequence
    if (first !== undefined && wordsIn(first) >= 2 && entry.content.parts.some(isCall)) return { first, isSure: true }
    // An answer, or the reason of a refusal, stands in a result: it is no first request.
    for (const span of hasResponses(entry.content) ? [] : requestSpans(entry)) {
      if (asks(span)) return { first: span, isSure: true }
      first ??= span
    }
  }
  return { first, isSure: false }
}
