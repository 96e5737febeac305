/** Goes back in a conversation, and finds what is on the branches that were left. */

import * as PersistentList from "../text/PersistentList.ts"
import {
  type Conversation,
  entries,
  type Entry,
  type EntryId,
  inserted,
  type Moment,
  momentOf,
  sequenceOf,
  type PastSegment,
  turned
} from "./Conversation.ts"

/**
 * Returns the entry at the end of a conversation: the last message, or what a compression in force inserted after it. Null when
 * there is none.
 */
export const tipOf = ({ log, undoable }: Pick<Moment, "log" | "undoable">): EntryId | null => {
  let layer = undoable
  while (layer !== undefined && layer.value.patch.insert.length === 0) layer = layer.before
  const snapshot = layer?.value.patch.insert.at(-1)?.id
  const message = log?.value.id
  // A compression that was redone may be older than the last message.
  const isLater = snapshot !== undefined && (message === undefined || sequenceOf(snapshot) > sequenceOf(message))
  return isLater ? snapshot : (message ?? null)
}

/** Returns the latest moment of a segment at whose end this entry stood. */
const momentIn = ({ from, to }: PastSegment, id: EntryId | null): Moment | undefined => {
  // The ids within a segment ascend.
  if (id !== null && to.log !== undefined && sequenceOf(to.log.value.id) >= sequenceOf(id)) {
    let { view } = to
    for (let node: Moment["log"] = to.log; node !== from.log && node !== undefined; node = node.before) {
      if (node.value.id === id) return { ...to, log: node, view }
      view = view?.before
    }
  }
  return tipOf(from) === id ? from : undefined
}

const segmentsOf = (self: Conversation): PersistentList.PersistentList<PastSegment> =>
  PersistentList.append(self.past, { from: self.since, to: momentOf(self) }, 0)

/**
 * Goes back to where this entry stood at the end, or with null to before the first message. The view is the one that was left
 * there last, with the compressions in force at that time. Everything after it stays in `left`. Returns the same conversation
 * when no such entry is known.
 */
export const branched = (self: Conversation, from: EntryId | null): Conversation => {
  for (let node = segmentsOf(self); node !== undefined; node = node.before) {
    const moment = momentIn(node.value, from)
    if (moment !== undefined) return { ...turned(self, moment), isBranched: true }
  }
  return self
}

/** Returns the parts of the past and the present one, oldest first: the entry that each began after, and what was appended. */
export const segments = (
  self: Conversation
): ReadonlyArray<{ readonly after: EntryId | null; readonly appended: ReadonlyArray<Entry> }> =>
  PersistentList.toArray(segmentsOf(self)).map(({ from, to }) => ({
    after: tipOf(from),
    appended: PersistentList.drop(to.log, PersistentList.length(from.log))
  }))

/** Returns the appended entries that are not on the current path, oldest first. Their handles stay valid. */
export const left = (self: Conversation): ReadonlyArray<Entry> => {
  if (!self.isBranched) return []
  const path = new Set(entries(self))
  return segments(self).flatMap(({ appended }) => appended.filter((entry) => !path.has(entry)))
}

/** Returns everything that a conversation holds: its log, the entries that compressions inserted, and those of left branches. */
export const allEntries = (self: Conversation): ReadonlyArray<Entry> => [
  ...entries(self),
  ...inserted(self),
  ...left(self)
]
