import { Effect } from "effect"
import { payload } from "../domain/Content.ts"
import { type Draft, type Entry, type EntryId, sourceOf } from "../domain/Conversation.ts"
import { type Handle, handleOf, type Hash } from "../domain/Handle.ts"
import { TempStore } from "./TempStore.ts"
import { TokenCounter, type TokenCountError } from "./TokenCounter.ts"

/** What holds a handle. */
interface Holder {
  readonly text: () => string
  /** Of what was read back from a log it is computed only if somebody asks. */
  hash: Hash | undefined
}

/**
 * Which handle names which bytes in one session. The same bytes always get the same handle; a handle names one thing only.
 * Mutable: one session has one, and every entry made for the session goes through it.
 */
export class HandleIndex {
  private readonly held = new Map<Handle, Holder>()

  /** The text that a handle names, however long the session is. */
  text(handle: Handle): string | undefined {
    return this.held.get(handle)?.text()
  }

  /** The handle of a text with this hash: the shortest that no other bytes hold. From now on these hold it. */
  readonly assign = Effect.fnUntraced(
    { self: this as HandleIndex },
    function* (this: HandleIndex, hash: Hash, text: () => string): Effect.fn.Return<Handle, never, TempStore> {
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

  /** Holds the handles that entries were given before, as in a session that is opened again. */
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
 * The entry of a message: its tokens counted once, and a handle for each part, under which `recall` gives back exactly
 * what was read. Nothing is stored. `counted`: its tokens by part, where that was done before.
 */
export const makeEntry = Effect.fnUntraced(function* (
  draft: Draft,
  id: EntryId,
  held: HandleIndex,
  counted?: ReadonlyArray<number>
): Effect.fn.Return<Entry, TokenCountError, TokenCounter | TempStore> {
  const counter = yield* TokenCounter
  const store = yield* TempStore
  const { parts } = draft.content
  const tokens = counted ?? (yield* counter.count(parts))
  const handles: Array<Handle> = []
  for (const [index, part] of parts.entries()) {
    const text = () => payload(part, sourceOf(draft, index)).text
    handles.push(yield* held.assign(yield* store.hash(text()), text))
  }
  return { ...draft, id, tokens, handles }
})

/**
 * The one handle of a range of entries: of the names of all their parts, which are names of their content. What it
 * gives back is put together when it is asked for; nothing is stored twice.
 */
export const rangeHandle = (entries: ReadonlyArray<Entry>): Effect.Effect<Handle, never, TempStore> =>
  TempStore.use((store) =>
    Effect.map(store.hash(entries.map(({ handles, id }) => `${id} ${handles.join(" ")}`).join("\n")), (hash) =>
      handleOf(hash)
    )
  )
