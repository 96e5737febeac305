import type { Doubts } from "./Compression.ts"
import { agentTexts, type AnchorKind, eachAnchor, toolTexts } from "./Anchors.ts"
import type { Entry } from "./Conversation.ts"
import { changed, type Item, type SectionName, sectionNames, type Snapshot, wordsIn } from "./Snapshot.ts"
import type { Work } from "./Work.ts"

/**
 * What a model's snapshot says that the conversation does not: facts that were invented or altered on the way. Exact facts
 * among them (paths, addresses, ids, numbers) are taken out, for they would be believed; names are only told.
 */

const exact: ReadonlySet<AnchorKind> = new Set(["path", "url", "id", "number"])

/** Stands where an exact fact was taken out. */
export const removedMark = "[removed: not in the conversation]"

/** Everything that was said, called or answered, as one text a message. */
const texts = (entry: Entry): string => {
  const found: Array<string> = []
  for (const part of entry.content.parts) {
    agentTexts(part, (text) => found.push(text))
    toolTexts(part, (text) => found.push(text))
  }
  return found.join("\n")
}

const isSaid = (anchor: string, said: ReadonlyArray<string>): boolean => said.some((text) => text.includes(anchor))

const without = (text: string, anchors: ReadonlyArray<string>): string =>
  anchors.reduce((rest, anchor) => rest.replaceAll(anchor, removedMark), text)

/** The snapshot without exact facts that nobody said, and what was found. The user's quoted words are not touched. */
export function* doubted(
  snapshot: Snapshot,
  entries: ReadonlyArray<Entry>
): Work<{ readonly snapshot: Snapshot; readonly doubts: Doubts }> {
  const said: Array<string> = []
  for (const entry of entries) {
    const text = texts(entry)
    said.push(text)
    yield text.length
  }
  const size = said.reduce((sum, text) => sum + text.length, 0)
  const removed = new Set<string>()
  const unknown = new Set<string>()
  const known = new Set<string>()
  const clean: Record<SectionName, ReadonlyArray<Item>> = { ...snapshot }
  for (const name of sectionNames) {
    const items: Array<Item> = []
    for (const item of snapshot[name]) {
      if (wordsIn(item.text).length > 0) {
        items.push(item)
        continue
      }
      const anchors = new Map<string, AnchorKind>()
      eachAnchor(item.text, (anchor, kind) => anchors.set(anchor, kind))
      const wrong: Array<string> = []
      for (const [anchor, kind] of anchors) {
        if (known.has(anchor)) continue
        yield size / 4
        if (isSaid(anchor, said)) known.add(anchor)
        else if (exact.has(kind)) wrong.push(anchor)
        else unknown.add(anchor)
      }
      for (const anchor of wrong) removed.add(anchor)
      // The longest first, or a part of one would be left.
      wrong.sort((a, b) => b.length - a.length)
      items.push(wrong.length === 0 ? item : changed(item, (text) => without(text, wrong)))
    }
    clean[name] = items
  }
  return { snapshot: clean, doubts: { removed: [...removed], unknown: [...unknown] } }
}
