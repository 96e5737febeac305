/** Checks, one by one, that the events of a log are consistent. Used for logs from outside. */

import { type EntryId, entryId, sequenceOf, view } from "../conversation/Conversation.ts"
import type { LineProblem } from "./LogFormat.ts"
import { entriesOf, type Session, type SessionEvent } from "./Session.ts"

const malformed = (message: string): LineProblem => ({ _tag: "Malformed", message })

/** The state of a log that its next event is checked against. */
interface LogSoFar {
  readonly started: Session["started"]
  /** The number of the next entry. */
  readonly next: number
  /** Returns the positions of these entries in the view. The map may hold others too. */
  readonly places: (ids: ReadonlyArray<EntryId>) => ReadonlyMap<EntryId, number>
}

/** Returns the state that the next event of a session is checked against. */
export const logSoFar = ({ conversation, started }: Session): LogSoFar => ({
  started,
  next: conversation.next,
  places: () => new Map(view(conversation).map((item, index) => [item.entry.id, index]))
})

/**
 * Returns why an event cannot come next in a log; undefined when it can. `gaps`: entries may be missing, because lines were
 * skipped.
 */
export const checkNextEvent = (before: LogSoFar, event: SessionEvent, gaps: boolean): LineProblem | undefined => {
  if (before.started === undefined) {
    return event._tag === "Started" ? undefined : malformed(`expected the event Started first, got ${event._tag}`)
  }
  if (event._tag === "Started") return malformed("a second event Started; expected one, at the beginning")
  let next = before.next
  for (const entry of entriesOf(event)) {
    const sequence = sequenceOf(entry.id)
    if (gaps ? sequence < next : sequence !== next)
      return malformed(`entry ${entry.id} is out of order; expected ${entryId(next)}`)
    const { parts } = entry.content
    if (entry.tokens.length !== parts.length || entry.handles.length !== parts.length) {
      return malformed(`entry ${entry.id}: expected a token count and a handle for each of its ${parts.length} parts`)
    }
    next = sequence + 1
  }
  const target = event._tag === "Branched" ? event.from : event._tag === "Labelled" ? event.entry : null
  if (target !== null && sequenceOf(target) >= before.next) {
    return malformed(`the event ${event._tag} refers to ${target}, which does not exist yet`)
  }
  if (event._tag !== "Compressed") return undefined
  const { drop, shorten } = event.patch
  const referredIds = [...(drop === undefined ? [] : [drop.from, drop.to]), ...shorten.map((one) => one.entry)]
  const places = before.places(referredIds)
  const missing = referredIds.find((id) => !places.has(id))
  if (missing !== undefined) return malformed(`the compression refers to ${missing}, which is not in view`)
  return drop !== undefined && (places.get(drop.from) ?? 0) > (places.get(drop.to) ?? 0)
    ? malformed(`the compression drops from ${drop.from} to ${drop.to}, which come in the other order`)
    : undefined
}
