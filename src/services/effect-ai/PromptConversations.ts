/** Compresses prompts until they fit, for callers that keep the history, and remembers the outcomes. */

import { Data, Effect, type Scope } from "effect"
import type * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import { patchOf } from "../../domain/compression/Compression.ts"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import { handleOf, type Hash } from "../../domain/content/Handle.ts"
import { arrangedMessages, type MessageRange } from "../../domain/conversation/ArrangedMessages.ts"
import {
  type Conversation,
  type Draft,
  entries,
  type Entry,
  view,
  viewTokens
} from "../../domain/conversation/Conversation.ts"
import { requestMark, retryFrom } from "../../domain/conversation/FailureMemory.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import { awaitedFrom, legalPrompt } from "../../domain/effect-ai/PromptRepair.ts"
import { emptySession, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import type { MeasuredRequest } from "../chat/WindowGuard.ts"
import type { Compression } from "../compression/Compression.ts"
import {
  compress,
  entriesOf,
  type KnownConversation,
  knownConversation,
  withEntries,
  withEvent
} from "../conversation/KnownConversation.ts"
import {
  type CountedMessages,
  KnownConversations,
  nothingCounted,
  type SentBeginning
} from "../conversation/KnownConversations.ts"
import { RangeName, type RangeNaming } from "../session/EntryBuilder.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCountError, TokenCounter } from "../tokens/TokenCounter.ts"
import { itemMessages } from "./LanguageModelBridge.ts"
import type { PromptNames } from "./PromptNames.ts"
import { aiError, countMessage, type Declarations, fit, type PromptWindow } from "./PromptWindow.ts"

/** What is sent in place of the first messages of a prompt, with the count of those messages. */
export interface PromptView extends CountedMessages {
  /** What is sent; a number is the index of one of the caller's own messages. Absent: a compression changed nothing. */
  readonly items: ReadonlyArray<number | Prompt.Message> | undefined
  /** Tokens of all that is sent, without system messages. */
  readonly tokens: number
  /** The next compression waits for this many tokens. */
  readonly waiting: number
  /**
   * The view before it, and what the session recorded since. With the caller's history they make the session again. Nothing for a conversation with a
   * key, whose session is read from its store.
   */
  readonly before: PromptView | undefined
  readonly events: ReadonlyArray<SessionEvent>
  /** Where it is stored: the session, and the version of its conversation. Undefined: it is not. */
  readonly stored: { readonly session: string; readonly version: number } | undefined
}

/** A measured request, and what it consisted of besides its messages. */
export interface MeasuredPrompt extends MeasuredRequest {
  readonly view: PromptView | undefined
  readonly declarationTokens: number
}

/** The conversations of one language model. */
export interface PromptConversations {
  readonly window: PromptWindow
  readonly names: PromptNames
  readonly known: KnownConversations<PromptView, MeasuredPrompt>
  /** The sessions behind the newest views. Any other is made again. */
  readonly sessions: BoundedMap<PromptView, KnownConversation>
}

/** Makes the memory of a language model: so many conversations held whole, and so many of which only the compressions are known. */
export const makePromptConversations = (
  window: PromptWindow,
  names: PromptNames,
  { remembered, whole }: { readonly remembered: number; readonly whole: number }
): PromptConversations => ({
  window,
  names,
  known: new KnownConversations(remembered),
  sessions: new BoundedMap(whole)
})

type Messages = ReadonlyArray<Prompt.Message>

/** A call and its prompt, with the names of the beginnings of that and what is known of it. */
export interface PromptCall {
  readonly method: string
  readonly declared: Declarations
  readonly content: Messages
  readonly names: ReadonlyArray<Hash | "">
  readonly beginning: SentBeginning<PromptView, MeasuredPrompt>
  /** All messages of the prompt, counted. */
  readonly counted: CountedMessages
}

/** The session of a prompt, open for its compression. */
export interface OpenedPrompt {
  readonly view: PromptView | undefined
  readonly known: KnownConversation
  /** Stores an event. */
  readonly append: (event: SessionEvent) => Effect.Effect<void, SessionStoreError>
  /** How a range that leaves is named, for a conversation that exists in its caller's history only. */
  readonly naming: ((known: KnownConversation) => RangeNaming) | undefined
}

type Services = Compression | TempStore | TokenCounter

const isSystem = (message: Prompt.Message | undefined): boolean => message?.role === "system"

/** Adds messages of a prompt to a count, up to the first `end`. */
export const countUpTo = Effect.fnUntraced(function* (
  window: PromptWindow,
  from: CountedMessages,
  content: Messages,
  end: number
): Effect.fn.Return<CountedMessages, AiError.AiError> {
  let { dialogue, system } = from
  for (const message of content.slice(from.messages, end)) {
    const tokens = window.counted.get(message)?.tokens ?? (yield* countMessage(window, message))
    if (isSystem(message)) system += tokens
    else dialogue += tokens
  }
  return { messages: end, dialogue, system }
})

/** Estimated tokens of a call whose prompt is sent with a view. */
export const tokensOf = (
  { counted: { dialogue, system }, declared }: PromptCall,
  view: PromptView | undefined
): number => declared.tokens + system + dialogue + (view === undefined ? 0 : view.tokens - view.dialogue)

/** Finds what is known of the prompt of a call, and counts what is new in it. */
export const findPrompt = Effect.fnUntraced(function* (
  { known, window }: PromptConversations,
  call: Omit<PromptCall, "beginning" | "counted">
): Effect.fn.Return<PromptCall, AiError.AiError> {
  const { content, names } = call
  const beginning = known.find(names)
  beginning.counted = yield* countUpTo(window, beginning.counted, content, content.length)
  return { ...call, beginning, counted: beginning.counted }
})

/** The messages sent for a prompt: what its view shows, then the caller's own messages. The same list where nothing changes. */
export const sentOf = (view: PromptView | undefined, content: Messages): Messages =>
  legalPrompt(
    view?.items === undefined
      ? content
      : [
          ...view.items.flatMap((item) => (typeof item === "number" ? (content[item] ?? []) : [item])),
          ...content.slice(view.messages)
        ]
  )

/** Where the messages of a prompt stand that are entries of a conversation. */
const rangesOf = (content: Messages): ReadonlyArray<MessageRange | undefined> =>
  content.map((message, at) => (isSystem(message) ? undefined : { from: at, to: at + 1 }))

/** The number of messages up to the last of these entries that is a message of the prompt. */
export const lastLine = (dropped: ReadonlyArray<Entry>): number =>
  dropped.reduce((last, { origin }) => Math.max(last, origin?.line ?? 0), 0)

const draftsOf = (content: Messages, from: number, end: number): ReadonlyArray<Draft> =>
  content
    .slice(from, end)
    .flatMap((message, at) =>
      message.role === "system" ? [] : [{ content: toContent(message), origin: { line: from + at + 1, ids: [] } }]
    )

/** The view of a session that holds the first `messages` of a prompt. */
export const viewOf = (
  { conversation, memory: { waitUntil }, started }: Session,
  content: Messages,
  view: CountedMessages & Partial<PromptView>,
  isChanged: boolean
): PromptView => ({
  items: isChanged
    ? arrangedMessages(conversation, rangesOf(content.slice(0, view.messages)), view.messages).flatMap(
        (item): ReadonlyArray<number | Prompt.Message> => (typeof item === "number" ? [item] : itemMessages(item))
      )
    : undefined,
  tokens: viewTokens(conversation),
  waiting: waitUntil,
  before: undefined,
  events: [],
  stored: started === undefined ? undefined : { session: started.session, version: conversation.version },
  ...view
})

/** The session behind a view: still in memory, or made again from the caller's history and what was recorded. */
export const sessionOf = Effect.fnUntraced(function* (
  { sessions, window }: PromptConversations,
  view: PromptView | undefined,
  content: Messages
): Effect.fn.Return<KnownConversation, TokenCountError, TempStore | TokenCounter> {
  const views: Array<PromptView> = []
  let known: KnownConversation | undefined
  for (let each = view; each !== undefined && known === undefined; each = each.before) {
    known = sessions.get(each)
    if (known === undefined) views.unshift(each)
  }
  let session = known ?? knownConversation({ ...emptySession, model: window.name })
  for (const { before, events, messages } of views) {
    const drafts = draftsOf(content, before?.messages ?? 0, messages)
    session = withEntries(session, yield* entriesOf(session, drafts))
    for (const event of events) session = withEvent(session, event)
  }
  return session
})

/** Names a removed range by the beginning of the conversation that it ends, so that its text can be found in any history. */
const rangeNaming =
  (names: ReadonlyArray<Hash | "">) =>
  ({ conversation }: KnownConversation): RangeNaming =>
  (dropped) => {
    const name = names[Math.max(goneFrom(conversation), lastLine(dropped))]
    return name === undefined || name === "" ? undefined : handleOf(name)
  }

/** The number of messages up to the last that left the view. */
const goneFrom = (conversation: Conversation): number => {
  const shown = new Set(view(conversation).map(({ entry }) => entry))
  return lastLine(entries(conversation).filter((entry) => !shown.has(entry)))
}

/** Opens the conversation of a prompt that exists in its caller's history only. */
export const openHistory = (all: PromptConversations, { beginning: { view }, content, names }: PromptCall) =>
  Effect.map(sessionOf(all, view, content), (known): OpenedPrompt => ({
    view,
    known,
    append: () => Effect.void,
    naming: rangeNaming(names)
  }))

/** The prompt has to be compressed. */
class CompressionDue extends Data.TaggedError("CompressionDue") {}

/** Makes a prompt fit, as far as `compress` may change its view, and returns what is sent. */
const fitCall = Effect.fnUntraced(function* <E, R>(
  { window }: PromptConversations,
  call: PromptCall,
  viewNow: () => PromptView | undefined,
  compress: Parameters<typeof fit<E, R>>[2]["compress"]
) {
  const { beginning, content, declared, method } = call
  const request = Effect.sync(() => ({ messages: sentOf(viewNow(), content), tokens: tokensOf(call, viewNow()) }))
  const waiting = viewNow()?.waiting ?? 0
  const { measured, messages } = yield* fit<E | AiError.AiError, R>(
    window,
    method,
    { request, compress },
    declared,
    waiting
  )
  beginning.measured = { ...measured, view: viewNow(), declarationTokens: declared.tokens }
  return messages
})

/** What a compression of a prompt has come to. Mutable. */
interface Shrinking {
  /** The session with all messages that are compressed; undefined until something is. */
  known: KnownConversation | undefined
  view: PromptView | undefined
  readonly events: Array<SessionEvent>
}

/** Compresses the first messages of a prompt, `replaced`, once. `overhead`: estimated tokens of the rest of the request. */
const compressOnce = Effect.fnUntraced(function* (
  shrinking: Shrinking,
  { append, known: opened, naming, view: began }: OpenedPrompt,
  content: Messages,
  replaced: CountedMessages,
  how: { readonly policy: Policy; readonly forced: boolean }
) {
  if (shrinking.known === undefined) {
    const added = yield* entriesOf(opened, draftsOf(content, began?.messages ?? 0, replaced.messages))
    for (const entry of added) yield* append({ _tag: "Appended", entry })
    shrinking.known = withEntries(opened, added)
  }
  const compressing = compress(shrinking.known, how)
  const { after, event, outcome } = yield* naming === undefined
    ? compressing
    : Effect.provideService(compressing, RangeName, naming(shrinking.known))
  if (event !== undefined) {
    yield* append(event)
    if (naming !== undefined) shrinking.events.push(event)
  }
  const { overhead } = how.policy
  const isPatched = patchOf(outcome) !== undefined
  const waiting = isPatched ? requestMark(after.memory, overhead) : retryFrom(overhead + viewTokens(after.conversation))
  const isChanged = isPatched || shrinking.view?.items !== undefined
  shrinking.known = after
  const before = naming === undefined ? undefined : began
  shrinking.view = viewOf(after, content, { ...replaced, before, events: shrinking.events, waiting }, isChanged)
  return outcome
})

/** Compresses until the prompt fits, and remembers the outcome even if it is rejected in the end: nothing is paid for again. */
const shrinkOpened = Effect.fnUntraced(function* (all: PromptConversations, call: PromptCall, opened: OpenedPrompt) {
  const { beginning, content, counted, declared, method, names } = call
  // Messages that `effect/ai` still has to process are sent unchanged.
  const messages = Math.max(opened.view?.messages ?? 0, awaitedFrom(content))
  const replaced = yield* countUpTo(all.window, opened.view ?? nothingCounted, content, messages)
  const overhead = TokenCount.make(Math.ceil(counted.system + declared.tokens + counted.dialogue - replaced.dialogue))
  const shrinking: Shrinking = { known: undefined, view: opened.view, events: [] }
  const fitting = fitCall(
    all,
    call,
    () => shrinking.view,
    (policy, forced) =>
      compressOnce(shrinking, opened, content, replaced, { policy: { ...policy, overhead }, forced }).pipe(
        Effect.mapError((error) => aiError(method, error))
      )
  )
  const remember = Effect.sync(() => {
    const { known, view } = shrinking
    if (view !== undefined && view !== beginning.view) {
      all.known.remember(names, view, beginning.view)
      beginning.view = view
    }
    // The session of a key is read from its store.
    if (opened.naming !== undefined && view !== undefined && known !== undefined) all.sessions.set(view, known)
  })
  return yield* Effect.ensuring(fitting, remember)
})

/**
 * Returns what is sent for a prompt: as its last compression left it, if that fits; else it is compressed. `open` opens its session only
 * then, under the lock of the conversation.
 */
export const shrink = <R>(
  all: PromptConversations,
  call: PromptCall,
  open: Effect.Effect<OpenedPrompt, SessionStoreError | TokenCountError | AiError.AiError, R | Scope.Scope>
): Effect.Effect<Messages, AiError.AiError, Exclude<R, Scope.Scope> | Services> =>
  Effect.gen(function* () {
    const { beginning, method, names } = call
    const shared = all.known.view(names)
    if (shared !== undefined && shared.messages > (beginning.view?.messages ?? 0)) beginning.view = shared
    const asItIs = yield* fitCall(
      all,
      call,
      () => beginning.view,
      () => new CompressionDue()
    ).pipe(Effect.catchTag("CompressionDue", () => Effect.succeed(undefined)))
    if (asItIs !== undefined) return asItIs
    const opened = yield* open.pipe(
      Effect.catchTag(["SessionStoreError", "TokenCountError"], (error) => Effect.fail(aiError(method, error)))
    )
    return yield* shrinkOpened(all, call, opened)
  }).pipe(Effect.scoped, call.beginning.turn.withPermit)
