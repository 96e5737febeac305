import { payload } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import { allEntries } from "../conversation/Branches.ts"
import { type Entry, sourceOf } from "../conversation/Conversation.ts"
import type { Session } from "../session/Session.ts"
import * as PersistentList from "../text/PersistentList.ts"
import type { Replacement } from "./Measure.ts"
import { entryText } from "./RecordedNames.ts"

/** What one recall shows. */

/** One recall shows at most 10,000 tokens. */
const maxRecallChars = 40_000

/**
 * Returns what one recall of a handle shows in a session: a part, or the beginning of what a compaction dropped. `dropped` is
 * what a compaction that the session does not hold yet dropped.
 */
export const recaller = (
  { conversation, ranges }: Pick<Session, "conversation" | "ranges">,
  dropped?: { readonly handle: Handle; readonly entries: ReadonlyArray<Entry> }
): Replacement["recall"] => {
  const contents = new Map<Handle, () => string>()
  for (const entry of allEntries(conversation)) {
    for (const [index, handle] of entry.handles.entries()) contents.set(handle, () => partText(entry, index))
  }
  for (const range of PersistentList.toArray(ranges)) contents.set(range.handle, () => rangeText(range.entries))
  if (dropped !== undefined) contents.set(dropped.handle, () => rangeText(dropped.entries))
  return (handle) => contents.get(handle)?.().slice(0, maxRecallChars)
}

/** A recall shows calls as JSON; a reader takes the escapes in it for what they stand for. */
const partText = (entry: Entry, index: number): string => {
  const part = entry.content.parts[index]
  if (part === undefined) return ""
  const { form, text } = payload(part, sourceOf(entry, index))
  return form === "json" ? entryText({ ...entry, content: { ...entry.content, parts: [part] } }) : text
}

const rangeText = (range: ReadonlyArray<Entry>): string => {
  let text = ""
  for (const entry of range) {
    if (text.length >= maxRecallChars) break
    text += `${entryText(entry)}\n`
  }
  return text
}
