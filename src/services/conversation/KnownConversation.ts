import { Clock, Effect, identity } from "effect"
import { defaultPolicy, type Policy } from "../../domain/compression/strategies/Policy.ts"
import type { Handle } from "../../domain/content/Handle.ts"
import { type Draft, type Entry, entryId, type Patch } from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { recall } from "../../domain/conversation/Recall.ts"
import { compressionEvent } from "../../domain/session/CompressionEvent.ts"
import {
  applyEvent,
  applyEvents,
  emptySession,
  recallableOf,
  type Session,
  type SessionEvent
} from "../../domain/session/Session.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { Compression } from "../compression/Compression.ts"
import { type CompressionResult, type CompressRequest } from "../compression/strategies/CompressRequest.ts"
import { unusableIn, withUsableModels } from "../compression/UsableModels.ts"
import { SpanConversation } from "../model/ModelSpans.ts"
import { HandleIndex, makeEntry } from "../session/EntryBuilder.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCountError, TokenCounter } from "../tokens/TokenCounter.ts"

/**
 * A conversation that its caller keeps and sends again from the first message: the gateway's clients, callers of a bounded language model, and programs
 * that call `Compress.*`. It is the session that these messages and the compressions of them make, and reads back whatever left its view.
 */
export interface KnownConversation extends Session {
  /** The handles of all its parts. Its continuations share and extend this index. */
  readonly handles: HandleIndex
}

/** The conversation of a session. */
export const knownConversation = (session: Session = emptySession): KnownConversation => {
  const handles = new HandleIndex()
  handles.restore(recallableOf(session).entries)
  return { ...session, handles }
}

/** The tokens of the parts of a message, where they are known. */
type CountsOf = (draft: Draft, index: number) => ReadonlyArray<number> | undefined

/** For messages that leave the view at once. */
export const uncounted: CountsOf = ({ content }) => content.parts.map(() => 0)

/** Makes the entries of messages, in the order of their ids. */
export const entriesOf = Effect.fnUntraced(function* (
  { conversation, handles }: KnownConversation,
  drafts: ReadonlyArray<Draft>,
  countsOf: CountsOf = () => undefined
) {
  const made: Array<Entry> = []
  for (const [index, draft] of drafts.entries()) {
    made.push(yield* makeEntry(draft, entryId(conversation.next + index), handles, countsOf(draft, index)))
  }
  return made
})

/** Adds entries. */
export const withEntries = <K extends KnownConversation>(known: K, added: ReadonlyArray<Entry>): K => ({
  ...known,
  ...applyEvents(
    known,
    added.map((entry) => ({ _tag: "Appended", entry }))
  )
})

/** Applies the event of a compression. */
export const withEvent = <K extends KnownConversation>(known: K, event: SessionEvent): K => {
  if (event._tag === "Compressed") known.handles.restore(event.patch.insert)
  return { ...known, ...applyEvent(known, event) }
}

/** Applies a compression of which only the patch is known, and the name of what it took out. */
export const withPatch = <K extends KnownConversation>(known: K, patch: Patch, dropped: Handle | undefined): K =>
  withEvent(known, {
    _tag: "Compressed",
    at: 0,
    status: "COMPRESSED",
    strategy: defaultPolicy.strategy,
    trigger: "auto",
    before: TokenCount.make(0),
    after: TokenCount.make(0),
    patch,
    ...(dropped === undefined ? {} : { dropped })
  })

/** The result of a compression, with the conversation as it is then. */
export interface KnownCompression<K> extends CompressionResult {
  /** What a session records of it, also of a failure. Undefined: nothing. */
  readonly event: SessionEvent | undefined
  readonly after: K
}

/** Compresses a conversation. The one that was given stays as it is. */
export const compress = Effect.fnUntraced(function* <K extends KnownConversation>(
  known: K,
  how: Omit<CompressRequest, "conversation" | "held" | "memory" | "pins">
): Effect.fn.Return<KnownCompression<K>, never, Compression> {
  const { conversation, handles, memory, model, pins, started } = known
  const { cwd = started?.cwd, family = model, forced } = how
  const policy = withUsableModels(how.policy, memory)
  const request = {
    ...how,
    conversation,
    cwd,
    family,
    held: handles,
    memory,
    pins: PersistentList.toArray(pins),
    policy
  }
  const result = yield* Compression.use((compression) => compression.compress(request)).pipe(
    started === undefined ? identity : Effect.provideService(SpanConversation, started.session)
  )
  const event = compressionEvent(result.outcome, {
    at: yield* Clock.currentTimeMillis,
    dropped: result.dropped,
    forced,
    strategy: policy.strategy,
    unusable: unusableIn(result, policy)
  })
  return { ...result, event, after: event === undefined ? known : withEvent(known, event) }
})

/**
 * Makes a request for a program that manages its messages itself.
 *
 * The messages become the entries `e1`, `e2`, … of a conversation, with token counts and handles. Nothing is stored, and
 * earlier failures are not remembered. A message without an author belongs to the user or the model, by its role. The
 * request is not forced: below the policy's threshold nothing happens.
 *
 * **Example** (Planning a compression of your own messages)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compression, Content, Palimpsest } from "palimpsest"
 *
 * const program = Effect.gen(function* () {
 *   const request = yield* Compression.requestFor([{ content: Content.user(Content.text("Hello")) }])
 *   const decision = yield* Compression.Compression.use((compression) => compression.plan(request))
 *   return decision._tag
 * })
 * console.log(await Effect.runPromise(Effect.provide(program, Palimpsest.layer()))) // => Skip
 * ```
 */
export const requestFor = Effect.fn("Compression.requestFor")(function* (
  messages: ReadonlyArray<Draft>,
  policy: Policy = defaultPolicy
): Effect.fn.Return<CompressRequest, TokenCountError, TokenCounter | TempStore> {
  const begun = knownConversation()
  const { conversation, handles } = withEntries(begun, yield* entriesOf(begun, messages))
  return { conversation, policy, forced: false, memory: freshMemory, held: handles }
})

/** Returns the text behind a handle: a part of a message, or a range that left. Undefined where neither it nor a continuation of it holds one. */
export const textBehind = (
  { handles, ranges }: Pick<KnownConversation, "handles" | "ranges">,
  handle: Handle
): string | undefined =>
  handles.text(handle) ?? recall({ entries: [], ranges: PersistentList.toArray(ranges) }, handle)?.text
