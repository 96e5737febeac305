import { Clock, type Context, Data, Effect, type Scope, Semaphore } from "effect"
import type * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import { type Outcome, patchOf } from "../../domain/compression/Compression.ts"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import { handleOf, type Hash } from "../../domain/content/Handle.ts"
import { arrangedMessages, type MessageRange } from "../../domain/conversation/ArrangedMessages.ts"
import { type Conversation, entries, type Entry, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { retryFrom } from "../../domain/conversation/FailureMemory.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import { awaitedFrom, isLegal, repaired } from "../../domain/effect-ai/PromptRepair.ts"
import { applyEvent, emptySession, type Session, type SessionEvent, startedWith } from "../../domain/session/Session.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { Chat } from "../chat/Chat.ts"
import type { Compression } from "../compression/Compression.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import { RangeName, type RangeNaming } from "../session/EntryBuilder.ts"
import type { OpenedSession } from "../session/OpenedSession.ts"
import type { SessionStore } from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { Calibrations } from "../tokens/Calibrations.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { beginNumbered, firstSession, type HashesOf, type KeyedConversation } from "./KeyedConversations.ts"
import { itemMessages } from "./LanguageModelBridge.ts"
import {
  catchUp,
  type Head,
  type Mark,
  marked,
  namesOf,
  noMark,
  type Place,
  type PromptMemory,
  remember,
  stored
} from "./PromptMemory.ts"
import { aiError, type Declarations, fit, type PromptWindow } from "./PromptWindow.ts"

/**
 * Compresses a prompt until it fits, for a caller that keeps the history, and remembers the outcome.
 *
 * One file: reading a stored session and compressing anew share the state of one prompt.
 */

/** The services that a compression needs. */
export type Requirements = Compression | HookSystem | TokenCounter | TempStore | SessionStore | Calibrations

/** One language model whose prompts are made to fit, and the conversations that it has seen. */
export interface BoundedModel {
  readonly window: PromptWindow
  readonly memory: PromptMemory
  readonly context: Context.Context<Requirements>
  /** Where the conversation is stored. Undefined: it has no key, and exists only in its caller's history. */
  readonly recording: KeyedConversation | undefined
}

type Messages = ReadonlyArray<Prompt.Message>

/** Estimated tokens of a prompt as it is sent. */
export const tokensOf = ({ head, mark: { spoken, system } }: Place): number =>
  system + spoken + (head === undefined ? 0 : head.tokens - head.mark.spoken)

/** The messages sent for a prompt: replacements for those that left, then the caller's own messages. */
export const sentOf = ({ mark: { standing } }: Place, head: Head | undefined, content: Messages): Messages => {
  const sent =
    head?.items === undefined
      ? content
      : [
          ...head.items.flatMap((item) => (typeof item === "number" ? (content[item] ?? []) : [item])),
          ...content.slice(head.at)
        ]
  return isLegal(standing) ? sent : repaired(sent).flat()
}

/** The session id of a conversation whose history the caller keeps. */
const sessionName = "effect-ai"

/** The index of an entry's message in the prompt; -1 for an entry that a compression inserted. */
const indexOf = (entry: Entry): number => (entry.origin?.line ?? 0) - 1

/** The number of messages up to the last of these entries that is a message of the prompt. */
const lastLine = (dropped: ReadonlyArray<Entry>): number =>
  dropped.reduce((last, { origin }) => Math.max(last, origin?.line ?? 0), 0)

/** The number of messages up to the last that left the view. */
const goneFrom = (conversation: Conversation): number => {
  const shown = new Set(view(conversation).map(({ entry }) => entry))
  return lastLine(entries(conversation).filter((entry) => !shown.has(entry)))
}

const isSystem = (message: Prompt.Message | undefined): boolean => message?.role === "system"

/** Where the messages of a prompt stand that are entries of a conversation. */
const rangesOf = (content: Messages): ReadonlyArray<MessageRange | undefined> =>
  content.map((message, at) => (isSystem(message) ? undefined : { from: at, to: at + 1 }))

/** The items sent for the first `at` messages, by the view of the session. */
const itemsOf = (conversation: Conversation, content: Messages, at: number): ReadonlyArray<number | Prompt.Message> =>
  arrangedMessages(conversation, rangesOf(content.slice(0, at)), at).flatMap(
    (item): ReadonlyArray<number | Prompt.Message> => (typeof item === "number" ? [item] : itemMessages(item))
  )

/** Adds messages of a prompt to a session. */
const withMessages = Effect.fnUntraced(function* (chat: Chat["Service"], content: Messages, from: number, end: number) {
  for (let at = from; at < end; at += 1) {
    const message = content[at]
    if (message === undefined || message.role === "system") continue
    yield* chat.append([{ content: toContent(message), origin: { line: at + 1, ids: [] } }])
  }
})

/** Extends a session with these messages of a prompt. */
const grown = Effect.fnUntraced(function* (session: Session, content: Messages, from: number, end: number) {
  if (end <= from) return session
  const chat = yield* Chat.keep({ log: { append: () => Effect.void }, session })
  yield* withMessages(chat, content, from, end)
  return yield* chat.session
})

/** A session without messages. */
const newSession = (model: string | undefined) =>
  model === undefined
    ? Effect.succeed(emptySession)
    : Effect.map(Clock.currentTimeMillis, (at) => applyEvent(emptySession, startedWith({ model }, sessionName, at)))

/** The session behind a compression: still in memory, or rebuilt from the history and the events of compressions. */
const sessionOf = Effect.fnUntraced(function* (
  { memory, window }: BoundedModel,
  head: Head | undefined,
  content: Messages
) {
  const held = head === undefined ? undefined : memory.sessions.get(head)
  if (held !== undefined) return held
  let session = yield* newSession(window.name)
  let from = 0
  for (const { at, event } of PersistentList.toArray(head?.events)) {
    session = applyEvent(yield* grown(session, content, from, at), event)
    from = at
  }
  // A compression that changed nothing left no event, but the session contains the messages it saw.
  return yield* grown(session, content, from, head?.at ?? 0)
})

/** A prompt that may have to be compressed, and the call that sends it. */
export interface PromptCall {
  readonly model: BoundedModel
  readonly method: string
  readonly place: Place
  readonly content: Messages
  readonly declared: Declarations
}

/** A compression of one prompt, in progress. */
interface Shrinking extends PromptCall {
  /** The names of the prompt's beginnings. */
  readonly beginnings: ReadonlyArray<Hash>
  /** The compression of this conversation so far. */
  readonly began: Head | undefined
  /** The number of messages that are compressed, and their sums. */
  readonly end: number
  readonly mark: Mark
  /** Estimated tokens of the rest of the request. */
  readonly overhead: TokenCount
  /** The conversation, once something is compressed. */
  chat: Chat["Service"] | undefined
  session: Session | undefined
  head: Head | undefined
  events: Head["events"]
  /** The session that the store holds. */
  readonly opened: OpenedSession | undefined
}

const beginShrinking = Effect.fnUntraced(function* (
  call: PromptCall,
  opened: OpenedSession | undefined
): Effect.fn.Return<Shrinking, AiError.AiError> {
  const { content, declared, model, place } = call
  const { count, names } = model.memory
  const began = place.head
  const from = began?.at ?? 0
  // Messages that `effect/ai` still has to process are sent unchanged.
  const end = Math.max(from, awaitedFrom(content))
  const mark = yield* marked(count, began?.mark ?? noMark, content.slice(from, end))
  const rest = place.mark.system + declared.tokens + place.mark.spoken - mark.spoken
  return {
    ...call,
    beginnings: yield* namesOf(names, content),
    began,
    end,
    mark,
    overhead: TokenCount.make(Math.ceil(rest)),
    chat: undefined,
    session: undefined,
    head: began,
    events: began?.events,
    opened
  }
})

/** Returns the log of the compression: the session in the store, or `events` for a conversation without a key. */
const logOf = Effect.fnUntraced(function* (shrinking: Shrinking) {
  const { began, content, end, model, opened } = shrinking
  const { recording, window } = model
  if (recording !== undefined) return opened ?? (yield* beginNumbered(recording, window.name))
  const append = (event: SessionEvent) =>
    Effect.sync(() => {
      if (event._tag === "Appended") return
      shrinking.events = PersistentList.append(shrinking.events, { at: end, event }, 0)
    })
  return { log: { append }, session: yield* sessionOf(model, began, content) }
})

/** Opens the conversation up to `end`. */
const openChat = Effect.fnUntraced(function* (shrinking: Shrinking) {
  const { began, content, end } = shrinking
  const chat = yield* Chat.keep(yield* logOf(shrinking))
  yield* withMessages(chat, content, began?.at ?? 0, end)
  return chat
})

/** Names a removed range by the beginning of the conversation that it ends, so that its text can be rebuilt from any history. */
const rangeNaming =
  (beginnings: ReadonlyArray<Hash>, { conversation }: Session): RangeNaming =>
  (dropped) => {
    const name = beginnings[Math.max(goneFrom(conversation), lastLine(dropped)) - 1]
    return name === undefined ? undefined : handleOf(name)
  }

const storedAt = (started: Session["started"], { version }: Conversation): Head["stored"] => ({
  session: started?.session ?? "",
  version
})

/** The replacement for the compressed messages after a compression. */
const nextHead = (
  { content, end, events, head, mark, model, overhead }: Shrinking,
  { conversation, memory: { waitUntil }, started }: Session,
  isPatched: boolean
): Head => {
  const tokens = viewTokens(conversation)
  // The mark counts the view only; the rest of the request is added.
  const waiting = waitUntil === 0 ? 0 : waitUntil + overhead
  return {
    at: end,
    mark,
    items: isPatched || head?.items !== undefined ? itemsOf(conversation, content, end) : undefined,
    tokens,
    waiting: isPatched ? waiting : retryFrom(overhead + tokens),
    events,
    stored: model.recording === undefined ? undefined : storedAt(started, conversation)
  }
}

const compressOnce = Effect.fnUntraced(function* (shrinking: Shrinking, policy: Policy, forced: boolean) {
  const { beginnings, model, overhead } = shrinking
  const chat = (shrinking.chat ??= yield* openChat(shrinking))
  const compressing = chat.compress({ policy: { ...policy, overhead }, forced })
  const outcome: Outcome = yield* model.recording === undefined
    ? Effect.provideService(compressing, RangeName, rangeNaming(beginnings, yield* chat.session))
    : compressing
  shrinking.session = yield* chat.session
  shrinking.head = nextHead(shrinking, shrinking.session, patchOf(outcome) !== undefined)
  return outcome
})

const rememberHead = ({ beginnings, end, head, model, place, session }: Shrinking): void => {
  if (head === undefined || session === undefined) return
  remember(model.memory, place, head, model.recording === undefined ? session : stored, beginnings[end - 1])
}

/** The compression that a session records, if it is one of this prompt: the prompt begins with the messages that the session holds. */
const recordedHead = Effect.fnUntraced(function* (
  { memory }: BoundedModel,
  hashesOf: HashesOf,
  { conversation, memory: { waitUntil }, started }: Session,
  content: Messages,
  known: Head | undefined
): Effect.fn.Return<Head | undefined, AiError.AiError> {
  const stored = storedAt(started, conversation)
  // Unchanged since this prompt, or a beginning of it, was compressed.
  if (known?.stored?.session === stored?.session && known?.stored?.version === stored?.version) return known
  const held = entries(conversation).filter((entry) => entry.origin !== undefined)
  const at = lastLine(held)
  if (at === 0 || at > content.length) return undefined
  const spoken = content.slice(0, at).filter((message) => !isSystem(message))
  if (spoken.length !== held.length) return undefined
  for (const entry of held) {
    const message = content[indexOf(entry)]
    const hashes = message === undefined ? [] : yield* hashesOf(message)
    const { handles } = entry
    const isSame =
      hashes.length === handles.length &&
      hashes.every((hash, index) => hash.startsWith(handles[index]?.slice(2) ?? "-"))
    if (!isSame) return undefined
  }
  return {
    at,
    mark: yield* marked(memory.count, noMark, content.slice(0, at)),
    items: itemsOf(conversation, content, at),
    tokens: viewTokens(conversation),
    waiting: waitUntil,
    events: undefined,
    stored
  }
})

/** Opens the stored session of a prompt, and returns its compression. */
const openRecorded = Effect.fnUntraced(function* (
  model: BoundedModel,
  recording: KeyedConversation,
  content: Messages,
  known: Head | undefined
) {
  return yield* firstSession(recording, (opened) =>
    Effect.map(recordedHead(model, recording.hashesOf, opened.session, content, known), (head) =>
      head === undefined ? undefined : { head, opened }
    )
  )
})

/** Reads the stored compression of a conversation, if this process has not seen the conversation yet. */
export const readRecorded = Effect.fnUntraced(
  function* (model: BoundedModel, recording: KeyedConversation, content: Messages) {
    if (recording.sessions !== undefined) return
    const recorded = yield* openRecorded(model, recording, content, undefined)
    if (recorded === undefined) return
    const { head } = recorded
    const name = (yield* namesOf(model.memory.names, content))[head.at - 1]
    if (name === undefined) return
    const { at, mark } = head
    const place: Place = { name, length: at, mark, head, measured: undefined, turn: Semaphore.makeUnsafe(1) }
    remember(model.memory, place, head, stored, name)
  },
  Effect.scoped,
  Effect.mapError((error) => aiError("open", error))
)

/** The prompt has to be compressed. */
class CompressionDue extends Data.TaggedError("CompressionDue") {}

/** The request of a prompt with this compression. */
const requestWith = ({ content, declared, place }: PromptCall, head: Head | undefined) => ({
  messages: sentOf(place, head, content),
  tokens: tokensOf({ ...place, head }) + declared.tokens
})

/**
 * Returns the prompt as its last compression left it, if that fits. Undefined if it has to be compressed. Reads no
 * session.
 */
const fitting = Effect.fnUntraced(function* (
  call: PromptCall
): Effect.fn.Return<Messages | undefined, AiError.AiError> {
  const { declared, method, model, place } = call
  const { head } = place
  const fits = yield* fit(
    model.window,
    method,
    { request: Effect.succeed(requestWith(call, head)), compress: () => new CompressionDue() },
    declared,
    head?.waiting ?? 0
  ).pipe(Effect.catchTag("CompressionDue", () => Effect.succeed(undefined)))
  if (fits !== undefined) place.measured = { ...fits.measured, head, declarationTokens: declared.tokens }
  return fits?.messages
})

/** Compresses until the prompt fits, and remembers the outcome. Needs the place's `turn`. */
export const shrink = Effect.fnUntraced(function* (
  call: PromptCall
): Effect.fn.Return<Messages, AiError.AiError, Requirements> {
  const { content, method, model, place } = call
  const { memory, recording } = model
  if (recording === undefined) {
    yield* catchUp(memory, place, content)
    return yield* Effect.scoped(shrinkOpened(call, undefined))
  }
  const asItIs = yield* fitting(call)
  if (asItIs !== undefined) return asItIs
  return yield* Effect.gen(function* () {
    const recorded = yield* Effect.mapError(openRecorded(model, recording, content, place.head), (error) =>
      aiError(method, error)
    )
    // Only what another process recorded counts, because the session begins with what was appended to it.
    place.head = recorded?.head
    return yield* shrinkOpened(call, recorded?.opened)
  }).pipe(Effect.scoped, recording.turn.withPermit)
})

const shrinkOpened = Effect.fnUntraced(function* (
  call: PromptCall,
  opened: OpenedSession | undefined
): Effect.fn.Return<Messages, AiError.AiError, Requirements | Scope.Scope> {
  const { declared, method, model, place } = call
  const shrinking = yield* beginShrinking(call, opened)
  const { measured, messages } = yield* fit(
    model.window,
    method,
    {
      request: Effect.sync(() => requestWith(call, shrinking.head)),
      compress: (policy, forced) =>
        Effect.mapError(compressOnce(shrinking, policy, forced), (error) => aiError(method, error))
    },
    declared,
    shrinking.head?.waiting ?? 0
    // Remembered even if the request is rejected in the end, so that the same compression is not paid for again.
  ).pipe(Effect.tapError(() => Effect.sync(() => rememberHead(shrinking))))
  rememberHead(shrinking)
  place.measured = { ...measured, head: shrinking.head, declarationTokens: declared.tokens }
  return messages
})
