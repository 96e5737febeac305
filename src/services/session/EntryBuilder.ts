import { Context, Effect } from "effect"
import { isMedia, isResponse, type Part, payload } from "../../domain/content/Content.ts"
import { type Handle, handleOf, type Hash } from "../../domain/content/Handle.ts"
import { type Draft, type Entry, type EntryId, sourceOf, sum } from "../../domain/conversation/Conversation.ts"
import {
  type BoundedResult,
  boundedPart,
  type OutputBound,
  type BoundedForm,
  resultText,
  omittedMediaNote
} from "../../domain/conversation/ToolOutputBound.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { TokenCounter, type TokenCountError } from "../tokens/TokenCounter.ts"
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
export const rangeHandle = Effect.fnUntraced(function* (
  entries: ReadonlyArray<Entry>
): Effect.fn.Return<Handle, never, TempStore> {
  const given = (yield* RangeName)(entries)
  if (given !== undefined) return given
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

/** Attempts to make results fit their share of the window. Each reduces the shares by the remaining excess. */
const maxFitAttempts = 4
/** Characters of a result that are shown however small the window is. */
const minShownChars = 400

/** Returns the maximum for each so that all together fit. Small ones leave the rest of their share to the others. */
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
 * Bounds how the results of an entry are shown: none longer than `bound` allows, and all together within `room` tokens. Each
 * is stored whole. Nothing is bounded when `bound.most` is 0. `isBoundable` selects the parts; default: results and their
 * media.
 */
export const withBounds = Effect.fnUntraced(function* (
  entry: Entry,
  instead: Readonly<Record<string, string>>,
  bound: OutputBound,
  room: number,
  isBoundable: (part: Part) => boolean = (part) => isResponse(part) || isMedia(part)
): Effect.fn.Return<Entry, TokenCountError, TokenCounter> {
  const results = entry.content.parts.flatMap((part, index) => (isBoundable(part) ? [{ part, index }] : []))
  if (results.length === 0 || bound.most <= 0) return entry
  const counter = yield* TokenCounter
  const bounded: Record<string, BoundedResult> = {}
  const tokensOf = (index: number) => bounded[String(index)]?.tokens ?? entry.tokens[index] ?? 0
  const show = Effect.fnUntraced(function* ({ index, part }: (typeof results)[number], recipe: BoundedForm) {
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
  for (let attempt = 0; attempt < maxFitAttempts; attempt += 1) {
    const sizes = results.map(({ index }) => tokensOf(index))
    if (sum(sizes) <= room) break
    const share = fairShare(sizes, room)
    for (const result of results) {
      const tokens = tokensOf(result.index)
      if (tokens <= share) continue
      if (isMedia(result.part)) {
        yield* show(result, { text: omittedMediaNote(result.part) })
        continue
      }
      const known = bounded[String(result.index)]
      const handle = entry.handles[result.index]
      const shown = known === undefined || handle === undefined ? result.part : boundedPart(result.part, handle, known)
      const { length } = resultText(shown) ?? shown.text ?? ""
      const size = Math.max(minShownChars, Math.floor((length * share * 0.9) / tokens))
      yield* show(result, { form: "head-tail-chars", size })
    }
  }
  return Object.keys(bounded).length === 0 ? entry : { ...entry, bounded }
})
