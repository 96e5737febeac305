/** Recognises an append that is repeated because its caller does not know whether the first one was stored. */

import { type Entry, sequenceOf } from "../conversation/Conversation.ts"
import { encodeLine } from "./LogFormat.ts"
import { entriesOf, type Session, type SessionEvent } from "./Session.ts"

/**
 * The messages that an event adds, if a caller may repeat it because it does not know whether the first attempt was
 * stored.
 */
const messagesOf = (event: SessionEvent): ReadonlyArray<Entry> =>
  event._tag === "Appended" || event._tag === "Answered" ? entriesOf(event) : []

const textOf = (entry: Entry): string => encodeLine({ _tag: "Appended", entry })

/** Whether the messages of an event are in a session already, unchanged, so that appending it again has nothing to do. */
export const isRepeated = ({ conversation }: Session, event: SessionEvent): boolean => {
  const messages = messagesOf(event)
  const [first] = messages
  if (first === undefined || sequenceOf(first.id) >= conversation.next) return false
  return messages.every((entry) => {
    const sequence = sequenceOf(entry.id)
    let node = conversation.log
    while (node !== undefined && sequenceOf(node.value.id) > sequence) node = node.before
    return node?.value.id === entry.id && textOf(node.value) === textOf(entry)
  })
}
