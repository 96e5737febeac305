import { agentTexts, type AnchorKind, eachAnchor, toolTexts } from "./Anchors.ts"
import type { Entry } from "./Conversation.ts"
import type { Work } from "./Work.ts"

/**
 * Whether a compression kept what was needed: of the names, paths, numbers … that an agent used again after it, before
 * anything showed them again, and that had occurred before, how many stood in what the agent was given.
 */

const eachText = (entry: Entry, visit: (text: string, byAgent: boolean) => void): void => {
  for (const part of entry.content.parts) {
    agentTexts(part, (text) => visit(text, entry.content.role === "model"))
    toolTexts(part, (text) => visit(text, false))
  }
}

/** Whether an entry is somebody's words or a tool's, and not a summary that a compression put there. */
const isRecorded = (entry: Entry): boolean => entry.author !== "summary"

/** The anchors of `before` that the agent used again in `after` before a tool or a person showed them again. */
export function* usedAgain(
  before: ReadonlyArray<Entry>,
  after: ReadonlyArray<Entry>
): Work<ReadonlyMap<string, AnchorKind>> {
  const occurred = new Set<string>()
  for (const entry of before) {
    let cost = 100
    eachText(entry, (text) => {
      eachAnchor(text, (anchor) => occurred.add(anchor))
      cost += text.length * 8
    })
    yield cost
  }
  const shown = new Set<string>()
  const used = new Map<string, AnchorKind>()
  for (const entry of after.filter(isRecorded)) {
    let cost = 100
    eachText(entry, (text, byAgent) => {
      eachAnchor(text, (anchor, kind) => {
        if (!byAgent) shown.add(anchor)
        else if (occurred.has(anchor) && !shown.has(anchor)) used.set(anchor, kind)
      })
      cost += text.length * 8
    })
    yield cost
  }
  return used
}

/** Where anchors are after a compression. The snapshot and the context are looked at apart. */
export interface Retention {
  readonly used: number
  readonly inSnapshot: number
  readonly inContext: number
  /** Not in the context, but in something that a handle in it names. */
  readonly behindHandle: number
  readonly lost: number
  readonly byKind: Readonly<Partial<Record<AnchorKind, KindRetention>>>
}

/** The same for the anchors of one kind. */
export interface KindRetention {
  readonly used: number
  readonly inSnapshot: number
  readonly inContext: number
}

/** Looks for each anchor, letter by letter, in the snapshot, in the context, and what is not there in what was dropped. */
export function* retention(
  used: ReadonlyMap<string, AnchorKind>,
  places: { readonly snapshot: string; readonly context: string; readonly dropped: ReadonlyArray<string> }
): Work<Retention> {
  const totals = { inSnapshot: 0, inContext: 0, behindHandle: 0, lost: 0 }
  const kinds = new Map<AnchorKind, { used: number; inSnapshot: number; inContext: number }>()
  for (const [anchor, kind] of used) {
    const ofKind = kinds.get(kind) ?? { used: 0, inSnapshot: 0, inContext: 0 }
    kinds.set(kind, ofKind)
    ofKind.used += 1
    yield places.snapshot.length + places.context.length
    const inSnapshot = places.snapshot.includes(anchor)
    if (inSnapshot) {
      totals.inSnapshot += 1
      ofKind.inSnapshot += 1
    }
    if (places.context.includes(anchor)) {
      totals.inContext += 1
      ofKind.inContext += 1
      continue
    }
    let found = false
    for (const text of places.dropped) {
      yield text.length / 8
      if (!text.includes(anchor)) continue
      found = true
      break
    }
    if (found) totals.behindHandle += 1
    else totals.lost += 1
  }
  return { used: used.size, ...totals, byKind: Object.fromEntries(kinds) }
}

/** All text of an entry, as anchors are looked for in it. */
export const textOf = (entry: Entry): string => {
  const texts: Array<string> = []
  eachText(entry, (text) => texts.push(text))
  return texts.join("\n")
}
