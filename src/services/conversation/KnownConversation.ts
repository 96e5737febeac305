import { Effect } from "effect"
import { defaultPolicy, type Policy } from "../../domain/compression/strategies/Policy.ts"
import type { Handle } from "../../domain/content/Handle.ts"
import {
  appendAll,
  compressed,
  type Conversation,
  type Draft,
  empty,
  type Entry,
  entryId,
  type Patch,
  view
} from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { type DroppedRange, droppedEntries, rangeText } from "../../domain/conversation/Recall.ts"
import { Compression } from "../compression/Compression.ts"
import type { CompressionResult, CompressRequest } from "../compression/strategies/CompressRequest.ts"
import { HandleIndex, makeEntry } from "../session/EntryBuilder.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCountError, TokenCounter } from "../tokens/TokenCounter.ts"

/**
 * A conversation that its caller keeps and sends again from the first message: the gateway's clients, and programs that call `Compress.*`. It is
 * rebuilt from the caller's messages and from what earlier compressions changed, and reads back whatever left its view.
 */
export interface KnownConversation {
  readonly conversation: Conversation
  /** The handles of all its parts. */
  readonly handles: HandleIndex
  /** What compressions took out of the view, oldest first. */
  readonly ranges: ReadonlyArray<DroppedRange>
}

/** A conversation without messages. */
export const emptyConversation = (): KnownConversation => ({
  conversation: empty,
  handles: new HandleIndex(),
  ranges: []
})

/** Makes the entries of messages, in the order of their ids. `isCounted` is false for those that leave the view at once. */
export const entriesOf = Effect.fnUntraced(function* (
  { conversation, handles }: KnownConversation,
  drafts: ReadonlyArray<Draft>,
  isCounted = true
) {
  const made: Array<Entry> = []
  for (const draft of drafts) {
    const counted = isCounted ? undefined : draft.content.parts.map(() => 0)
    made.push(yield* makeEntry(draft, entryId(conversation.next + made.length), handles, counted))
  }
  return made
})

/** Adds entries. */
export const withEntries = <K extends KnownConversation>(known: K, added: ReadonlyArray<Entry>): K => ({
  ...known,
  conversation: appendAll(known.conversation, added)
})

/** Applies a compression, which names what it took out `dropped`. */
export const withPatch = <K extends KnownConversation>(known: K, patch: Patch, dropped: Handle | undefined): K => {
  const { conversation, handles, ranges } = known
  handles.restore(patch.insert)
  return {
    ...known,
    conversation: compressed(conversation, patch),
    ranges:
      patch.drop === undefined || dropped === undefined
        ? ranges
        : [...ranges, { handle: dropped, entries: droppedEntries(view(conversation), patch.drop) }]
  }
}

/** Compresses a conversation. It stays as it is until the patch of the outcome is applied. */
export const compress = (
  { conversation, handles }: KnownConversation,
  options: Omit<CompressRequest, "conversation" | "held" | "memory">
): Effect.Effect<CompressionResult, never, Compression> =>
  Compression.use((compression) =>
    compression.compress({ ...options, conversation, held: handles, memory: freshMemory })
  )

/**
 * Makes a request for a program that manages its messages itself.
 *
 * The messages become the entries `e1`, `e2`, … of a conversation, with token counts and handles. Nothing is stored, and
 * earlier failures are not remembered. A message without an author belongs to the user or the model, by its role. The
 * request is not forced: below the policy's threshold nothing happens.
 */
export const requestFor = Effect.fn("Compression.requestFor")(function* (
  messages: ReadonlyArray<Draft>,
  policy: Policy = defaultPolicy
): Effect.fn.Return<CompressRequest, TokenCountError, TokenCounter | TempStore> {
  const begun = emptyConversation()
  const { conversation, handles } = withEntries(begun, yield* entriesOf(begun, messages))
  return { conversation, policy, forced: false, memory: freshMemory, held: handles }
})

/** Returns the text behind a handle: a part of a message, or a range that left. Undefined where the conversation holds none. */
export const textBehind = ({ handles, ranges }: KnownConversation, handle: Handle): string | undefined => {
  const range = ranges.find((each) => each.handle === handle)
  return handles.text(handle) ?? (range === undefined ? undefined : rangeText(range.entries))
}
