/** The points of a recording at which compressions are measured. */

import { entryText } from "../compression/Anchors.ts"
import { isCall } from "../content/Content.ts"
import { entries, type Entry, itemParts, type Patch, view, type ViewItem } from "../conversation/Conversation.ts"
import { currentPath } from "../session/CurrentPath.ts"
import { applyEvent, emptySession, type Session, type SessionEvent } from "../session/Session.ts"
import * as PersistentList from "../text/PersistentList.ts"
import type { Compaction } from "./Measure.ts"

/** One point: the session as it was then, and what was recorded. */
export interface CompactionPoint {
  readonly session: Session
  readonly compaction: Compaction
  /** The summary that was recorded here. */
  readonly recorded: string | undefined
}

/** Positions, as shares of the recording, at which a compaction is tried when the recording has none. */
const defaultCutShares = [0.25, 0.5, 0.75]
const minMessagesPerSide = 4

/** Returns an entry as the model sees it. */
export const shownEntry = (item: ViewItem): Entry =>
  item.shortened.size === 0 ? item.entry : { ...item.entry, content: { ...item.entry.content, parts: itemParts(item) } }

/** Returns the text of what the model sees. */
export const shownText = (items: ReadonlyArray<ViewItem>): string =>
  items.map((item) => entryText(shownEntry(item))).join("\n")

const logLength = ({ conversation }: Session): number => PersistentList.length(conversation.log)

/** Working directories: the session's, and those that commands changed to. */
export const rootsOf = (session: Session, log: ReadonlyArray<Entry>): ReadonlyArray<string> => {
  const roots = new Set<string>()
  const { started } = session
  if (started?.cwd !== undefined) roots.add(started.cwd)
  for (const part of log.flatMap(({ content }) => content.parts)) {
    const command = isCall(part) ? JSON.stringify(part.functionCall.args ?? "") : ""
    for (const [, folder = ""] of command.matchAll(/\bcd (\/[^\s;&|"'\\)]+\/[^\s;&|"'\\)]+)/g)) roots.add(folder)
  }
  return [...roots]
}

/** Returns the states before each recorded compaction, or before cuts at the quarters of a recording that has none. */
const statesOf = (
  events: ReadonlyArray<SessionEvent>
): ReadonlyArray<{ readonly session: Session; readonly patch?: Patch }> => {
  const compacted: Array<{ readonly session: Session; readonly patch: Patch }> = []
  const states: Array<Session> = []
  let session = emptySession
  for (const event of currentPath(events)) {
    if (event._tag === "Compressed" && event.patch.insert.length > 0) compacted.push({ session, patch: event.patch })
    session = applyEvent(session, event)
    states.push(session)
  }
  const recorded = compacted.filter((state) => logLength(state.session) > 0)
  if (recorded.length > 0) return recorded
  const total = logLength(session)
  return defaultCutShares.flatMap((share) => {
    // No call is open at a cut.
    const cut = states.find(
      (state) =>
        logLength(state) >= Math.floor(total * share) &&
        state.conversation.log?.value.content.parts.some(isCall) !== true
    )
    return cut === undefined ? [] : [{ session: cut }]
  })
}

/** Returns the points of a recording: its compactions, or its quarters when it has none. */
export const compactionPoints = (events: ReadonlyArray<SessionEvent>, end: Session): ReadonlyArray<CompactionPoint> => {
  const all = entries(end.conversation)
  const roots = rootsOf(end, all)
  const states = statesOf(events)
  return states.flatMap(({ patch, session }, index): ReadonlyArray<CompactionPoint> => {
    const count = logLength(session)
    const nextState = patch === undefined ? undefined : states[index + 1]
    const after = all.slice(count, nextState === undefined ? undefined : logLength(nextState.session))
    const before = view(session.conversation).map(shownEntry)
    if (before.length < minMessagesPerSide || after.length < minMessagesPerSide) return []
    return [
      {
        session,
        compaction: { log: all.slice(0, count), before, after, roots },
        recorded: patch?.insert.map(entryText).join("\n")
      }
    ]
  })
}
