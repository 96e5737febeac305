import { Context, Effect } from "effect"
import {
  type Bounded,
  boundedPart,
  type OutputBound,
  type Recipe,
  resultText,
  unshownMedia
} from "../domain/Bounded.ts"
import { isMedia, isResponse, type Part, payload } from "../domain/Content.ts"
import { type Draft, type Entry, type EntryId, sourceOf, sum } from "../domain/Conversation.ts"
import { type Handle, handleOf, type Hash } from "../domain/Handle.ts"
import { TokenCount } from "../domain/Tokens.ts"
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

/** Names a range of entries in another way than by their parts. Undefined: by their parts. */
export type RangeNaming = (entries: ReadonlyArray<Entry>) => Handle | undefined

/** How ranges are named, where what is behind their handles is not looked up in the session. */
export const RangeName = Context.Reference<RangeNaming>("palimpsest/services/Intake/RangeName", {
  defaultValue: () => () => undefined
})

/**
 * The one handle of a range of entries: of the names of all their parts, which are names of their content. What it
 * gives back is put together when it is asked for; nothing is stored twice.
 */
export const rangeHandle = Effect.fnUntraced(function* (
  entries: ReadonlyArray<Entry>
): Effect.fn.Return<Handle, never, TempStore> {
  const given = (yield* RangeName)(entries)
  if (given !== undefined) return given
  const { hash } = yield* TempStore
  return handleOf(yield* hash(entries.map(({ handles, id }) => `${id} ${handles.join(" ")}`).join("\n")))
})

/** A message to be added. */
export interface Incoming extends Draft {
  /** By part of results: a text to show in its place, a summary. */
  readonly instead?: Readonly<Record<string, string>> | undefined
  /** The most tokens that its texts and media may be shown with; each is kept whole. Absent: all of it. */
  readonly room?: number | undefined
}

/** Tries to make results fit their share of the window; each takes away what was still too much. */
const attempts = 4
/** Characters that are shown of a result however small the window is. */
const leastShown = 400

/** The most that each may have so that all together have no more: small ones leave their share to the others. */
const fairShare = (sizes: ReadonlyArray<number>, all: number): number => {
  let left = all
  for (const [index, size] of [...sizes].sort((one, other) => one - other).entries()) {
    const share = left / (sizes.length - index)
    if (size > share) return share
    left -= size
  }
  return Infinity
}

/**
 * The entry with its results shown so that none is longer than `bound` says and all together take no more than `room` tokens,
 * whatever tool they came from and however full the window is. Each is kept whole. Where `bound.most` is 0 nothing is bounded.
 * `isMeant`: which parts are looked at; results and their media, where nobody says otherwise.
 */
export const withBounds = Effect.fnUntraced(function* (
  entry: Entry,
  instead: Readonly<Record<string, string>>,
  bound: OutputBound,
  room: number,
  isMeant: (part: Part) => boolean = (part) => isResponse(part) || isMedia(part)
): Effect.fn.Return<Entry, TokenCountError, TokenCounter> {
  const results = entry.content.parts.flatMap((part, index) => (isMeant(part) ? [{ part, index }] : []))
  if (results.length === 0 || bound.most <= 0) return entry
  const counter = yield* TokenCounter
  const bounded: Record<string, Bounded> = {}
  const tokensOf = (index: number) => bounded[String(index)]?.tokens ?? entry.tokens[index] ?? 0
  const show = Effect.fnUntraced(function* ({ index, part }: (typeof results)[number], recipe: Recipe) {
    const handle = entry.handles[index]
    if (handle === undefined) return
    const [tokens = 0] = yield* counter.count([boundedPart(part, handle, recipe)])
    if (tokens < tokensOf(index)) bounded[String(index)] = { ...recipe, tokens: TokenCount.make(tokens) }
  })
  const { form, lines, most } = bound
  for (const result of results) {
    if (!isResponse(result.part)) continue
    const summary = instead[String(result.index)]
    const { length } = resultText(result.part) ?? ""
    if (summary !== undefined) yield* show(result, { text: summary })
    else if (length > most) yield* show(result, { form, size: form === "head-tail-lines" ? lines : most })
  }
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const sizes = results.map(({ index }) => tokensOf(index))
    if (sum(sizes) <= room) break
    const share = fairShare(sizes, room)
    for (const result of results) {
      const tokens = tokensOf(result.index)
      if (tokens <= share) continue
      if (isMedia(result.part)) {
        yield* show(result, { text: unshownMedia(result.part) })
        continue
      }
      const known = bounded[String(result.index)]
      const handle = entry.handles[result.index]
      const shown = known === undefined || handle === undefined ? result.part : boundedPart(result.part, handle, known)
      const { length } = resultText(shown) ?? shown.text ?? ""
      const size = Math.max(leastShown, Math.floor((length * share * 0.9) / tokens))
      yield* show(result, { form: "head-tail-chars", size })
    }
  }
  return Object.keys(bounded).length === 0 ? entry : { ...entry, bounded }
})
