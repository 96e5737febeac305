/** The chat of `effect/ai` over a stored session, compressed before its window is full. */

import { Context, Effect, Layer, Predicate, Ref, type Scope, Semaphore, Stream } from "effect"
import type * as AiError from "effect/ai/AiError"
import * as AiChat from "effect/ai/Chat"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type { Outcome } from "../../domain/compression/Compression.ts"
import { valueCheck } from "../../domain/compression/InvalidOption.ts"
import { type Policy } from "../../domain/compression/strategies/Policy.ts"
import { type Patch, viewTokens } from "../../domain/conversation/Conversation.ts"
import { requestMark } from "../../domain/conversation/FailureMemory.ts"
import { isUnchanged, repaired } from "../../domain/effect-ai/PromptRepair.ts"
import type { Session } from "../../domain/session/Session.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import type { Chat } from "../chat/Chat.ts"
import type { ChatBusy } from "../chat/Commit.ts"
import type { Compression } from "../compression/Compression.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import { beginSession, openSession } from "../session/OpenedSession.ts"
import type { SessionStore, SessionStoreError } from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { Calibrations } from "../tokens/Calibrations.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { isSystem } from "./ChatHistory.ts"
import { type Call, type GuardedCalls, guardMethods, type ReadyCall, type StreamCall } from "./GuardedCalls.ts"
import {
  aiError,
  type CallOptions,
  countMessage,
  type Declarations,
  declarationsOf,
  fit,
  invalidInput,
  make as makeWindow,
  noDeclarations,
  type PromptWindow,
  type WindowOptions
} from "./PromptWindow.ts"
import { Recall } from "./RecallTool.ts"
import { messagesOf, open, record, type RecordedChat, refresh, refreshIfChanged } from "./RecordedChat.ts"

/** The conversation, and how its prompts are kept within the window. */
export interface Options extends WindowOptions {
  /** The session that holds the conversation. An unknown id begins a new one. */
  readonly session: string
  /** The messages at the start of a new conversation. For an existing one only the leading system messages are used. */
  readonly prompt?: Prompt.RawInput | undefined
}

type Requirements = SessionStore | Compression | HookSystem | TokenCounter | TempStore | Calibrations

type Model = LanguageModel.LanguageModel

/** A call that is ready to be made, and the history it is made from. */
interface ReadyTurn extends ReadyCall {
  readonly history: Prompt.Prompt
}

/** Whether a patch only removes messages: the caller changed the history. Later messages may be answers to removed ones. */
const isEdit = ({ drop, insert }: Patch): boolean => drop !== undefined && insert.length === 0

/**
 * `effect/ai`'s `Chat` over a stored session. Use it like any other chat.
 *
 * *Details*: the history is compressed before a call if necessary; `history` and the exports hold the compressed history. Nothing is lost: all
 * messages stay in the session, can be recalled, and a compression can be undone. A call whose result is missing after an interruption is answered
 * before the next request. The caller may change the history: messages removed from it leave the view, and `undo` brings them back.
 *
 * **Example** (Holding a chat of effect/ai whose compressions can be undone)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Chat } from "effect/ai"
 * import { CompressedChat, Palimpsest } from "palimpsest"
 * import { ScriptedLanguageModel } from "palimpsest/testing"
 *
 * const Bridge = CompressedChat.CompressedChat.layer({ session: "bridge", window: 8_000 }).pipe(
 *   Layer.provide(Palimpsest.layer())
 * )
 * const program = Effect.gen(function* () {
 *   const chat = yield* Chat.Chat
 *   const { text } = yield* chat.generateText({ prompt: "When was it built?" })
 *   console.log(text, yield* (yield* CompressedChat.CompressedChat).undo) // => In 1743. false
 * })
 * await Effect.runPromise(program.pipe(Effect.provide([Bridge, ScriptedLanguageModel.layer(["In 1743."])])))
 * ```
 */
export class CompressedChat extends Context.Service<
  CompressedChat,
  AiChat.Chat & {
    readonly session: Effect.Effect<Session>
    /** Returns the text behind a handle, exactly, or the requested part of it. */
    readonly recall: Recall["Service"]["recall"]
    /** Searches everything that left the history. */
    readonly search: Chat["Service"]["search"]
    /** Compresses now, even below the threshold. */
    readonly compress: (policy?: WindowOptions["policy"]) => Effect.Effect<Outcome, AiError.AiError>
    /** Undoes the last compression, or the caller's last change of the history. Returns false if there is none. */
    readonly undo: Effect.Effect<boolean, AiError.AiError>
    /** Redoes the compression that was undone last. A change by the caller is not redone. Returns false if there is none. */
    readonly redo: Effect.Effect<boolean, AiError.AiError>
  }
>()("palimpsest/services/effect-ai/CompressedChat") {
  /** Opens the chat of one session. The session stays open, and locked against other processes, until the scope closes. */
  static readonly make = Effect.fnUntraced(function* (
    options: Options
  ): Effect.fn.Return<CompressedChat["Service"], SessionStoreError | AiError.AiError, Requirements | Scope.Scope> {
    const context = yield* Effect.context<Requirements>()
    const window = yield* Effect.mapError(makeWindow(options), ({ message }) => invalidInput("make", message))
    const problem = valueCheck(Predicate.isString, "the id of a session")("session", options.session)
    if (problem !== undefined) return yield* invalidInput("make", problem)
    // An unknown id begins a new session.
    const opened = yield* openSession(options.session).pipe(
      Effect.catchReason("SessionStoreError", "SessionNotFound", () =>
        beginSession(options.session, { model: window.name })
      )
    )
    const recorded = yield* open(opened, Prompt.make(options.prompt ?? []).content).pipe(
      Effect.mapError(({ message }) => invalidInput("make", message))
    )
    const chat: GuardedChat = { window, recorded, context, turn: yield* Semaphore.make(1) }
    const { base } = recorded
    const calls: GuardedCalls<ReadyTurn> = {
      window,
      prepare: (method, options) => prepare(chat, method, options),
      restore: ({ history }) => Ref.set(base.history, history)
    }
    yield* provided(chat, "make", record(recorded))

    return {
      ...guardMethods<ReadyTurn, Model, AiChat.Chat>(calls, base, {
        call: (ask) => aloneCall(chat, ask),
        stream: (ask) => aloneStream(chat, ask)
      }),
      session: Effect.suspend(() => recorded.chat.session),
      recall: (handle, selection) => Effect.suspend(() => recorded.chat.recall(handle, selection)),
      search: (request) => Effect.suspend(() => recorded.chat.search(request)),
      compress: (policy) => chat.turn.withPermit(compressNow(chat, policy)),
      undo: change(chat, "undo", () => recorded.chat.undo),
      redo: change(chat, "redo", () => redo(recorded))
    }
  })

  /** Provides the chat as `effect/ai`'s `Chat`, as `CompressedChat`, and as `Recall` for the tool. */
  static readonly layer = (
    options: Options
  ): Layer.Layer<CompressedChat | AiChat.Chat | Recall, SessionStoreError | AiError.AiError, Requirements> =>
    Layer.effectContext(
      Effect.map(CompressedChat.make(options), (chat) =>
        Context.make(CompressedChat, chat).pipe(
          Context.add(AiChat.Chat, chat),
          Context.add(Recall, { recall: chat.recall, search: chat.search })
        )
      )
    )
}

/** A chat whose requests are made to fit. */
interface GuardedChat {
  readonly window: PromptWindow
  readonly recorded: RecordedChat
  readonly context: Context.Context<Requirements>
  /** Held by the one call or change in progress. */
  readonly turn: Semaphore.Semaphore
}

/** Provides the services that the chat was opened with. */
const provided = <A, E extends { readonly message: string }>(
  { context }: GuardedChat,
  method: string,
  effect: Effect.Effect<A, E, Requirements>
) =>
  effect.pipe(
    Effect.provideContext(context),
    Effect.mapError((error) => aiError(method, error))
  )

/** Compresses the session. Whatever the outcome, the history then equals the session's view. */
const compress = (chat: GuardedChat, method: string, policy: Policy, forced: boolean) =>
  provided(chat, method, chat.recorded.chat.compress({ policy, forced })).pipe(
    Effect.ensuring(refreshIfChanged(chat.recorded))
  )

/** Estimated tokens of messages that no compression removes, and of the declarations. */
const overheadOf = Effect.fnUntraced(function* (
  window: PromptWindow,
  messages: ReadonlyArray<Prompt.Message>,
  declared: Declarations
) {
  let { tokens } = declared
  for (const message of messages) tokens += yield* countMessage(window, message)
  return TokenCount.make(Math.ceil(tokens))
})

/** The last measurement, which is only valid for a request that contains all of it. */
const measuredOf = (
  { measured }: RecordedChat,
  messages: ReadonlyArray<Prompt.Message>,
  declared: Declarations
): RecordedChat["measured"] =>
  measured?.declarationTokens === declared.tokens && measured.messages.every((message, at) => message === messages[at])
    ? measured
    : undefined

/** Repairs the history and the prompt of a call if they do not form a legal request together. Returns the prompt. */
const repairedPrompt = Effect.fnUntraced(function* (recorded: RecordedChat, prompt: Prompt.Prompt) {
  const before = yield* messagesOf(recorded)
  const both = [...before, ...prompt.content]
  const legal = repaired(both)
  if (isUnchanged(legal, both)) return prompt
  yield* Ref.set(recorded.base.history, Prompt.fromMessages(legal.slice(0, before.length).flat()))
  return Prompt.fromMessages(legal.slice(before.length).flat())
})

/** Prepares a call: its history is legal, in the session, and small enough. */
const prepare = Effect.fnUntraced(function* (chat: GuardedChat, method: string, options: CallOptions) {
  const { recorded, window } = chat
  const declared = yield* declarationsOf(window, options)
  const callOptions = declared.toolkit === undefined ? options : { ...options, toolkit: declared.toolkit }
  const prompt = yield* repairedPrompt(recorded, Prompt.make(options.prompt))
  yield* provided(chat, method, record(recorded))
  const systems = (yield* messagesOf(recorded)).filter(isSystem)
  const overhead = yield* overheadOf(window, [...systems, ...prompt.content], declared)
  const request = Effect.gen(function* () {
    const { conversation } = yield* recorded.chat.session
    const messages = [...(yield* messagesOf(recorded)), ...prompt.content]
    return { messages, tokens: overhead + viewTokens(conversation) }
  })
  let { messages, tokens } = yield* request
  if (!window.guard.isSmall(tokens, measuredOf(recorded, messages, declared))) {
    const { memory } = yield* recorded.chat.session
    const fitting = yield* fit(
      window,
      method,
      { request, compress: (policy, forced) => compress(chat, method, { ...policy, overhead }, forced) },
      declared,
      requestMark(memory, overhead)
    )
    messages = [...fitting.messages]
    recorded.measured = { ...fitting.measured, messages, declarationTokens: declared.tokens }
  }
  return {
    callOptions,
    options: { ...callOptions, prompt },
    history: yield* Ref.get(recorded.base.history),
    messages,
    declared
  }
})

/**
 * Records the changes that a call made to the history. Changes that cannot be recorded now are recorded with the next
 * call.
 */
const recordAfter = (chat: GuardedChat) =>
  Effect.ignore(provided(chat, "record", record(chat.recorded)), {
    log: "Warn",
    message: "a chat could not be written to its session yet"
  })

/** Makes a method wait for the call or change in progress, and records its changes. */
const aloneCall =
  (chat: GuardedChat, ask: Call<Model>): Call<Model> =>
  (options) =>
    chat.turn.withPermit(Effect.ensuring(ask(options), recordAfter(chat)))

const aloneStream =
  (chat: GuardedChat, ask: StreamCall<Model>): StreamCall<Model> =>
  (options) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const { turn } = chat
        yield* turn.takeScoped(1)
        yield* Effect.addFinalizer(() => recordAfter(chat))
        return ask(options)
      })
    )

const compressNow = Effect.fnUntraced(function* (chat: GuardedChat, policy: WindowOptions["policy"]) {
  const { recorded, window } = chat
  yield* provided(chat, "compress", record(recorded))
  const overhead = yield* overheadOf(window, (yield* messagesOf(recorded)).filter(isSystem), noDeclarations)
  const fullPolicy = { ...window.guard.policy(window.guard.maxRequestTokens), ...policy, overhead }
  return yield* compress(chat, "compress", fullPolicy, true)
})

const change = (chat: GuardedChat, method: string, work: () => Effect.Effect<boolean, ChatBusy | SessionStoreError>) =>
  chat.turn.withPermit(
    Effect.andThen(
      provided(chat, method, record(chat.recorded)),
      Effect.ensuring(provided(chat, method, Effect.suspend(work)), refresh(chat.recorded))
    )
  )

/** Redoes a compression, but no change by the caller. */
const redo = ({ chat }: RecordedChat) =>
  Effect.flatMap(chat.session, ({ conversation: { redoable } }) =>
    redoable === undefined || isEdit(redoable.value) ? Effect.succeed(false) : chat.redo
  )
