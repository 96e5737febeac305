/** Keeps the history of an `effect/ai` chat and its session in sync. */

import { Clock, Effect, Ref } from "effect"
import * as AiChat from "effect/ai/Chat"
import * as Prompt from "effect/ai/Prompt"
import { type EntryId, itemTokens, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { applyEvent, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { Chat } from "../chat/Chat.ts"
import type { MeasuredRequest } from "../chat/WindowGuard.ts"
import { rangeHandle } from "../session/EntryBuilder.ts"
import type { SessionLog } from "../session/SessionStore.ts"
import {
  type EntryMessages,
  type HistoryMessage,
  historyOf,
  isDialogue,
  isSystem,
  makeEntryMessages,
  movedIn,
  recordedPrefix,
  releaseEntry,
  systemsOf,
  takeMessage
} from "./ChatHistory.ts"

/** The history of a chat, and the session that holds it. */
export interface RecordedChat {
  readonly log: SessionLog
  readonly made: EntryMessages
  /** The chat with the history as its caller reads and changes it. */
  readonly base: AiChat.Chat
  chat: Chat["Service"]
  /** The history as recorded in the session. */
  held: ReadonlyArray<HistoryMessage>
  /** The version of the conversation that `held` belongs to. */
  version: number
  /** The last measurement of a request, and what it consisted of. */
  measured:
    | (MeasuredRequest & { readonly messages: ReadonlyArray<Prompt.Message>; readonly declarationTokens: number })
    | undefined
}

/** Opens the chat of a session. `first` is the history of a new one; of others only its leading system messages are used. */
export const open = Effect.fnUntraced(function* (
  opened: { readonly log: SessionLog; readonly session: Session },
  first: ReadonlyArray<Prompt.Message>
) {
  const { conversation } = opened.session
  const made = makeEntryMessages()
  const isNew = conversation.log === undefined
  const leading = isNew ? [] : systemsOf(first, []).leading
  const held = historyOf(made, conversation, { leading, keeps: () => true, trailing: [] })
  return {
    log: opened.log,
    made,
    base: yield* AiChat.fromPrompt(Prompt.fromMessages(isNew ? first : held.map(({ message }) => message))),
    chat: yield* Chat.keep(opened),
    held,
    version: conversation.version,
    measured: undefined
  }
})

/** The messages of the history. */
export const messagesOf = ({ base }: RecordedChat) => Effect.map(Ref.get(base.history), ({ content }) => content)

/** Takes over the history that the session's view represents, with the system messages of the current history. */
const follow = Effect.fnUntraced(function* (recorded: RecordedChat) {
  const { conversation } = yield* recorded.chat.session
  const history = yield* messagesOf(recorded)
  const present = new Set<Prompt.Message>(history)
  recorded.version = conversation.version
  recorded.held = historyOf(recorded.made, conversation, {
    ...systemsOf(history, recorded.held),
    keeps: (message) => present.has(message)
  })
})

/** Replaces the history by the session's current view. */
export const refresh = Effect.fnUntraced(function* (recorded: RecordedChat) {
  yield* follow(recorded)
  yield* Ref.set(recorded.base.history, Prompt.fromMessages(recorded.held.map(({ message }) => message)))
})

/** Replaces the history if the session has changed. */
export const refreshIfChanged = Effect.fnUntraced(function* (recorded: RecordedChat) {
  const { conversation } = yield* recorded.chat.session
  if (conversation.version !== recorded.version) yield* refresh(recorded)
})

/** Removes an entry and everything after it from the view, because the caller removed it from the history. */
const cut = Effect.fnUntraced(function* (recorded: RecordedChat, from: EntryId) {
  const { log, made } = recorded
  const session = yield* recorded.chat.session
  const items = view(session.conversation)
  const removed = items.slice(
    Math.max(
      0,
      items.findIndex(({ entry }) => entry.id === from)
    )
  )
  const dropped = removed.map(({ entry }) => entry)
  const last = dropped.at(-1)
  if (last === undefined) return
  const before = viewTokens(session.conversation)
  const event: SessionEvent = {
    _tag: "Compressed",
    at: yield* Clock.currentTimeMillis,
    status: "EDITED",
    strategy: "edited",
    trigger: "manual",
    before: TokenCount.make(before),
    after: TokenCount.make(Math.max(0, before - removed.reduce((sum, item) => sum + itemTokens(item), 0))),
    patch: { drop: { from, to: last.id }, insert: [], shorten: [] },
    dropped: yield* rangeHandle(dropped)
  }
  const next = yield* Chat.keep({ log, session: applyEvent(session, event) })
  yield* Effect.uninterruptible(
    Effect.andThen(
      log.append(event),
      Effect.sync(() => {
        recorded.chat = next
        for (const entry of dropped) releaseEntry(made, entry)
      })
    )
  )
  yield* follow(recorded)
})

/** Records the history in the session. */
export const record = Effect.fnUntraced(function* (recorded: RecordedChat) {
  if ((yield* recorded.chat.session).conversation.version !== recorded.version) yield* follow(recorded)
  const history = yield* messagesOf(recorded)
  const dialogue = history.filter(isDialogue)
  const { between: before } = systemsOf(history, recorded.held)
  const held = recorded.held.filter(({ entry }) => entry !== undefined)
  const shared = recordedPrefix(held, dialogue)
  const from = held[shared]?.entry
  if (from !== undefined) yield* cut(recorded, from)
  const added = yield* recorded.chat.append(
    dialogue
      .slice(shared)
      .map((message, index) => ({ content: takeMessage(recorded.made, message, before[shared + index] ?? []) }))
  )
  let next = 0
  const moved = movedIn(history, recorded.held)
  recorded.held = history.map((message, index) => {
    if (isSystem(message)) return { message, entry: undefined, isMoved: moved.has(index) }
    const at = next
    next += 1
    return { message, entry: at < shared ? held[at]?.entry : added[at - shared]?.id, isMoved: false }
  })
  recorded.version = (yield* recorded.chat.session).conversation.version
})
