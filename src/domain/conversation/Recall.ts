/** Finds the content that a handle names. */

import { type Content, partJson, type Payload, payload } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import { closestNames } from "../text/SpellingSuggestion.ts"
import { allEntries } from "./Branches.ts"
import { type Conversation, type Draft, type Entry, type EntryId, sourceOf, type ViewItem } from "./Conversation.ts"

/** Entries that a compression removed from the view, and the one handle that names all of them. */
export interface DroppedRange {
  readonly handle: Handle
  readonly entries: ReadonlyArray<Entry>
}

/** The content that handles can recall: single parts of entries, and whole dropped ranges. */
export interface Recallable {
  readonly entries: ReadonlyArray<Entry>
  readonly ranges: ReadonlyArray<DroppedRange>
}

/** Returns everything that a conversation holds: its entries, also those of left branches, and the ranges that were dropped. */
export const recallable = (conversation: Conversation, ranges: ReadonlyArray<DroppedRange> = []): Recallable => ({
  entries: allEntries(conversation),
  ranges
})

/** Returns the entries that dropping `from` to `to` removes from a view: all except the environment message. */
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

/** Writes a message as one line of JSON, its parts exactly as they were read; line breaks between tokens become spaces. */
const contentLine = (entry: Draft): string => {
  const { parts, ...rest }: Content = entry.content
  const body = parts.map((part, index) => partJson(part, sourceOf(entry, index))).join(",")
  return `${JSON.stringify({ ...rest }).slice(0, -1)},"parts":[${body}]}`.replace(/[\r\n]+/g, " ")
}

/** Returns the content of a dropped range: JSON Lines, one message a line, each line terminated. */
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

/**
 * Returns the exact content of this handle, or undefined.
 *
 * **Example** (Reading a message by its handle)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compression, Content, Conversation, Palimpsest } from "palimpsest"
 *
 * const drafts = [{ content: Content.user(Content.text("The port is 8080.")) }]
 * const { conversation } = await Effect.runPromise(
 *   Effect.provide(Compression.requestFor(drafts), Palimpsest.layer())
 * )
 * const all = Conversation.recallable(conversation)
 * const handle = all.entries[0]?.handles[0] ?? ""
 * console.log(Conversation.recall(all, handle)?.text) // => The port is 8080.
 * ```
 */
export const recall = (self: Recallable, handle: string): Payload | undefined => {
  for (const [name, read] of candidates(self)) if (name === handle) return read()
  return undefined
}

/** Handles with up to this many wrong characters are suggested, and how many of them. */
const maxTypos = 3
const maxSuggestions = 3

/** Returns the handles that differ from a name by a few characters, the most similar first. */
export const similarHandles = (self: Recallable, name: string): ReadonlyArray<Handle> =>
  closestNames(name, new Set([...candidates(self)].map(([handle]) => handle)), maxTypos).slice(0, maxSuggestions)

/** The match of a handle that the user typed. */
export type HandleMatch =
  | { readonly _tag: "Found"; readonly handle: Handle; readonly payload: Payload }
  /** The name is a prefix of more than one handle. */
  | { readonly _tag: "Ambiguous"; readonly handles: ReadonlyArray<Handle> }
  | { readonly _tag: "Unknown" }

/**
 * Finds a handle by its full name, by a prefix, or by a longer prefix of the hash than the handle has. In the last case
 * `Found.handle` is shorter than the name, and the caller has to check the rest against the hash of the bytes.
 */
export const findHandle = (self: Recallable, name: string): HandleMatch => {
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
