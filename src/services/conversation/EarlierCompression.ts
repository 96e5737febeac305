/**
 * What earlier calls wrote into messages that are compressed again. The `TempStore` keeps the text behind each handle that they show, and a seal for each
 * text and handle: a text that somebody else wrote, with a handle of another conversation in it, has none, and reads nothing.
 */

import { Effect, Schema } from "effect"
import { acknowledgement, rangeIn } from "../../domain/compression/SnapshotOpening.ts"
import { type Content, ContentShape, payload } from "../../domain/content/Content.ts"
import { type Handle, type Hash, mentions } from "../../domain/content/Handle.ts"
import { type Draft, view } from "../../domain/conversation/Conversation.ts"
import { decode, encode } from "../../domain/text/Bytes.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { TempStore, type TempStoreError } from "../session/TempStore.ts"
import type { TokenCounter, TokenCountError } from "../tokens/TokenCounter.ts"
import {
  knownConversation,
  entriesOf,
  type KnownConversation,
  withEntries,
  withPatch,
  uncounted
} from "./KnownConversation.ts"

const sealed = "palimpsest shows "
const sealOf = (text: Hash, handle: Handle) => `${sealed}${handle} in ${text}`

const textsOf = ({ parts }: Content): ReadonlyArray<string> => parts.map((part) => payload(part).text)

/** Stores the text behind each handle that these messages of ours show, and that they are ours, so that a later call reads it. */
export const keepShown = Effect.fnUntraced(function* (
  written: ReadonlyArray<Content>,
  textOf: (handle: Handle) => string | undefined
): Effect.fn.Return<void, TempStoreError, TempStore> {
  const { hash, put } = yield* TempStore
  for (const text of written.flatMap(textsOf)) {
    const name = yield* hash(text)
    for (const handle of new Set(mentions(text))) {
      const recalled = textOf(handle)
      // A message with the words of a seal is not stored as one.
      if (recalled === undefined || recalled.startsWith(sealed)) continue
      yield* put(encode(recalled))
      yield* put(encode(sealOf(name, handle)))
    }
  }
})

/** The text behind a handle that a message of ours shows; undefined where the message is somebody else's, or the store does not have it. */
const readShown = Effect.fnUntraced(function* (text: Hash, handle: Handle) {
  const store = yield* TempStore
  const seal = yield* store.hash(sealOf(text, handle))
  return yield* store.get(seal).pipe(
    Effect.andThen(store.resolve(handle)),
    Effect.flatMap(store.get),
    Effect.map((bytes) => decode(bytes).text),
    Effect.catchReason("TempStoreError", "BlobMissing", () => Effect.undefined)
  )
})

const isAcknowledgement = ({ content }: Draft): boolean =>
  content.role === "model" && content.parts.length === 1 && content.parts[0]?.text === acknowledgement

/** Own JSON: the lines that `rangeText` wrote. */
const linesOf = (text: string): ReadonlyArray<Draft> =>
  text.split("\n").flatMap((line) => {
    const content = parsedOrUndefined(line)
    return isContent(content) ? [{ content }] : []
  })

const isContent = Schema.is(ContentShape)

/** Messages with an earlier snapshot at their beginning: what it stands for, and the messages after it. */
interface Segment {
  /** The handle of what the snapshot stands for. Undefined: these are the oldest messages. */
  readonly range: Handle | undefined
  /** The snapshot and its acknowledgement. */
  readonly inserted: ReadonlyArray<Draft>
  readonly messages: ReadonlyArray<Draft>
}

/** A conversation that earlier calls compressed, as it was before this call. */
export interface Continued {
  readonly known: KnownConversation
  /** The texts behind the handles that earlier calls show. */
  readonly texts: ReadonlyMap<Handle, string>
}

/** Reads what our texts among these messages show. */
const readTexts = Effect.fnUntraced(function* (messages: ReadonlyArray<Draft>, texts: Map<Handle, string>) {
  const { hash } = yield* TempStore
  for (const text of messages.flatMap(({ content }) => textsOf(content))) {
    const shown = [...new Set(mentions(text))].filter((handle) => !texts.has(handle))
    if (shown.length === 0) continue
    const name = yield* hash(text)
    for (const handle of shown) {
      const recalled = yield* readShown(name, handle)
      if (recalled !== undefined) texts.set(handle, recalled)
    }
  }
})

/** Splits messages at the snapshot that they begin with, and reads what is behind it, back to the first message. */
const segmentsOf = Effect.fnUntraced(function* (messages: ReadonlyArray<Draft>, texts: Map<Handle, string>) {
  const segments: Array<Segment> = []
  for (let rest = messages; ;) {
    yield* readTexts(rest, texts)
    const [first, second] = rest
    const range = first?.content.role === "user" ? rangeIn(textsOf(first.content)[0] ?? "") : undefined
    const recalled = range === undefined ? undefined : texts.get(range)
    if (recalled === undefined || segments.some((segment) => segment.range === range)) {
      return [{ range: undefined, inserted: [], messages: rest }, ...segments]
    }
    const size = second !== undefined && isAcknowledgement(second) ? 2 : 1
    segments.unshift({ range, inserted: rest.slice(0, size), messages: rest.slice(size) })
    rest = linesOf(recalled)
  }
})

/** Rebuilds the conversation of these messages: those that left, the snapshots that stand for them, and the ones that are there. */
export const continued = Effect.fnUntraced(function* (
  messages: ReadonlyArray<Draft>
): Effect.fn.Return<Continued, TempStoreError | TokenCountError, TempStore | TokenCounter> {
  const texts = new Map<Handle, string>()
  const segments = yield* segmentsOf(messages, texts)
  let known = knownConversation()
  for (const [index, { inserted, messages, range }] of segments.entries()) {
    // What has left is not counted again.
    const counts = index === segments.length - 1 ? undefined : uncounted
    const shown = view(known.conversation)
    const [from, to] = [shown[0]?.entry.id, shown.at(-1)?.entry.id]
    const summaries = inserted.map((draft): Draft => ({ ...draft, author: "summary" }))
    const insert = yield* entriesOf(known, summaries, counts)
    if (from !== undefined && to !== undefined) {
      known = withPatch(known, { drop: { from, to }, insert, shorten: [] }, range)
    }
    known = withEntries(known, yield* entriesOf(known, messages, counts))
  }
  return { known, texts }
})
