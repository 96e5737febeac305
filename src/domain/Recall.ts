import { type Content, partJson, type Payload, payload } from "./Content.ts"
import {
  type Conversation,
  type Draft,
  entries,
  type Entry,
  type EntryId,
  inserted,
  sourceOf,
  type ViewItem
} from "./Conversation.ts"
import type { Handle } from "./Handle.ts"

/** What handles name, and how it is found again. */

/** Entries that a compression took out of the view, and the one handle that names them all. */
export interface DroppedRange {
  readonly handle: Handle
  readonly entries: ReadonlyArray<Entry>
}

/** What can be recalled by handle: single parts of entries, and whole dropped ranges. */
export interface Recallable {
  readonly entries: ReadonlyArray<Entry>
  readonly ranges: ReadonlyArray<DroppedRange>
}

/** Everything a conversation holds: its log, what compressions inserted, and the ranges they dropped. */
export const recallable = (conversation: Conversation, ranges: ReadonlyArray<DroppedRange> = []): Recallable => ({
  entries: [...entries(conversation), ...inserted(conversation)],
  ranges
})

/** The entries that dropping `from` to `to` takes out of a view: all of them save the environment message. */
export const droppedEntries = (
  view: ReadonlyArray<ViewItem>,
  drop: { readonly from: EntryId; readonly to: EntryId }
): ReadonlyArray<Entry> => {
  const from = view.findIndex(({ entry }) => entry.id === drop.from)
  const to = view.findIndex(({ entry }) => entry.id === drop.to)
  if (from < 0) return []
  return view
    .slice(from, to < 0 ? undefined : to + 1)
    .flatMap(({ entry }) => (entry.author === "environment" ? [] : [entry]))
}

/** A message as one line of JSON, its parts exactly as they were read; line breaks between tokens become spaces. */
const contentLine = (entry: Draft): string => {
  const { parts, ...rest }: Content = entry.content
  const body = parts.map((part, index) => partJson(part, sourceOf(entry, index))).join(",")
  return `${JSON.stringify({ ...rest }).slice(0, -1)},"parts":[${body}]}`.replace(/[\r\n]+/g, " ")
}

/** What the handle of a dropped range names: JSON Lines, one message a line, each line ended. */
export const rangeText = (range: ReadonlyArray<Draft>): string =>
  range.map((entry) => `${contentLine(entry)}\n`).join("")

const candidates = function* (self: Recallable): Generator<readonly [Handle, () => Payload]> {
  for (const entry of self.entries) {
    for (const [index, part] of entry.content.parts.entries()) {
      const handle = entry.handles[index]
      if (handle !== undefined) yield [handle, () => payload(part, sourceOf(entry, index))]
    }
  }
  for (const range of self.ranges) yield [range.handle, () => ({ form: "json", text: rangeText(range.entries) })]
}

/** What exactly this handle names, or undefined. */
export const recall = (self: Recallable, handle: string): Payload | undefined => {
  for (const [name, read] of candidates(self)) if (name === handle) return read()
  return undefined
}

/** What a name that a person typed stands for. */
export type Found =
  | { readonly _tag: "Found"; readonly handle: Handle; readonly payload: Payload }
  /** It begins more than one handle. */
  | { readonly _tag: "Ambiguous"; readonly handles: ReadonlyArray<Handle> }
  | { readonly _tag: "Unknown" }

/**
 * Finds a handle by its whole, by its beginning, or by more of the hash than the handle has (`Found.handle` is then
 * shorter than the name, and the caller has to check the rest against the hash of the bytes).
 */
export const find = (self: Recallable, name: string): Found => {
  const found = new Map<Handle, () => Payload>()
  for (const [handle, read] of candidates(self)) {
    if (handle === name) return { _tag: "Found", handle, payload: read() }
    if (name.length > 2 && (handle.startsWith(name) || name.startsWith(handle)) && !found.has(handle)) {
      found.set(handle, read)
    }
  }
  const [first, second] = found
  if (first === undefined) return { _tag: "Unknown" }
  return second === undefined
    ? { _tag: "Found", handle: first[0], payload: first[1]() }
    : { _tag: "Ambiguous", handles: [...found.keys()] }
}
