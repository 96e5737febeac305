import { Effect, Exit, Schedule, Scope, Semaphore } from "effect"
import type * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import type { Handle, Hash } from "../../domain/content/Handle.ts"
import type { Selection } from "../../domain/conversation/Excerpt.ts"
import type { RecallSearch } from "../../domain/conversation/RecallSearch.ts"
import { Chat } from "../chat/Chat.ts"
import { beginSession, type OpenedSession, openSession } from "../session/OpenedSession.ts"
import { idOfKey, SessionStore, type SessionStoreError } from "../session/SessionStore.ts"
import { HandleNotHeld, search as searchParts, type TempStore, TempStoreError } from "../session/TempStore.ts"
import { make as makeMemory, type PromptMemory } from "./PromptMemory.ts"

/**
 * The conversations that callers named (`withConversation`). Each is stored in sessions, from which handles and
 * compressions are restored, so that dropping one from memory costs only time. A caller that changes the beginning of
 * a history starts another session under the same key.
 */

/** The hashes of a message's parts. */
export type HashesOf = (message: Prompt.Message) => Effect.Effect<ReadonlyArray<Hash>>

/** One conversation with a key. */
export interface KeyedConversation {
  readonly key: string
  /** The id of its first session; later ones have a number behind it. */
  readonly id: string
  readonly memory: PromptMemory
  readonly hashesOf: HashesOf
  /** Held while its sessions are read or written. */
  readonly turn: Semaphore.Semaphore
  /** How many sessions it has; undefined until the store was asked. */
  sessions: number | undefined
  /** Calls in progress. A conversation with any is not dropped from memory. */
  active: number
  /** About how much memory it takes. */
  bytes: number
}

/** All conversations with a key of one language model. */
export interface KeyedConversations {
  readonly held: Map<string, KeyedConversation>
  readonly maxBytes: number
  readonly hash: TempStore["Service"]["hash"]
  readonly hashesOf: HashesOf
  /** Counts a message's tokens. */
  readonly count: (message: Prompt.Message) => Effect.Effect<number, AiError.AiError>
  bytes: number
  isFull: boolean
}

/** Makes an empty collection. */
export const make = (
  how: Pick<KeyedConversations, "count" | "hash" | "hashesOf" | "maxBytes">
): KeyedConversations => ({ ...how, held: new Map(), bytes: 0, isFull: false })

/** What a conversation takes besides its text. */
const baseBytes = 4_096
const bytesPerToken = 4

/** The number of remembered prompts and compressions of one conversation: the latest ones, and some of branches. */
const bounds = { whole: 1, remembered: 4 }

const find = (all: KeyedConversations, key: string): KeyedConversation => {
  const held = all.held.get(key)
  if (held !== undefined) {
    // The most recently used one is last.
    all.held.delete(key)
    all.held.set(key, held)
    return held
  }
  const made: KeyedConversation = {
    key,
    id: idOfKey(key),
    memory: makeMemory({ hash: all.hash, named: new WeakMap() }, all.count, bounds),
    hashesOf: all.hashesOf,
    turn: Semaphore.makeUnsafe(1),
    sessions: undefined,
    active: 0,
    bytes: 0
  }
  all.held.set(key, made)
  return made
}

/** Drops the least recently used conversations from memory until the rest fits. */
const forget = Effect.fnUntraced(function* (all: KeyedConversations) {
  if (all.bytes <= all.maxBytes) return
  if (!all.isFull) {
    all.isFull = true
    yield* Effect.logInfo(
      `the conversations in use take more than ${all.maxBytes} bytes: those used least recently are read from their store when they continue; set the option memory`
    )
  }
  for (const [key, { active, bytes }] of all.held) {
    if (all.bytes <= all.maxBytes) return
    if (active > 0) continue
    all.held.delete(key)
    all.bytes -= bytes
  }
})

/** Uses the conversation with this key, and keeps it in memory meanwhile. */
export const withKeyed = <A, E, R>(
  all: KeyedConversations,
  key: string,
  use: (conversation: KeyedConversation) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const conversation = find(all, key)
      conversation.active += 1
      return conversation
    }),
    use,
    (conversation) =>
      Effect.suspend(() => {
        conversation.active -= 1
        return forget(all)
      })
  )

/** Notes how many tokens a conversation holds. */
export const weigh = (all: KeyedConversations, conversation: KeyedConversation, tokens: number): void => {
  const bytes = baseBytes + tokens * bytesPerToken
  if (all.held.get(conversation.key) === conversation) all.bytes += bytes - conversation.bytes
  conversation.bytes = bytes
}

/** How long another process may hold a session until the call fails, and how often it is asked. */
const lockedRetries = { while: isLocked, schedule: Schedule.spaced("50 millis"), times: 100 }

function isLocked(error: SessionStoreError): boolean {
  return error.reason._tag === "SessionLocked"
}

const sessionId = ({ id }: KeyedConversation, number: number): string => (number === 1 ? id : `${id}-${number}`)

const openNumbered = (conversation: KeyedConversation, number: number) =>
  Effect.retry(openSession(sessionId(conversation, number)), lockedRetries).pipe(
    Effect.catchReason("SessionStoreError", "SessionNotFound", () => Effect.succeed(undefined))
  )

/** Begins another session of a conversation. Needs its `turn`. */
export const beginNumbered = Effect.fnUntraced(function* (conversation: KeyedConversation, model: string | undefined) {
  const number = (conversation.sessions ?? 0) + 1
  const opened = yield* beginSession(sessionId(conversation, number), { model })
  conversation.sessions = number
  return opened
})

const exists = (conversation: KeyedConversation, number: number) =>
  SessionStore.use((store) => Effect.as(store.summary(sessionId(conversation, number)), true)).pipe(
    Effect.catchReason("SessionStoreError", "SessionNotFound", () => Effect.succeed(false))
  )

/**
 * Goes through the sessions of a conversation, the newest first, until `read` returns something. That session stays open until the scope closes; the
 * others are closed at once. Needs the conversation's `turn`.
 */
export const firstSession = Effect.fnUntraced(function* <A, E, R>(
  conversation: KeyedConversation,
  read: (opened: OpenedSession) => Effect.Effect<A | undefined, E, R>
): Effect.fn.Return<A | undefined, E | SessionStoreError, R | SessionStore | Scope.Scope> {
  let last = conversation.sessions ?? 0
  // Another process may have begun one since.
  while (yield* exists(conversation, last + 1)) last += 1
  conversation.sessions = last
  const scope = yield* Effect.scope
  for (let number = last; number >= 1; number -= 1) {
    const own = yield* Scope.fork(scope)
    const opened = yield* Scope.provide(openNumbered(conversation, number), own)
    const found = opened === undefined ? undefined : yield* read(opened)
    if (found !== undefined) return found
    yield* Scope.close(own, Exit.void)
  }
  return undefined
})

const unknownHandle = (handle: Handle) =>
  new TempStoreError({ reason: new HandleNotHeld({ name: handle, advice: "copy a handle exactly as it is shown" }) })

/** Opens the sessions of a conversation as chats, to read from them. */
const firstChat = <A, E, R>(
  all: KeyedConversations,
  key: string,
  read: (chat: Chat["Service"]) => Effect.Effect<A | undefined, E, R>
) =>
  withKeyed(all, key, (conversation) =>
    conversation.turn.withPermit(
      Effect.scoped(firstSession(conversation, (opened) => Effect.flatMap(Chat.keep(opened), read)))
    )
  )

/** Reads the text behind a handle from the sessions of a conversation. */
export const recall = Effect.fnUntraced(function* (
  all: KeyedConversations,
  key: string,
  handle: Handle,
  selection: Selection = {}
) {
  const found = yield* firstChat(all, key, (chat) =>
    chat
      .recall(handle, selection)
      .pipe(Effect.catchReason("TempStoreError", "HandleNotHeld", () => Effect.succeed(undefined)))
  )
  return found ?? (yield* unknownHandle(handle))
})

/** Searches what left the prompts of a conversation, in its latest session. */
export const search = Effect.fnUntraced(function* (all: KeyedConversations, key: string, request: RecallSearch) {
  const found = yield* firstChat(all, key, (chat) => chat.search(request))
  return found ?? (yield* searchParts([], request))
})
