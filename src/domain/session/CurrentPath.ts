import { tipOf } from "../conversation/Branches.ts"
import type { EntryId } from "../conversation/Conversation.ts"
import * as PersistentList from "../text/PersistentList.ts"
import { applyEvent, emptySession, entriesOf, type SessionEvent } from "./Session.ts"

/**
 * Returns the events of the current path: those that lead to the present view without going back. For readers that
 * expect a log without branches. The entries keep their ids, so numbers may be missing.
 */
export const currentPath = (events: ReadonlyArray<SessionEvent>): ReadonlyArray<SessionEvent> => {
  if (!events.some(({ _tag }) => _tag === "Branched")) return events
  /** The path to the moment that was left last at each entry. */
  const paths = new Map<EntryId | null, PersistentList.PersistentList<SessionEvent>>([[null, undefined]])
  let path: PersistentList.PersistentList<SessionEvent>
  let session = emptySession
  for (const event of events) {
    if (event._tag === "Branched") path = paths.has(event.from) ? paths.get(event.from) : path
    else if (event._tag === "Answered") {
      // A branch may begin after the message, without its answer.
      let step = path
      for (const entry of entriesOf(event)) {
        step = PersistentList.append(step, { _tag: "Appended", entry }, 0)
        paths.set(entry.id, step)
      }
    }
    if (event._tag !== "Branched") path = PersistentList.append(path, event, 0)
    else if (event.summary !== undefined) {
      path = PersistentList.append(path, { _tag: "Appended", entry: event.summary }, 0)
    }
    session = applyEvent(session, event)
    paths.set(tipOf(session.conversation), path)
  }
  return PersistentList.toArray(path)
}
