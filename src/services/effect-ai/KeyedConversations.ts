/**
 * The conversations that callers named (`withConversation`). Each is stored in sessions, from which handles and
 * compressions are restored, so that forgetting one costs only time. A caller that changes the beginning of
 * a history starts another session under the same key.
 */

import { Effect, Exit, Schedule, Scope, Semaphore } from "effect"
import type * as Prompt from "effect/ai/Prompt"
import { type Handle, matches } from "../../domain/content/Handle.ts"
import { empty, entries } from "../../domain/conversation/Conversation.ts"
import type { Selection } from "../../domain/conversation/Excerpt.ts"
import { recall as recallFrom } from "../../domain/conversation/Recall.ts"
import type { RecallSearch } from "../../domain/conversation/RecallSearch.ts"
import { applyEvents, emptySession, recallableOf, type Session } from "../../domain/session/Session.ts"
import type { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { knownConversation } from "../conversation/KnownConversation.ts"
import { nothingCounted } from "../conversation/KnownConversations.ts"
import { beginSession, type OpenedSession, openSession } from "../session/OpenedSession.ts"
import { idOfKey, SessionStore, type SessionStoreError } from "../session/SessionStore.ts"
import { HandleNotHeld, searchHidden, select, TempStoreError } from "../session/TempStore.ts"
import {
  countUpTo,
  lastLine,
  type PromptCall,
  type PromptConversations,
  type PromptView,
  viewOf
} from "./PromptConversations.ts"
import { hashesOf } from "./PromptNames.ts"

/** One conversation with a key. */
export interface KeyedConversation {
  /** The id of its first session; later ones have a number behind it. */
  readonly id: string
  /** Held while its sessions are read or written. */
  readonly turn: Semaphore.Semaphore
  /** How many sessions it has; undefined until the store was asked. */
  sessions: number | undefined
}

/** The conversations with a key of one language model, those that were used last. */
export type KeyedConversations = BoundedMap<string, KeyedConversation>

/** Finds the conversation with this key. */
export const keyedConversation = (all: KeyedConversations, key: string): KeyedConversation => {
  const found = all.get(key) ?? { id: idOfKey(key), turn: Semaphore.makeUnsafe(1), sessions: undefined }
  all.set(key, found)
  return found
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

const exists = (conversation: KeyedConversation, number: number) =>
  SessionStore.use((store) => Effect.as(store.summary(sessionId(conversation, number)), true)).pipe(
    Effect.catchReason("SessionStoreError", "SessionNotFound", () => Effect.succeed(false))
  )

/** The number of sessions that a conversation has. Another process may have begun one since it was last asked. */
const countSessions = Effect.fnUntraced(function* (conversation: KeyedConversation) {
  let last = conversation.sessions ?? 0
  while (yield* exists(conversation, last + 1)) last += 1
  return last
})

/**
 * Goes through the sessions of a conversation, the newest first, until `read` returns something. That session stays open until the scope closes; the
 * others are closed at once. Needs the conversation's `turn`.
 */
export const firstSession = Effect.fnUntraced(function* <A, E, R>(
  conversation: KeyedConversation,
  read: (opened: OpenedSession) => Effect.Effect<A | undefined, E, R>
) {
  const last = yield* countSessions(conversation)
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

/** The view that a session records, if it is one of this prompt: the prompt begins with the messages that the session holds. */
const recordedView = Effect.fnUntraced(function* (
  { names, window }: PromptConversations,
  session: Session,
  content: ReadonlyArray<Prompt.Message>
) {
  const held = entries(session.conversation)
  const messages = lastLine(held)
  if (messages === 0 || messages > content.length) return undefined
  const turns = content.slice(0, messages).filter(({ role }) => role !== "system")
  if (turns.length !== held.length) return undefined
  for (const { handles, origin } of held) {
    const message = content[(origin?.line ?? 0) - 1]
    const hashes = message === undefined ? [] : yield* hashesOf(names, message)
    const isSame =
      hashes.length === handles.length &&
      hashes.every((hash, index) => {
        const handle = handles[index]
        return handle !== undefined && matches(handle, hash)
      })
    if (!isSame) return undefined
  }
  return viewOf(session, content, yield* countUpTo(window, nothingCounted, content, messages), true)
})

const isUnchanged = (before: PromptView | undefined, { conversation, started }: Session): boolean =>
  before?.stored?.session === started?.session && before?.stored?.version === conversation.version

/** Reads the view that is stored of a prompt, if this process does not know the conversation yet. */
export const readRecorded = (
  prompts: PromptConversations,
  conversation: KeyedConversation,
  content: ReadonlyArray<Prompt.Message>
) =>
  conversation.sessions !== undefined
    ? Effect.undefined
    : Effect.gen(function* () {
        const sessions = yield* countSessions(conversation)
        const view = yield* firstAnswer(conversation, (session) => recordedView(prompts, session, content))
        conversation.sessions = sessions
        return view
      }).pipe(conversation.turn.withPermit)

/** Opens the session of a prompt, or begins another one. What another process recorded counts, because the session begins with it. */
export const openKeyed = Effect.fnUntraced(function* (
  prompts: PromptConversations,
  conversation: KeyedConversation,
  { beginning, content }: PromptCall
) {
  yield* conversation.turn.takeScoped(1)
  const before = beginning.view
  const recorded = yield* firstSession(conversation, ({ log, session }) => {
    const view = isUnchanged(before, session) ? Effect.succeed(before) : recordedView(prompts, session, content)
    return Effect.map(view, (found) => found && { known: knownConversation(session), log, view: found })
  })
  const { known, log, view } = recorded ?? (yield* beginNumbered(conversation, prompts.window.name))
  return { view, known, append: log.append, naming: undefined }
})

const beginNumbered = Effect.fnUntraced(function* (conversation: KeyedConversation, model: string | undefined) {
  const number = (conversation.sessions ?? 0) + 1
  const { log, session } = yield* beginSession(sessionId(conversation, number), { model })
  conversation.sessions = number
  return { known: knownConversation(session), log, view: undefined }
})

const unknownHandle = (handle: Handle) =>
  new TempStoreError({ reason: new HandleNotHeld({ name: handle, advice: "copy a handle exactly as it is shown" }) })

/**
 * Reads the sessions of a conversation, the newest first, until one has an answer. None is opened: it may be held by another process, or by a
 * compression that waits for a model.
 */
const firstAnswer = Effect.fnUntraced(function* <A, E, R>(
  conversation: KeyedConversation,
  read: (session: Session) => Effect.Effect<A | undefined, E, R>
) {
  const store = yield* SessionStore
  for (let number = yield* countSessions(conversation); number >= 1; number -= 1) {
    const events = yield* store
      .events(sessionId(conversation, number))
      .pipe(Effect.catchReason("SessionStoreError", "SessionNotFound", () => Effect.succeed(undefined)))
    const found = events === undefined ? undefined : yield* read(applyEvents(emptySession, events))
    if (found !== undefined) return found
  }
  return undefined
})

/** Reads the text behind a handle from the sessions of a conversation. */
export const recall = Effect.fnUntraced(function* (
  all: KeyedConversations,
  key: string,
  handle: Handle,
  selection: Selection = {}
) {
  const text = yield* firstAnswer(keyedConversation(all, key), (session) =>
    Effect.sync(() => recallFrom(recallableOf(session), handle)?.text)
  )
  return text === undefined ? yield* unknownHandle(handle) : yield* select(text, selection)
})

/** Searches what left the prompts of a conversation, in its latest session. */
export const search = Effect.fnUntraced(function* (all: KeyedConversations, key: string, request: RecallSearch) {
  const found = yield* firstAnswer(keyedConversation(all, key), ({ conversation }) =>
    searchHidden(conversation, request)
  )
  return found ?? (yield* searchHidden(empty, request))
})
