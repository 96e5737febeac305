import { type AnchorKind, eachAnchor } from "../compression/Anchors.ts"
import type { Entry } from "../conversation/Conversation.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { eachText } from "./RecordedNames.ts"
import { hasWord } from "./WholeWords.ts"

/**
 * Measures whether the compressions of a replay kept what the agent needed: of the names, paths and numbers that had occurred
 * before and that the agent used again before another message showed them, how many were in the context of the agent.
 */

/** Whether an entry is dialogue or tool output, and not a summary that a compression inserted. */
const isRecorded = (entry: Entry): boolean => entry.author !== "summary"

/** An anchor of an entry, and whether the agent wrote it there. */
interface Occurrence {
  readonly anchor: string
  readonly kind: AnchorKind
  readonly byAgent: boolean
}

/** By entry: its anchors, because those after one compression are before the next. */
const occurrences = new WeakMap<Entry, ReadonlyArray<Occurrence>>()

/** Returns the distinct anchors of an entry, in order. */
function* anchorsIn(entry: Entry): SlicedWork<ReadonlyArray<Occurrence>> {
  const known = occurrences.get(entry)
  if (known !== undefined) return known
  const found: Array<Occurrence> = []
  const [shown, own] = [new Set<string>(), new Set<string>()]
  let cost = 100
  eachText(entry, (text, byAgent) => {
    const seen = byAgent ? own : shown
    eachAnchor(text, (anchor, kind) => {
      if (seen.has(anchor)) return
      seen.add(anchor)
      found.push({ anchor, kind, byAgent })
    })
    cost += text.length * 8
  })
  yield cost
  occurrences.set(entry, found)
  return found
}

/** Adds the anchors of entries to a set. */
export function* collectAnchors(entries: ReadonlyArray<Entry>, anchors: Set<string>): SlicedWork<void> {
  for (const entry of entries) for (const { anchor } of yield* anchorsIn(entry)) anchors.add(anchor)
}

/** Returns the anchors that had occurred and that the agent used again in `after` before a tool or the user showed them again. */
export function* reusedAnchors(
  occurred: ReadonlySet<string>,
  after: ReadonlyArray<Entry>
): SlicedWork<ReadonlyMap<string, AnchorKind>> {
  const shown = new Set<string>()
  const used = new Map<string, AnchorKind>()
  for (const entry of after.filter(isRecorded)) {
    for (const { anchor, byAgent, kind } of yield* anchorsIn(entry)) {
      if (!byAgent) shown.add(anchor)
      else if (occurred.has(anchor) && !shown.has(anchor)) used.set(anchor, kind)
    }
  }
  return used
}

/** Where anchors are after a compression. */
export interface Retention {
  readonly used: number
  readonly inContext: number
  /** Not in the context, but in content that a handle in it names. */
  readonly behindHandle: number
  readonly lost: number
}

/** Searches for each anchor, as a whole word, in the context, and for missing ones anywhere in the dropped content. */
export function* measureRetention(
  used: ReadonlyMap<string, AnchorKind>,
  places: { readonly context: string; readonly dropped: ReadonlyArray<string> }
): SlicedWork<Retention> {
  const totals = { inContext: 0, behindHandle: 0, lost: 0 }
  for (const [anchor, kind] of used) {
    yield places.context.length
    if (hasWord(places.context, anchor, kind)) {
      totals.inContext += 1
      continue
    }
    let found = false
    for (const text of places.dropped) {
      yield text.length / 8
      // No whole word here: a recall shows the text even where it is a part of a longer word.
      if (!text.includes(anchor)) continue
      found = true
      break
    }
    if (found) totals.behindHandle += 1
    // The anchor may only ever have been a part of a longer word, as the 195 of `a.ts(195,5)`, and that word is still there.
    else if (places.context.includes(anchor)) totals.inContext += 1
    else totals.lost += 1
  }
  return { used: used.size, ...totals }
}
