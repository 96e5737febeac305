/**
 * Finds facts in a model's snapshot that do not occur in the conversation, because the model invented or altered them. Exact
 * facts (paths, addresses, ids, numbers) are removed, because the agent would rely on them. Names are only reported.
 */

import type { Entry } from "../conversation/Conversation.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { type AnchorKind, eachAnchor, entryText } from "./Anchors.ts"
import type { UnsupportedFacts } from "./Compression.ts"
import {
  changeItem,
  type SnapshotItem,
  type SectionName,
  sectionNames,
  type Snapshot,
  userWordsIn
} from "./Snapshot.ts"

const exact: ReadonlySet<AnchorKind> = new Set(["path", "url", "id", "number"])

/** Replaces an exact fact that was removed. */
export const removedMark = "[removed: not in the conversation]"

const occurs = (anchor: string, allTexts: ReadonlyArray<string>): boolean =>
  allTexts.some((text) => text.includes(anchor))

const without = (text: string, anchors: ReadonlyArray<string>): string =>
  anchors.reduce((rest, anchor) => rest.replaceAll(anchor, removedMark), text)

/**
 * Removes exact facts that do not occur in the conversation, and reports what it found. The user's quoted words are not
 * changed.
 */
export function* checkFacts(
  snapshot: Snapshot,
  entries: ReadonlyArray<Entry>
): SlicedWork<{ readonly snapshot: Snapshot; readonly doubts: UnsupportedFacts }> {
  const entryTexts: Array<string> = []
  for (const entry of entries) {
    entryTexts.push(entryText(entry))
    yield
  }
  const removed = new Set<string>()
  const unknown = new Set<string>()
  const supported = new Set<string>()
  const clean: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...snapshot }
  for (const name of sectionNames) {
    const items: Array<SnapshotItem> = []
    for (const item of snapshot[name]) {
      if (userWordsIn(item.text).length > 0) {
        items.push(item)
        continue
      }
      const anchors = new Map<string, AnchorKind>()
      eachAnchor(item.text, (anchor, kind) => anchors.set(anchor, kind))
      const wrong: Array<string> = []
      for (const [anchor, kind] of anchors) {
        if (supported.has(anchor)) continue
        yield
        if (occurs(anchor, entryTexts)) supported.add(anchor)
        else if (exact.has(kind)) wrong.push(anchor)
        else unknown.add(anchor)
      }
      for (const anchor of wrong) removed.add(anchor)
      // Longest first, so that no part of a longer fact remains.
      wrong.sort((a, b) => b.length - a.length)
      items.push(wrong.length === 0 ? item : changeItem(item, (text) => without(text, wrong)))
    }
    clean[name] = items
  }
  return { snapshot: clean, doubts: { removed: [...removed], unknown: [...unknown] } }
}
