/** Makes entries of messages: counts their tokens, and gives parts and ranges their handles. */

import { Context, Effect } from "effect"
import { payload } from "../../domain/content/Content.ts"
import { type Handle, handleOf, type Hash } from "../../domain/content/Handle.ts"
import { type Draft, type Entry, type EntryId, sourceOf } from "../../domain/conversation/Conversation.ts"
import { TokenCounter } from "../tokens/TokenCounter.ts"
import { TempStore } from "./TempStore.ts"

/** The bytes that a handle names. */
interface HandleOwner {
  readonly text: () => string
  /** For entries restored from a log, computed only when needed. */
  hash: Hash | undefined
}

/**
 * The handles of one session. The same bytes always get the same handle, and a handle names one thing only. Mutable: every entry
 * of the session goes through its one index.
 */
export class HandleIndex {
  private readonly held = new Map<Handle, HandleOwner>()

  /** The text that a handle names. */
  text(handle: Handle): string | undefined {
    return this.held.get(handle)?.text()
  }

  /** Assigns a handle to a text with this hash: the shortest one that no other bytes have. */
  readonly assign = Effect.fnUntraced(
    { self: this as HandleIndex },
    function* (this: HandleIndex, hash: Hash, text: () => string) {
      const store = yield* TempStore
      const others = new Set<Handle>()
      for (;;) {
        const handle = handleOf(hash, (candidate) => others.has(candidate))
        const holder = this.held.get(handle)
        if (holder === undefined) {
          this.held.set(handle, { hash, text })
          return handle
        }
        holder.hash ??= yield* store.hash(holder.text())
        if (holder.hash === hash) return handle
        others.add(handle)
      }
    }
  )

  /** Takes the handles that entries already have, when a session is opened again. */
  restore(entries: ReadonlyArray<Entry>): void {
    for (const entry of entries) {
      for (const [index, part] of entry.content.parts.entries()) {
        const handle = entry.handles[index]
        if (handle !== undefined && !this.held.has(handle)) {
          this.held.set(handle, { hash: undefined, text: () => payload(part, sourceOf(entry, index)).text })
        }
      }
    }
  }
}

/**
 * Makes the entry of a message: counts its tokens, and assigns a handle to each part, under which `recall` returns exactly
 * what was read. Stores nothing. `counted` are the tokens by part, when they are already counted.
 */
export const makeEntry = Effect.fnUntraced(function* (
  draft: Draft,
  id: EntryId,
  held: HandleIndex,
  counted?: ReadonlyArray<number>
) {
  const counter = yield* TokenCounter
  const store = yield* TempStore
  const { parts } = draft.content
  const tokens = counted ?? (yield* counter.count(parts))
  const handles: Array<Handle> = []
  for (const [index, part] of parts.entries()) {
    const text = () => payload(part, sourceOf(draft, index)).text
    const hash = yield* store.hash(text())
    handles.push(yield* held.assign(hash, text))
  }
  return { ...draft, id, tokens, handles }
})

/** Gives a range of entries a handle other than that of their parts; undefined for the handle of their parts. */
export type RangeNaming = (entries: ReadonlyArray<Entry>) => Handle | undefined

/** How ranges get their handles, for callers that do not look them up in the session. */
export const RangeName = Context.Reference<RangeNaming>("palimpsest/services/session/EntryBuilder/RangeName", {
  defaultValue: () => () => undefined
})

/**
 * Returns the handle of a range of entries, made from the handles of all their parts. The recalled content is assembled on
 * recall, so nothing is stored twice.
 */
export const rangeHandle = Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>) {
  const ownName = (yield* RangeName)(entries)
  if (ownName !== undefined) return ownName
  const { hash } = yield* TempStore
  return handleOf(yield* hash(entries.map(({ handles, id }) => `${id} ${handles.join(" ")}`).join("\n")))
})

/** A message to be added. */
export interface IncomingMessage extends Draft {
  /** By index of a tool result: a text to show in its place, such as a summary. */
  readonly instead?: Readonly<Record<string, string>> | undefined
  /** Maximum tokens with which its texts and media are shown; each is stored whole. Absent: no limit. */
  readonly room?: number | undefined
}
