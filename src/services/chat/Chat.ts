/** The service of one conversation: its methods, its settings, and recall from it. */

import { Clock, Context, Deferred, Effect, Layer, Queue, Ref, Scope, Semaphore, Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Decision, Outcome } from "../../domain/compression/Compression.ts"
import { InvalidOption } from "../../domain/compression/InvalidOption.ts"
import { type Content, type Part, text } from "../../domain/content/Content.ts"
import type { Handle } from "../../domain/content/Handle.ts"
import {
  canRedo,
  canUndo,
  type Conversation,
  type Entry,
  type EntryId,
  type Pin
} from "../../domain/conversation/Conversation.ts"
import type { Excerpt, Selection } from "../../domain/conversation/Excerpt.ts"
import type { FoundParts, RecallSearch } from "../../domain/conversation/RecallSearch.ts"
import type { QuestionEvent } from "../../domain/session/CallQuestions.ts"
import type { Session } from "../../domain/session/Session.ts"
import { type SessionTree, sessionTree } from "../../domain/session/SessionTree.ts"
import { Compression } from "../compression/Compression.ts"
import type { PlanRefused } from "../compression/strategies/CompressRequest.ts"
import { ImageReducer } from "../compression/strategies/ImageReducer.ts"
import { textBehind } from "../conversation/KnownConversation.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import { Model, unavailableModel } from "../model/Model.ts"
import { SpanConversation } from "../model/ModelSpans.ts"
import type { BadPattern } from "../platform/Patterns.ts"
import type { IncomingMessage } from "../session/EntryBuilder.ts"
import { closedSession, type SessionStoreError } from "../session/SessionStore.ts"
import { HandleNotHeld, searchHidden, select, TempStore, TempStoreError } from "../session/TempStore.ts"
import { Experiments } from "../settings/Experiments.ts"
import { Calibrations, make as makeCalibrations, noCalibrations } from "../tokens/Calibrations.ts"
import { type TokenCountError, TokenCounter } from "../tokens/TokenCounter.ts"
import { appendMessage, pin } from "./AppendMessages.ts"
import { closeStrategy } from "./AssembleRequest.ts"
import { branch, type BranchOptions, type BranchOutcome, label, type UnknownEntry } from "./Branch.ts"
import { type ChatSettings, settingsProblem } from "./ChatSettings.ts"
import { type ChatOptions, type ChatState, makeState } from "./ChatState.ts"
import { type ChatBusy, commit, exclusively, readWhole } from "./Commit.ts"
import { compress, type CompressOptions, compressRequest } from "./Compress.ts"
import { policyFor } from "./CompressPolicy.ts"
import { type FileChange, keepFile } from "./FileRecords.ts"
import { endPreparation } from "./Preparation.ts"
import { askedModel, requestContext } from "./RequestContext.ts"
import { nextContents, requestSize } from "./RequestSize.ts"
import { failureEvent, runTurn, type SendOptions, type TurnError } from "./Turn.ts"

/** The size of the next request, without its message. */
export interface ChatUsage {
  /** Tokens of the request, as the model counts them as far as that is known. */
  readonly tokens: number
  /** The maximum number of tokens of a request. */
  readonly limit: number
  /** The share of the window that triggers a compression. */
  readonly threshold: number
  /** The number of tokens at which a request is compressed. */
  readonly trigger: number
  /**
   * The model's tokens per estimated token. Undefined: no count of this model is known, and `tokens` is an estimate.
   */
  readonly scale: number | undefined
  /** The snapshot prepared for the next compression: being written, or ready. Undefined when there is none. */
  readonly preparation: "running" | "ready" | undefined
}

/** Takes the services of a conversation from its surroundings, once: later callers need not have them. */
const servicesOf = Effect.fnUntraced(function* ({ log }: ChatOptions) {
  const context = yield* Effect.context<ChatServices>()
  const services = Context.pick(
    Calibrations,
    Compression,
    HookSystem,
    Model,
    TempStore,
    TokenCounter
  )(context).pipe(Context.add(Experiments, yield* Experiments), Context.add(ImageReducer, yield* ImageReducer))
  return log.blobs === undefined ? services : Context.add(services, TempStore, log.blobs)
})

/**
 * A conversation with a model.
 *
 * *When to use*: to hold a conversation that is stored, compressed before it outgrows the model's window, and never
 * lost. Use `Chats` to open many conversations by id, and `CompressedChat` in programs that use `effect/ai`.
 *
 * *Details*: history changes only here. A change first prepares everything that can wait or fail, without any effect
 * on the conversation; then it appends one event to the log and replaces the state, uninterruptibly. Reads never
 * wait. A second change at the same time fails with `ChatBusy`. Token counts use the model's tokenizer.
 *
 * **Example** (Compressing a conversation, and taking it back)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Chats, Content, Palimpsest } from "palimpsest"
 *
 * const drafts = Array.from({ length: 40 }, (_, n) => ({
 *   content: (n % 2 === 0 ? Content.user : Content.model)(
 *     Content.text(`Message ${n}. ${"Of oak. ".repeat(60)}`)
 *   )
 * }))
 * const program = Effect.gen(function* () {
 *   const chat = yield* Chats.open("bridge")
 *   yield* chat.append(drafts)
 *   const outcome = yield* chat.compress()
 *   const [handle] = Content.mentions(JSON.stringify(yield* chat.contents))
 *   const found = handle === undefined ? undefined : yield* chat.recall(handle)
 *   console.log(outcome._tag, found !== undefined, yield* chat.undo) // => Compressed true true
 * }).pipe(Effect.scoped)
 * await Effect.runPromise(Effect.provide(program, Palimpsest.layer({ chat: { window: 8_000 } })))
 * ```
 */
export class Chat extends Context.Service<
  Chat,
  {
    /**
     * Returns the current session. A session that was opened from a store may lack messages that left the window
     * (`whole` has them); the view of the model is complete.
     */
    readonly session: Effect.Effect<Session>
    /** Returns the complete session. Reads the missing part from the log. */
    readonly whole: Effect.Effect<Session, SessionStoreError>
    /** Returns the current conversation, as `session` has it. It is an immutable value. */
    readonly conversation: Effect.Effect<Conversation>
    /** Returns the messages that would be sent now, without a next message. */
    readonly contents: Effect.Effect<ReadonlyArray<Content>>
    /** Returns the settings; `model` is the model that is asked. */
    readonly settings: Effect.Effect<ChatSettings>
    /** Returns the size of the next request. */
    readonly usage: Effect.Effect<ChatUsage, TokenCountError>
    /**
     * Changes settings from the next turn on. A change of model is logged. Fails with an unknown strategy, and with a number out of its
     * range.
     */
    readonly configure: (
      change: Partial<ChatSettings>
    ) => Effect.Effect<void, ChatBusy | InvalidOption | SessionStoreError>
    /**
     * Sends a message and returns the events of its turn; see `ChatEvent`.
     *
     * *Details*: the conversation is compressed before the request if that is due, and a request that would not fit
     * is never sent. The message and its answer enter the conversation together. Tool results enter it at once,
     * bounded (`ChatSettings.toolOutput`) and stored whole behind handles. With an empty or blank message, the last
     * message is asked again; this fails with `NothingToAsk` if the conversation ends with an answer. If the turn
     * ends in any other way, including when the stream or the scope of the chat is closed early, the conversation does not change. The turn
     * runs in its own fiber, and waits while 256 events are unread.
     */
    readonly send: (message: string | ReadonlyArray<Part>, options?: SendOptions) => Stream.Stream<ChatEvent, TurnError>
    /** Appends messages, each as one event. Tool results are bounded as in `send`. */
    readonly append: (
      drafts: ReadonlyArray<IncomingMessage>
    ) => Effect.Effect<ReadonlyArray<Entry>, ChatBusy | TokenCountError | SessionStoreError>
    /** Returns the plan of a compression without carrying it out. */
    readonly plan: (
      options?: CompressOptions
    ) => Effect.Effect<Decision, InvalidOption | SessionStoreError | TokenCountError>
    /**
     * Compresses the conversation once. Fails with a policy that has an unknown strategy, or a number out of its range.
     *
     * *Details*: only an outcome with a patch changes the conversation. Failures of the model or of counting are
     * outcomes, not errors. If the effect is interrupted, the compression has either happened completely or not at
     * all.
     */
    readonly compress: (
      options?: CompressOptions
    ) => Effect.Effect<Outcome, ChatBusy | InvalidOption | PlanRefused | SessionStoreError | TokenCountError>
    /** Undoes the last compression. Returns false when there is none. */
    readonly undo: Effect.Effect<boolean, ChatBusy | SessionStoreError>
    /** Redoes the compression that was undone last. Returns false when there is none. */
    readonly redo: Effect.Effect<boolean, ChatBusy | SessionStoreError>
    /**
     * Returns the tree of the session: every message and every compression, on the current path and on the branches
     * that were left.
     */
    readonly tree: Effect.Effect<SessionTree, SessionStoreError>
    /**
     * Goes back to an entry of the tree and continues from there. Later entries stay in the log and in the tree, and
     * their handles stay valid. With `summary`, a summary of the left branch is appended to the new one. If the
     * effect is interrupted, the conversation has either gone back or not.
     */
    readonly branch: (
      options: BranchOptions
    ) => Effect.Effect<BranchOutcome, ChatBusy | UnknownEntry | SessionStoreError | TokenCountError>
    /** Gives an entry of the tree a label of one line. A blank label removes it. */
    readonly label: (entry: EntryId, label: string) => Effect.Effect<void, ChatBusy | UnknownEntry | SessionStoreError>
    /**
     * Stores the content of a file before a change, and returns the effect that records the change in the session.
     * Neither waits for a turn, and neither changes the conversation.
     */
    readonly keepFile: (change: FileChange) => Effect.Effect<Effect.Effect<void, SessionStoreError>>
    /** Records what happened to a question. Neither waits for a turn nor changes the conversation. */
    readonly note: (event: QuestionEvent) => Effect.Effect<void, SessionStoreError>
    /** Held by an agent during its run, within which the chat has turns: a conversation has one run at a time. */
    readonly running: Semaphore.Semaphore
    /** The blobs of the session, such as earlier versions of files (`Session.changes`). */
    readonly blobs: TempStore["Service"]
    /**
     * Keeps these words of the user verbatim in every later snapshot: in the latest message that contains them or,
     * without words, the whole latest message. Words that no message contains are appended as a message of the user
     * first, so pass only what the user typed. Returns undefined when the words are blank, or when there are no words
     * and no message.
     */
    readonly pin: (words?: string) => Effect.Effect<Pin | undefined, ChatBusy | TokenCountError | SessionStoreError>
    /** Returns the exact text behind a handle, or a selection of it. Fails for handles of other conversations. */
    readonly recall: (
      handle: Handle,
      selection?: Selection
    ) => Effect.Effect<Excerpt, TempStoreError | BadPattern | SessionStoreError>
    /**
     * Searches everything that left the window, however often the conversation was compressed. Each part is read
     * once.
     */
    readonly search: (request: RecallSearch) => Effect.Effect<FoundParts, BadPattern | SessionStoreError>
  }
>()("palimpsest/services/chat/Chat") {
  /** Continues the conversation of `options.session` in `options.log`. Fails with settings that no conversation can have. */
  static readonly make = Effect.fnUntraced(function* (
    options: ChatOptions
  ): Effect.fn.Return<Chat["Service"], InvalidOption, ChatServices | Scope.Scope> {
    const chat = yield* makeState(options, yield* Scope.Scope)
    yield* checkSettings(yield* Ref.get(chat.settings))
    const context = yield* servicesOf(options)
    const { started } = yield* Ref.get(chat.session)
    const spans = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.provideService(effect, SpanConversation, started?.session)
    const run = <A, E>(effect: Effect.Effect<A, E, ChatServices>) => Effect.provideContext(spans(effect), context)
    // An answer that comes after the end could not be stored any more.
    const closed = yield* Deferred.make<never, SessionStoreError>()
    yield* Effect.addFinalizer(() => Deferred.fail(closed, closedSession(started?.session ?? "")))
    const alone = <A, E>(activity: string, change: Effect.Effect<A, E, ChatServices>) =>
      exclusively(chat, activity, Effect.andThen(chat.log.checkWritable ?? Effect.void, run(change)))

    return {
      session: Ref.get(chat.session),
      whole: readWhole(chat),
      conversation: Effect.map(Ref.get(chat.session), ({ conversation }) => conversation),
      contents: nextContents(chat),
      settings: settingsOf(chat),
      usage: run(usageOf(chat)),
      configure: (changes) => alone("a change of its settings", configure(chat, changes)),
      send: (message, options = {}) =>
        Stream.callback<ChatEvent, TurnError>(
          (queue) => {
            const { through = (emit) => emit } = options
            const emit = through((event) => Queue.offer(queue, event))
            const parts = typeof message === "string" ? [text(message)] : message
            return alone("a turn", Effect.raceFirst(runTurn(chat, parts, options, emit), Deferred.await(closed))).pipe(
              Effect.tapError((error) => emit(failureEvent(error))),
              Effect.andThen(Queue.end(queue))
            )
          },
          { bufferSize: 256, strategy: "suspend" }
        ),
      append: (drafts) =>
        alone(
          "adding a message",
          Effect.forEach(drafts, (draft) => appendMessage(chat, draft))
        ),
      plan: (options = {}) => run(Effect.andThen(checkSettings(options), plan(chat, options))),
      compress: (options = {}) =>
        alone("a compression", Effect.andThen(checkSettings(options), compress(chat, options))),
      undo: alone("an undo", commitIf(chat, "Undone", canUndo)),
      redo: alone("a redo", commitIf(chat, "Redone", canRedo)),
      tree: Effect.map(readWhole(chat), sessionTree),
      branch: (options) => alone("going back", branch(chat, options)),
      label: (entry, words) => alone("a label", label(chat, entry, words)),
      keepFile: (change) => run(keepFile(chat, change)),
      note: (event) => commit(chat, event),
      running: yield* Semaphore.make(1),
      blobs: Context.get(context, TempStore),
      pin: (words) => alone("a pin", pin(chat, words)),
      recall: (handle, selection = {}) => recallText(chat, handle, selection),
      search: (request) =>
        readWhole(chat).pipe(
          Effect.flatMap(({ conversation }) => searchHidden(conversation, request)),
          Effect.withSpan("Chat.search")
        )
    }
  })

  /** Opens the conversation of a program that calls a model itself: `send` always fails. */
  static readonly keep = (options: ChatOptions) =>
    Effect.flatMap(
      makeCalibrations(noCalibrations, () => Effect.void),
      (calibrations) =>
        Chat.make(options).pipe(
          // A strategy runs only in turns, and here there are none.
          Effect.provideServiceEffect(Scope.Scope, Scope.make()),
          Effect.provideService(Model, unavailableModel),
          Effect.provideService(Calibrations, calibrations)
        )
    )

  /** Provides the one conversation of a program. Programs with many conversations use `Chats`. */
  static readonly layer = (options: ChatOptions) => Layer.effect(Chat, Chat.make(options))
}

/** Changes settings that the runtime computed, which are in their ranges. */
export const reconfigure = (chat: Pick<Chat["Service"], "configure">, change: Partial<ChatSettings>) =>
  Effect.catchTag(chat.configure(change), "InvalidOption", (error) => Effect.die(error))

/** The services that a chat needs. */
export type ChatServices = Calibrations | Compression | HookSystem | Model | TempStore | TokenCounter

const settingsOf = (chat: ChatState) =>
  Effect.map(Effect.all([Ref.get(chat.session), Ref.get(chat.settings)]), ([session, settings]) => ({
    ...settings,
    model: askedModel(session, settings)
  }))

const usageOf = Effect.fnUntraced(function* (chat: ChatState) {
  const { window } = yield* requestContext(chat)
  const { scale, tokens } = yield* requestSize(chat, false)
  return {
    tokens,
    limit: window.requestLimit,
    threshold: Math.min(1, window.trigger / window.window),
    trigger: window.trigger,
    scale,
    preparation: chat.preparation?.state === "failed" ? undefined : chat.preparation?.state
  }
})

/** Fails with settings that no conversation can have: a number out of its range, or an unknown strategy. */
export const checkSettings = Effect.fnUntraced(function* (settings: Partial<ChatSettings>) {
  const problem = settingsProblem(settings)
  if (problem !== undefined) return yield* new InvalidOption({ message: problem })
  const { strategy } = settings.policy ?? {}
  if (strategy !== undefined) yield* (yield* Compression).runner(strategy)
})

const configure = Effect.fnUntraced(function* (chat: ChatState, changes: Partial<ChatSettings>) {
  yield* checkSettings(changes)
  const before = yield* Ref.get(chat.settings)
  const asked = askedModel(yield* Ref.get(chat.session), before)
  const { model } = changes
  if (
    model !== undefined &&
    model !== askedModel(yield* Ref.get(chat.session), { ...before, chosen: undefined, routed: undefined })
  ) {
    yield* commit(chat, { _tag: "ModelSwitched", at: yield* Clock.currentTimeMillis, model })
  }
  if (changes.prepareAt === 0 || (changes.policy !== undefined && changes.policy !== before.policy)) {
    yield* endPreparation(chat, "the settings changed")
  }
  const settings = { ...before, ...changes }
  // Another model's provider may accept them.
  if (askedModel(yield* Ref.get(chat.session), settings) !== asked) {
    chat.requests.refusedTools.clear()
    chat.requests.isUnsigned = false
  }
  yield* Ref.set(chat.settings, settings)
  if (settings.policy?.strategy !== before.policy?.strategy) yield* closeStrategy(chat)
}, Effect.uninterruptible)

const plan = Effect.fn("Chat.plan")(function* (chat: ChatState, options: CompressOptions) {
  const compression = yield* Compression
  const policy = yield* policyFor(chat, options)
  return yield* compression.plan(yield* compressRequest(chat, yield* readWhole(chat), policy, options.forced ?? true))
})

const commitIf = Effect.fnUntraced(function* (
  chat: ChatState,
  tag: "Undone" | "Redone",
  isPossible: (conversation: Conversation) => boolean
) {
  const { conversation } = yield* readWhole(chat)
  if (!isPossible(conversation)) return false
  yield* commit(chat, { _tag: tag, at: yield* Clock.currentTimeMillis })
  return true
})

/**
 * Searches the loaded part of the session first, without asking the store, which may hold texts of other
 * conversations.
 */
const recallText = Effect.fn("Chat.recall")(function* (chat: ChatState, handle: Handle, selection: Selection) {
  const textIn = ({ ranges }: Session) => textBehind({ handles: chat.handles, ranges }, handle)
  const found = textIn(yield* Ref.get(chat.session)) ?? textIn(yield* readWhole(chat))
  return found === undefined ? yield* notHeld(handle) : yield* select(found, selection)
})

const notHeld = (name: Handle) =>
  new TempStoreError({
    reason: new HandleNotHeld({
      name,
      advice:
        "copy it exactly as shown; the content of a conversation in memory is lost when its process ends, so repeat the call that returned it"
    })
  })
