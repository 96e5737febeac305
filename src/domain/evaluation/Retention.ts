import { Schema } from "effect"
import { type AnchorKind, eachAnchor } from "../compression/Anchors.ts"
import { payload } from "../content/Content.ts"
import { type Handle, mentions } from "../content/Handle.ts"
import { allEntries } from "../conversation/Branches.ts"
import { type Entry, sourceOf } from "../conversation/Conversation.ts"
import type { Session } from "../session/Session.ts"
import * as PersistentList from "../text/PersistentList.ts"
import { entryText, eachText } from "./RecordedNames.ts"
import { hasWord } from "./WholeWords.ts"

/**
 * Measures whether the compressions of a replay kept what the agent needed: of the names, paths and numbers that had occurred
 * before and that the agent used again before another message showed them, how many were in the context of the agent.
 */

/** An anchor of an entry, and whether the agent wrote it there. */
interface Occurrence {
  readonly anchor: string
  readonly kind: AnchorKind
  readonly byAgent: boolean
}

/** Returns the distinct anchors of an entry, in order. */
export const anchorsIn = (entry: Entry): ReadonlyArray<Occurrence> => {
  const found: Array<Occurrence> = []
  const [shown, own] = [new Set<string>(), new Set<string>()]
  eachText(entry, (text, byAgent) => {
    const seen = byAgent ? own : shown
    eachAnchor(text, (anchor, kind) => {
      if (seen.has(anchor)) return
      seen.add(anchor)
      found.push({ anchor, kind, byAgent })
    })
  })
  return found
}

/**
 * Returns the anchors that had occurred and that the agent used again before a tool or the user showed them again. `after` has the
 * anchors of each entry.
 */
export const reusedAnchors = (
  occurred: ReadonlySet<string>,
  after: ReadonlyArray<ReadonlyArray<Occurrence>>
): ReadonlyMap<string, AnchorKind> => {
  const shown = new Set<string>()
  const used = new Map<string, AnchorKind>()
  for (const { anchor, byAgent, kind } of after.flat()) {
    if (!byAgent) shown.add(anchor)
    else if (occurred.has(anchor) && !shown.has(anchor)) used.set(anchor, kind)
  }
  return used
}

/** Returns the texts that the handles of a context lead to, directly or through other handles. */
export function* reachableTexts(session: Session, context: string): Generator<string, void, void> {
  const ranges = new Map(PersistentList.toArray(session.ranges).map((range) => [range.handle, range.entries]))
  const parts = new Map<Handle, { readonly entry: Entry; readonly part: number }>()
  for (const entry of allEntries(session.conversation)) {
    for (const [part, handle] of entry.handles.entries()) parts.set(handle, { entry, part })
  }
  const seen = new Set<Handle>()
  const open = mentions(context)
  for (let handle = open.pop(); handle !== undefined; handle = open.pop()) {
    if (seen.has(handle)) continue
    seen.add(handle)
    const found = parts.get(handle)
    const part = found?.entry.content.parts[found.part]
    const texts =
      found === undefined || part === undefined
        ? (ranges.get(handle) ?? []).map(entryText)
        : [payload(part, sourceOf(found.entry, found.part)).text]
    for (const text of texts) {
      for (const each of mentions(text)) open.push(each)
      yield text
    }
  }
}

/**
 * Where the names that were used again after a compression were when it was done: in the context, only in content that a handle
 * in it leads to, or nowhere.
 */
export const NamesUsedAgain = Schema.Struct({
  used: Schema.Natural,
  inContext: Schema.Natural,
  behindHandle: Schema.Natural,
  lost: Schema.Natural
})
export type NamesUsedAgain = typeof NamesUsedAgain.Type

/** Searches for an anchor, as a whole word, in the context, and else anywhere in what the handles of the context lead to. */
export const placeOf = (
  anchor: string,
  kind: AnchorKind,
  { context, reachable }: { readonly context: string; readonly reachable: ReadonlyArray<string> }
): "inContext" | "behindHandle" | "lost" => {
  if (hasWord(context, anchor, kind)) return "inContext"
  // No whole word here: a recall shows the text even where it is a part of a longer word.
  if (reachable.some((text) => text.includes(anchor))) return "behindHandle"
  // The anchor may only ever have been a part of a longer word, as the 195 of `a.ts(195,5)`, and that word is still there.
  return context.includes(anchor) ? "inContext" : "lost"
}
