import { Clock, Context, Effect, Layer, Queue, Ref, Scope, Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Decision, Outcome } from "../../domain/compression/Compression.ts"
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
import { recall } from "../../domain/conversation/Recall.ts"
import { type FoundParts, hiddenParts, type RecallSearch } from "../../domain/conversation/RecallSearch.ts"
import type { Session } from "../../domain/session/Session.ts"
import { type SessionTree, sessionTree } from "../../domain/session/SessionTree.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { Compression } from "../compression/Compression.ts"
import type { PlanRefused } from "../compression/strategies/CompressRequest.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import { Model, unavailableModel } from "../model/Model.ts"
import type { IncomingMessage } from "../session/EntryBuilder.ts"
import { SessionStoreError } from "../session/SessionStore.ts"
import { type BadPattern, HandleNotHeld, search, select, TempStore, TempStoreError } from "../session/TempStore.ts"
import { Experiments } from "../settings/Experiments.ts"
import { Calibrations, make as makeCalibrations, noCalibrations } from "../tokens/Calibrations.ts"
import { type TokenCountError, TokenCounter } from "../tokens/TokenCounter.ts"
import { appendMessage, pin } from "./AppendMessages.ts"
import { closeStrategy } from "./AssembleRequest.ts"
import { branch, type BranchOptions, type BranchOutcome, label, type UnknownEntry } from "./Branch.ts"
import type { ChatSettings } from "./ChatSettings.ts"
import { type ChatOptions, type ChatState, type Emit, makeState } from "./ChatState.ts"
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
  /** In the model's tokens, as far as its counting is known. */
  readonly tokens: number
  /** The most tokens that a request may have. */
  readonly limit: number
  /** The share of the window that triggers a compression. */
  readonly threshold: number
  /** The tokens from which a request is compressed. */
  readonly trigger: number
  /** The model's tokens per estimated token. Undefined: no count of this model is known, so `tokens` is an estimate. */
  readonly scale: number | undefined
  /** The snapshot that is prepared for the next compression: it is being written, or it is ready. Undefined: there is none. */
  readonly preparation: "running" | "ready" | undefined
}

/**
 * One conversation with a model.
 *
 * *When to use*: to hold a conversation that is stored, compressed before it outgrows the model's window, and never lost.
 * `Chats` opens many by id; `CompressedChat` is the same for programs that use `effect/ai`.
 *
 * *Details*: this is the only place where history changes. Everything that can wait or fail is prepared first and changes
 * nothing; then one event is appended to the log and the state is swapped, uninterruptibly. Reading never waits. A second
 * change at the same time fails with `ChatBusy`. Tokens are the model's.
 */
export class Chat extends Context.Service<
  Chat,
  {
    /**
     * The session at this moment. A session that was opened again may lack messages that left the window (`whole` has them);
     * what the model sees is complete.
     */
    readonly session: Effect.Effect<Session>
    /** The complete session. Reads from the log what was not read yet. */
    readonly whole: Effect.Effect<Session, SessionStoreError>
    /** The conversation at this moment, as `session` has it. It is a value: later changes do not affect it. */
    readonly conversation: Effect.Effect<Conversation>
    /** The messages that would be sent now, before the next message. */
    readonly contents: Effect.Effect<ReadonlyArray<Content>>
    /** The settings; `model` is the model that is asked. */
    readonly settings: Effect.Effect<ChatSettings>
    /** The size of the next request. */
    readonly usage: Effect.Effect<ChatUsage, TokenCountError>
    /** Changes settings from the next turn on. A change of model is logged. */
    readonly configure: (change: Partial<ChatSettings>) => Effect.Effect<void, ChatBusy | SessionStoreError>
    /**
     * Sends a message and streams what happens; see `ChatEvent`.
     *
     * Before the request leaves, the conversation is compressed where that is due, and nothing is sent that would not fit. The
     * message and its answer enter the conversation together. Tool results enter it at once, bounded (`ChatSettings.toolOutput`)
     * and kept whole behind handles. Without a message (empty, blank) the last message is asked again; `NothingToAsk` where
     * that is an answer. However else a turn ends, also when the stream is closed early, the conversation does not change. The
     * turn runs in its own fiber, and waits while 256 events are not read.
     */
    readonly send: (message: string | ReadonlyArray<Part>, options?: SendOptions) => Stream.Stream<ChatEvent, TurnError>
    /** Appends messages, each as one event. Tool results are bounded as in `send`. */
    readonly append: (
      drafts: ReadonlyArray<IncomingMessage>
    ) => Effect.Effect<ReadonlyArray<Entry>, ChatBusy | TokenCountError | SessionStoreError>
    /** Decides what a compression would do, and does nothing. */
    readonly plan: (options?: CompressOptions) => Effect.Effect<Decision, SessionStoreError | TokenCountError>
    /**
     * Compresses once. Only an outcome with a patch changes the conversation; failures of the model or of counting are outcomes.
     * Interrupted, the compression has happened or not.
     */
    readonly compress: (
      options?: CompressOptions
    ) => Effect.Effect<Outcome, ChatBusy | PlanRefused | SessionStoreError | TokenCountError>
    /** Undoes the last compression. Returns false when there is none. */
    readonly undo: Effect.Effect<boolean, ChatBusy | SessionStoreError>
    /** Redoes the compression that was undone last. Returns false when there is none. */
    readonly redo: Effect.Effect<boolean, ChatBusy | SessionStoreError>
    /** The tree of the session: every message and every compression, on the current path and on the branches that were left. */
    readonly tree: Effect.Effect<SessionTree, SessionStoreError>
    /**
     * Goes back to an entry of the tree, and continues from there. What came after it stays in the log and in the tree, and its
     * handles stay valid. With `summary`, a summary of the branch that is left is appended to the new one. Interrupted, the
     * conversation has gone back or not.
     */
    readonly branch: (
      options: BranchOptions
    ) => Effect.Effect<BranchOutcome, ChatBusy | UnknownEntry | SessionStoreError | TokenCountError>
    /** Gives an entry of the tree a label of one line; a blank one takes it away. */
    readonly label: (entry: EntryId, label: string) => Effect.Effect<void, ChatBusy | UnknownEntry | SessionStoreError>
    /**
     * Stores what a file holds before a change, and returns the effect that records the change in the session. Neither waits for a
     * turn, and neither changes the conversation.
     */
    readonly keepFile: (change: FileChange) => Effect.Effect<Effect.Effect<void, SessionStoreError>>
    /** The blobs of the session, such as earlier versions of files (`Session.changes`). */
    readonly blobs: TempStore["Service"]
    /**
     * Shows these words of the user exactly in every snapshot from now on: in the latest message that holds them, or without
     * words the latest message whole. Words that no message holds are appended as a message of the user first, so give only
     * what the user typed. Returns undefined when the words are blank, or without words when there is no message.
     */
    readonly pin: (words?: string) => Effect.Effect<Pin | undefined, ChatBusy | TokenCountError | SessionStoreError>
    /** Reads back the text behind a handle, exactly, or a selection of it. Handles of other conversations are refused. */
    readonly recall: (
      handle: Handle,
      selection?: Selection
    ) => Effect.Effect<Excerpt, TempStoreError | BadPattern | SessionStoreError>
    /** Searches everything that the window no longer shows, at any depth of compression. Each part is read once. */
    readonly search: (request: RecallSearch) => Effect.Effect<FoundParts, BadPattern | SessionStoreError>
  }
>()("palimpsest/services/chat/Chat") {
  /** Continues the conversation of `options.session` in `options.log`. */
  static readonly make = Effect.fnUntraced(function* (
    options: ChatOptions
  ): Effect.fn.Return<Chat["Service"], never, ChatServices | Scope.Scope> {
    const chat = yield* makeState(options, yield* Scope.Scope)
    const services = Context.pick(
      Calibrations,
      Compression,
      HookSystem,
      Model,
      TempStore,
      TokenCounter
    )(yield* Effect.context<ChatServices>()).pipe(Context.add(Experiments, yield* Experiments))
    const context = options.log.blobs === undefined ? services : Context.add(services, TempStore, options.log.blobs)
    const run = Effect.provideContext(context)
    const alone = <A, E>(activity: string, change: Effect.Effect<A, E, ChatServices>) =>
      exclusively(chat, activity, Effect.provideContext(readingLater(change), context))

    return {
      session: Ref.get(chat.session),
      whole: readWhole(chat),
      conversation: Effect.map(Ref.get(chat.session), ({ conversation }) => conversation),
      contents: nextContents(chat),
      settings: settingsOf(chat),
      usage: run(usageOf(chat)),
      configure: (changes) => alone("a change of its settings", configure(chat, changes)),
      send: (message, given = {}) =>
        Stream.callback<ChatEvent, TurnError>(
          (queue) => {
            const emit: Emit = (event) => Queue.offer(queue, event)
            const parts = typeof message === "string" ? [text(message)] : message
            return alone("a turn", runTurn(chat, parts, given, emit)).pipe(
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
      plan: (given = {}) => run(readingLater(plan(chat, given))),
      compress: (given = {}) => alone("a compression", compress(chat, given)),
      undo: alone("an undo", commitIf(chat, "Undone", canUndo)),
      redo: alone("a redo", commitIf(chat, "Redone", canRedo)),
      tree: Effect.map(readWhole(chat), sessionTree),
      branch: (options) => alone("going back", branch(chat, options)),
      label: (entry, words) => alone("a label", label(chat, entry, words)),
      keepFile: (change) => run(keepFile(chat, change)),
      blobs: Context.get(context, TempStore),
      pin: (words) => alone("a pin", pin(chat, words)),
      recall: (handle, selection = {}) => readingLater(recallText(chat, handle, selection)),
      search: (request) =>
        readWhole(chat).pipe(
          Effect.flatMap(({ conversation }) => Work.run(hiddenParts(conversation))),
          Effect.flatMap((parts) => search(parts, request)),
          readingLater,
          Effect.withSpan("Chat.search")
        )
    }
  })

  /** Opens the conversation of a program that asks a model itself: `send` always fails. */
  static readonly keep = (options: ChatOptions) =>
    Effect.flatMap(
      makeCalibrations(noCalibrations, () => Effect.void),
      (calibrations) =>
        Chat.make(options).pipe(
          // A strategy is at work in turns only, and there are none.
          Effect.provideServiceEffect(Scope.Scope, Scope.make()),
          Effect.provideService(Model, unavailableModel),
          Effect.provideService(Calibrations, calibrations)
        )
    )

  /** The one conversation of a program. Programs with many use `Chats`. */
  static readonly layer = (options: ChatOptions) => Layer.effect(Chat, Chat.make(options))
}

/** Large parts are read when they are used first: a part that cannot be read fails what uses it. */
const readingLater = <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E | SessionStoreError, R> =>
  Effect.catchDefect(use, (defect) => (defect instanceof SessionStoreError ? Effect.fail(defect) : Effect.die(defect)))

/** The services that a chat needs. */
export type ChatServices = Calibrations | Compression | HookSystem | Model | TempStore | TokenCounter

const settingsOf = (chat: ChatState): Effect.Effect<ChatSettings> =>
  Effect.map(Effect.all([Ref.get(chat.session), Ref.get(chat.settings)]), ([session, settings]) => ({
    ...settings,
    model: askedModel(session, settings)
  }))

const usageOf = Effect.fnUntraced(function* (chat: ChatState) {
  const { window } = yield* requestContext(chat)
  const { scale, tokens } = yield* requestSize(chat, false)
  return {
    tokens: Math.round(tokens * (scale ?? 1)),
    limit: window.maxRequestTokens,
    threshold: Math.min(1, window.trigger / window.window),
    trigger: window.trigger,
    scale,
    preparation: chat.preparation?.state === "failed" ? undefined : chat.preparation?.state
  }
})

const configure = Effect.fnUntraced(function* (chat: ChatState, changes: Partial<ChatSettings>) {
  const before = yield* Ref.get(chat.settings)
  const { model } = changes
  if (model !== undefined && model !== askedModel(yield* Ref.get(chat.session), { ...before, routed: undefined })) {
    yield* commit(chat, { _tag: "ModelSwitched", at: yield* Clock.currentTimeMillis, model })
  }
  if (changes.prepareAt === 0 || (changes.policy !== undefined && changes.policy !== before.policy)) {
    yield* endPreparation(chat, "the settings changed")
  }
  yield* Ref.set(chat.settings, { ...before, ...changes })
  if ((changes.policy ?? before.policy)?.strategy !== before.policy?.strategy) yield* closeStrategy(chat)
}, Effect.uninterruptible)

const plan = Effect.fn("Chat.plan")(function* (chat: ChatState, options: CompressOptions) {
  const compression = yield* Compression
  const policy = yield* policyFor(chat, options)
  return yield* compression.plan(compressRequest(chat, yield* readWhole(chat), policy, options.forced ?? true))
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

/** Searches what has been read of the session first. The store may hold texts of other conversations, so it is not asked. */
const recallText = Effect.fn("Chat.recall")(function* (chat: ChatState, handle: Handle, selection: Selection) {
  const textIn = (session: Session) =>
    chat.handles.text(handle) ?? recall({ entries: [], ranges: PersistentList.toArray(session.ranges) }, handle)?.text
  const present = textIn(yield* Ref.get(chat.session))
  const stored = present === undefined && chat.unread !== undefined ? textIn(yield* readWhole(chat)) : present
  return stored === undefined ? yield* notHeld(handle) : yield* select(stored, selection)
})

const notHeld = (name: Handle) =>
  new TempStoreError({
    reason: new HandleNotHeld({
      name,
      advice:
        "copy it exactly as it is shown; what a conversation in memory held ends with its process, so repeat the call that returned it"
    })
  })
