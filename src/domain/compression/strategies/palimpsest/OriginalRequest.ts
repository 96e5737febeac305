import { type Conversation, entries, sequenceOf } from "../../../conversation/Conversation.ts"
import { requestSpans, type Span } from "../../evidence/UserRequests.ts"

/** Whether a message states a request: "hi", "yes" and "continue" do not; a sentence of a script without spaces may. */
const asks = ({ text }: Span): boolean => text.trim().split(/\s+/).length >= 3 || /\P{ASCII}/u.test(text)

/**
 * Returns the user's first request in the log. Earlier compressions removed it from the view, but not from the log.
 * Undefined when the log begins with a summary, because no later request is the first one.
 */
export const originalRequest = (conversation: Conversation): Span | undefined => {
  const log = entries(conversation)
  let first: Span | undefined
  let last = 0
  for (const entry of log) {
    const sequence = sequenceOf(entry.id)
    // The missing entries are a summary, or were not read.
    if (sequence > last + 1) return first
    last = sequence
    if (entry.author === "summary") return first
    for (const span of requestSpans(entry)) {
      if (asks(span)) return span
      first ??= span
    }
  }
  return first
}
