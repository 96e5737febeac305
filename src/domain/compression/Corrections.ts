/** Applies the corrections that a model made to its own answer. */

import {
  isSnapshot,
  mergeSnapshots,
  parseSnapshot,
  sectionNames,
  type Snapshot,
  type SnapshotItem,
  snapshotOf
} from "./Snapshot.ts"
import { withdrawn } from "./SummaryPrompts.ts"

const isWithdrawn = ({ text }: SnapshotItem): boolean => new RegExp(`: ${withdrawn}\\.?$`, "i").test(text.trim())

/**
 * Returns a snapshot with the corrections of an answer: a statement replaces the one with the same label, in whichever section
 * it was, and "withdrawn" removes it. An answer without a snapshot corrects nothing.
 */
export const corrected = (snapshot: Snapshot, answer: string): Snapshot => {
  const changes = parseSnapshot(answer)
  if (!isSnapshot(changes)) return snapshot
  const labels = new Set(sectionNames.flatMap((name) => changes[name].map(({ key }) => key)))
  return mergeSnapshots(
    snapshotOf((name) => snapshot[name].filter(({ key }) => !labels.has(key))),
    snapshotOf((name) => changes[name].filter((item) => !isWithdrawn(item)))
  )
}
