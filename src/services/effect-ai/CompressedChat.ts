import { Clock, Context, Effect, Layer, Ref, type Scope, Semaphore, Stream } from "effect"
import type * as AiError from "effect/ai/AiError"
import * as AiChat from "effect/ai/Chat"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type { Outcome } from "../../domain/compression/Compression.ts"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import { type EntryId, itemTokens, type Patch, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { beginning, follow, isLegal, repaired } from "../../domain/effect-ai/PromptRepair.ts"
import { sharedPrefix } from "../../domain/effect-ai/PromptView.ts"
import {
  emptySession,
  logVersion,
  type Session,
  type SessionEvent,
  type Started,
  applyEvent
} from "../../domain/session/Session.ts"
import { estimatorVersion, TokenCount } from "../../domain/tokens/Tokens.ts"
import { Chat } from "../chat/Chat.ts"
import type { MeasuredRequest } from "../chat/WindowGuard.ts"
import type { Compression } from "../compression/Compression.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import { rangeHandle } from "../session/EntryBuilder.ts"
import { type OpenSession, type SessionLog, SessionStore, type SessionStoreError } from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { Calibrations } from "../tokens/Calibrations.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { isSpoken, isSystem, leadingOf, makeHistory, movedIn, systemsBetween, trailingOf } from "./ChatHistory.ts"
import {
  type Call,
  type CallOptions,
  type StreamCall,
  guardedCalls,
  type Declarations,
  aiError,
  make as makeWindow,
  noDeclarations,
  type ReadyCall,
  type WindowOptions
} from "./PromptWindow.ts"
import { Recall } from "./RecallTool.ts"

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

const begin = Effect.fnUntraced(function* (id: string, model: string | undefined) {
  const store = yield* SessionStore
  const started: Started = {
    _tag: "Started",
    version: logVersion,
    session: id,
    at: yield* Clock.currentTimeMillis,
    estimator: estimatorVersion,
    ...(model === undefined ? {} : { model })
  }
  return { log: yield* store.create(started), session: applyEvent(emptySession, started) }
})

/** Reads a session completely, with everything its store left out. */
const readWhole = (opened: OpenSession) =>
  opened.complete ? Effect.succeed(opened) : Effect.map(opened.log.whole, (session) => ({ log: opened.log, session }))

/**
 * `effect/ai`'s `Chat` over a stored session. Use it like any other chat.
 *
 * *Details*: the history is compressed before a call if necessary; `history` and the exports hold the compressed history. Nothing is lost: all
 * messages stay in the session, can be recalled, and a compression can be undone. A call whose result is missing after an interruption is answered
 * before the next request. The caller may change the history: messages removed from it leave the view, and `undo` brings them back.
 */
export class CompressedChat extends Context.Service<
  CompressedChat,
  AiChat.Chat & {
    readonly session: Effect.Effect<Session>
    /** Returns the text behind a handle, exactly, or the requested part of it. */
    readonly recall: Recall["Service"]["recall"]
    /** Compresses now, whether it is due or not. */
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
    const store = yield* SessionStore
    const window = yield* makeWindow(options)
    const opened: { readonly log: SessionLog; readonly session: Session } = yield* store.open(options.session).pipe(
      Effect.flatMap(readWhole),
      Effect.catchReason("SessionStoreError", "SessionNotFound", () => begin(options.session, window.name))
    )
    const { log } = opened
    const turn = yield* Semaphore.make(1)
    const messages = makeHistory()

    let chat = yield* Chat.keep(opened)
    const first = Prompt.make(options.prompt ?? []).content
    const isNew = opened.session.conversation.log === undefined
    let heldMessages = messages.history(opened.session.conversation, {
      leading: isNew ? [] : leadingOf(first, []),
      isWanted: () => true,
      trailing: []
    })
    /** The version of the conversation that the held history belongs to. */
    let version = opened.session.conversation.version
    let measured:
      | (MeasuredRequest & { readonly messages: ReadonlyArray<Prompt.Message>; readonly beside: number })
      | undefined
    /** The last measurement is only valid for a request that contains all of it. */
    const measuredOf = (messages: ReadonlyArray<Prompt.Message>, declared: Declarations) =>
      measured?.beside === declared.tokens && measured.messages.every((message, at) => message === messages[at])
        ? measured
        : undefined

    const base = yield* AiChat.fromPrompt(
      Prompt.fromMessages(isNew ? first : heldMessages.map(({ message }) => message))
    )
    const current = Effect.map(Ref.get(base.history), ({ content }) => content)

    /** The history that the session's view stands for, with the system messages of the current history. */
    const seen = Effect.gen(function* () {
      const { conversation } = yield* chat.session
      const history = yield* current
      const present = new Set<Prompt.Message>(history)
      version = conversation.version
      measured = undefined
      heldMessages = messages.history(conversation, {
        leading: leadingOf(history, heldMessages),
        isWanted: (message) => present.has(message),
        trailing: trailingOf(history)
      })
    })

    /** Replaces the history by the session's current view. */
    const refresh = Effect.andThen(
      seen,
      Effect.suspend(() => Ref.set(base.history, Prompt.fromMessages(heldMessages.map(({ message }) => message))))
    )

    /** Removes everything from an entry on from the view, because the caller removed it from the history. */
    const cut = Effect.fnUntraced(function* (from: EntryId) {
      const session = yield* chat.session
      const items = view(session.conversation)
      const at = items.findIndex(({ entry }) => entry.id === from)
      const dropped = items.slice(Math.max(0, at)).map(({ entry }) => entry)
      const last = dropped.at(-1)
      if (last === undefined) return
      const before = viewTokens(session.conversation)
      const removed = items.slice(Math.max(0, at)).reduce((sum, item) => sum + itemTokens(item), 0)
      const event: SessionEvent = {
        _tag: "Compressed",
        at: yield* Clock.currentTimeMillis,
        status: "EDITED",
        strategy: "edited",
        trigger: "manual",
        before: TokenCount.make(before),
        after: TokenCount.make(Math.max(0, before - removed)),
        patch: { drop: { from, to: last.id }, insert: [], shorten: [] },
        dropped: yield* rangeHandle(dropped)
      }
      const next = yield* Chat.keep({ log, session: applyEvent(session, event) })
      yield* Effect.uninterruptible(
        Effect.andThen(
          log.append(event),
          Effect.sync(() => {
            chat = next
            for (const entry of dropped) messages.release(entry)
          })
        )
      )
      yield* seen
    })

    /** Records the history in the session. */
    const record = Effect.fnUntraced(function* () {
      if ((yield* chat.session).conversation.version !== version) yield* seen
      const history = yield* current
      const spoken = history.filter(isSpoken)
      const before = systemsBetween(history)
      const held = heldMessages.filter(({ entry }) => entry !== undefined)
      let { shared } = sharedPrefix(
        held.map(({ message }) => message),
        spoken
      )
      // An entry that is two messages is kept or removed as a whole.
      while (shared > 0 && shared < held.length && held[shared]?.entry === held[shared - 1]?.entry) shared -= 1
      const from = held[shared]?.entry
      if (from !== undefined) yield* cut(from)
      const added = yield* chat.append(
        spoken
          .slice(shared)
          .map((message, index) => ({ content: messages.take(message, before[shared + index] ?? []) }))
      )
      let next = 0
      const moved = movedIn(history, heldMessages)
      heldMessages = history.map((message, index) => {
        if (isSystem(message)) return { message, entry: undefined, isMoved: moved.has(index) }
        const at = next
        next += 1
        return { message, entry: at < shared ? held[at]?.entry : added[at - shared]?.id, isMoved: false }
      })
      version = (yield* chat.session).conversation.version
    })

    const ours = <A, E extends { readonly message: string }>(
      method: string,
      effect: Effect.Effect<A, E, Requirements>
    ): Effect.Effect<A, AiError.AiError> =>
      effect.pipe(
        Effect.provideContext(context),
        Effect.mapError((error) => aiError(method, error))
      )

    /** Whatever the outcome, the history then equals the session's view. */
    const compressed = (method: string, policy: Policy, forced: boolean) =>
      ours(method, chat.compress({ policy, forced })).pipe(
        Effect.ensuring(
          Effect.flatMap(chat.session, ({ conversation }) => (conversation.version === version ? Effect.void : refresh))
        )
      )

    const tokensBeside = Effect.fnUntraced(function* (beside: ReadonlyArray<Prompt.Message>, declared: Declarations) {
      let { tokens } = declared
      for (const message of beside) tokens += yield* window.count(message)
      return TokenCount.make(Math.ceil(tokens))
    })

    /** Prepares a call: its history is legal, in the session, and small enough. */
    const prepare = Effect.fnUntraced(function* (
      method: string,
      given: CallOptions
    ): Effect.fn.Return<ReadyTurn, AiError.AiError> {
      const declared = yield* window.declared(given)
      const asked = declared.toolkit === undefined ? given : { ...given, toolkit: declared.toolkit }
      const before = yield* current
      let prompt = Prompt.make(given.prompt)
      const both = [...before, ...prompt.content]
      if (!isLegal(both.reduce(follow, beginning))) {
        const legal = repaired(both)
        yield* Ref.set(base.history, Prompt.fromMessages(legal.slice(0, before.length).flat()))
        prompt = Prompt.fromMessages(legal.slice(before.length).flat())
      }
      yield* ours(method, record())
      const systems = (yield* current).filter(isSystem)
      const overhead = yield* tokensBeside([...systems, ...prompt.content], declared)
      const request = Effect.gen(function* () {
        const { conversation } = yield* chat.session
        return { messages: [...(yield* current), ...prompt.content], tokens: overhead + viewTokens(conversation) }
      })
      let { messages, tokens } = yield* request
      if (!window.guard.isSmall(tokens, measuredOf(messages, declared))) {
        const { memory } = yield* chat.session
        const fitting = yield* window.fit(
          method,
          {
            request,
            compress: (policy, forced) => compressed(method, { ...policy, overhead }, forced)
          },
          declared,
          memory.waitUntil
        )
        messages = [...fitting.messages]
        measured = { ...fitting.measured, messages, beside: declared.tokens }
      }
      return { asked, options: { ...asked, prompt }, history: yield* Ref.get(base.history), messages, declared }
    })

    /** Records what the call left in the history; what is missed is recorded with the next call. */
    const recorded = Effect.ignore(ours("record", record()), {
      log: "Warn",
      message: "a chat could not be written to its session yet"
    })

    const { generate, stream } = guardedCalls(window, prepare, ({ history }) => Ref.set(base.history, history))

    const alone =
      <R>(ask: Call<R>): Call<R> =>
      (given) =>
        turn.withPermit(Effect.ensuring(ask(given), recorded))

    const aloneWhile =
      <R>(ask: StreamCall<R>): StreamCall<R> =>
      (given) =>
        Stream.unwrap(
          Effect.gen(function* () {
            yield* Effect.acquireRelease(turn.take(1), () => turn.release(1), { interruptible: true })
            yield* Effect.addFinalizer(() => recorded)
            return ask(given)
          })
        )

    const change = (method: string, work: Effect.Effect<boolean, AiError.AiError>) =>
      turn.withPermit(
        Effect.gen(function* () {
          yield* ours(method, record())
          return yield* Effect.ensuring(work, refresh)
        })
      )

    yield* ours("make", record())

    // The methods are generic in what the language model resolves, toolkits and schemas, which are passed through unchanged.
    return {
      ...base,
      generateText: alone(
        generate("generateText", base.generateText as unknown as Call<Model>)
      ) as unknown as AiChat.Chat["generateText"],
      generateObject: alone(
        generate("generateObject", base.generateObject as unknown as Call<Model>)
      ) as unknown as AiChat.Chat["generateObject"],
      streamText: aloneWhile(
        stream("streamText", base.streamText as unknown as StreamCall<Model>)
      ) as unknown as AiChat.Chat["streamText"],
      session: Effect.suspend(() => chat.session),
      recall: (handle, selection) => Effect.suspend(() => chat.recall(handle, selection)),
      compress: (policy) =>
        turn.withPermit(
          Effect.gen(function* () {
            yield* ours("compress", record())
            const overhead = yield* tokensBeside((yield* current).filter(isSystem), noDeclarations)
            const requestedPolicy = { ...window.guard.policy(window.guard.maxRequestTokens), ...policy, overhead }
            return yield* compressed("compress", requestedPolicy, true)
          })
        ),
      undo: change(
        "undo",
        Effect.suspend(() => ours("undo", chat.undo))
      ),
      redo: change(
        "redo",
        Effect.flatMap(
          Effect.suspend(() => chat.session),
          ({ conversation: { redoable } }) =>
            redoable === undefined || isEdit(redoable.value) ? Effect.succeed(false) : ours("redo", chat.redo)
        )
      )
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
          Context.add(Recall, { recall: chat.recall })
        )
      )
    )
}
