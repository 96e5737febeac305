import { Effect, Schema } from "effect"
import { type Content, ContentShape, payload } from "../../domain/content/Content.ts"
import { type Handle, type Hash, mentions } from "../../domain/content/Handle.ts"
import {
  append,
  compressed,
  type Conversation,
  type Draft,
  empty,
  type Entry,
  entryId,
  view
} from "../../domain/conversation/Conversation.ts"
import { decode, encode } from "../../domain/text/Bytes.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { type HandleIndex, makeEntry } from "../session/EntryBuilder.ts"
import { TempStore, type TempStoreError } from "../session/TempStore.ts"
import type { TokenCounter, TokenCountError } from "../tokens/TokenCounter.ts"
import { acknowledgement, rangeIn } from "./strategies/CarryOutPlan.ts"

/**
 * What earlier calls wrote into messages that are compressed again. The `TempStore` keeps the text behind each handle that they show, and a seal for each
 * text and handle: a text that somebody else wrote, with a handle of another conversation in it, has none, and reads nothing.
 */

const sealed = "palimpsest shows "
const sealOf = (text: Hash, handle: Handle) => `${sealed}${handle} in ${text}`

/** Stores the text behind each handle that a message of ours shows, and that the message is ours. */
export const keep = Effect.fnUntraced(function* (
  written: ReadonlyArray<string>,
  textOf: (handle: Handle) => string | undefined
): Effect.fn.Return<void, TempStoreError, TempStore> {
  const { hash, put } = yield* TempStore
  for (const text of written) {
    const name = yield* hash(text)
    for (const handle of new Set(mentions(text))) {
      const behind = textOf(handle)
      // A message with the words of a seal is not stored as one.
      if (behind === undefined || behind.startsWith(sealed)) continue
      yield* put(encode(behind))
      yield* put(encode(sealOf(name, handle)))
    }
  }
})

/** The text behind a handle that a message of ours shows; undefined where the message is somebody else's, or the store does not have it. */
const readShown = Effect.fnUntraced(function* (
  text: Hash,
  handle: Handle
): Effect.fn.Return<string | undefined, TempStoreError, TempStore> {
  const store = yield* TempStore
  const seal = yield* store.hash(sealOf(text, handle))
  return yield* store.get(seal).pipe(
    Effect.andThen(store.resolve(handle)),
    Effect.flatMap(store.get),
    Effect.map((bytes) => decode(bytes).text),
    Effect.catchReason("TempStoreError", "BlobMissing", () => Effect.undefined)
  )
})

const textsOf = ({ parts }: Content): ReadonlyArray<string> => parts.map((part) => payload(part).text)

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
  /** The snapshot and its acknowledgement. Empty: the oldest messages. */
  readonly inserted: ReadonlyArray<Draft>
  readonly messages: ReadonlyArray<Draft>
}

/** A conversation that earlier calls compressed, as it was before this call. */
export interface Continued {
  readonly conversation: Conversation
  /** The texts behind the handles that earlier calls show. */
  readonly texts: ReadonlyMap<Handle, string>
  /** The handles of the ranges that left before, newest first. */
  readonly ranges: ReadonlyArray<Handle>
}

/** Reads what our texts among these messages show. */
const readTexts = Effect.fnUntraced(function* (messages: ReadonlyArray<Draft>, texts: Map<Handle, string>) {
  const { hash } = yield* TempStore
  for (const text of messages.flatMap(({ content }) => textsOf(content))) {
    const shown = [...new Set(mentions(text))].filter((handle) => !texts.has(handle))
    if (shown.length === 0) continue
    const name = yield* hash(text)
    for (const handle of shown) {
      const behind = yield* readShown(name, handle)
      if (behind !== undefined) texts.set(handle, behind)
    }
  }
})

/** Splits messages at the snapshot that they begin with, and reads what is behind it, back to the first message. */
const segmentsOf = Effect.fnUntraced(function* (messages: ReadonlyArray<Draft>, texts: Map<Handle, string>) {
  const segments: Array<Segment> = []
  const ranges: Array<Handle> = []
  for (let rest = messages; ;) {
    yield* readTexts(rest, texts)
    const [first, second] = rest
    const range = first?.content.role === "user" ? rangeIn(textsOf(first.content)[0] ?? "") : undefined
    const behind = range === undefined ? undefined : texts.get(range)
    if (range === undefined || behind === undefined || ranges.includes(range)) {
      segments.unshift({ inserted: [], messages: rest })
      return { ranges, segments }
    }
    const size = second !== undefined && isAcknowledgement(second) ? 2 : 1
    segments.unshift({ inserted: rest.slice(0, size), messages: rest.slice(size) })
    ranges.push(range)
    rest = linesOf(behind)
  }
})

/** Rebuilds the conversation of these messages: those that left, the snapshots that stand for them, and the ones that are there. */
export const continued = Effect.fnUntraced(function* (
  messages: ReadonlyArray<Draft>,
  held: HandleIndex
): Effect.fn.Return<Continued, TempStoreError | TokenCountError, TempStore | TokenCounter> {
  const texts = new Map<Handle, string>()
  const { ranges, segments } = yield* segmentsOf(messages, texts)
  let conversation = empty
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1
    // What has left is not counted again.
    const entryOf = (draft: Draft, sequence: number) =>
      makeEntry(draft, entryId(sequence), held, isLast ? undefined : draft.content.parts.map(() => 0))
    const shown = view(conversation)
    const [from, to] = [shown[0]?.entry.id, shown.at(-1)?.entry.id]
    const insert: Array<Entry> = []
    for (const draft of segment.inserted) {
      insert.push(yield* entryOf({ ...draft, author: "summary" }, conversation.next + insert.length))
    }
    if (from !== undefined && to !== undefined) {
      conversation = compressed(conversation, { drop: { from, to }, insert, shorten: [] })
    }
    for (const draft of segment.messages) {
      conversation = append(conversation, yield* entryOf(draft, conversation.next))
    }
  }
  return { conversation, texts, ranges }
})
