import { type Deferred, Effect, type Fiber, Ref, type Scope, Semaphore } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Outcome } from "../../domain/compression/Compression.ts"
import type { Strategy } from "../../domain/compression/Strategy.ts"
import type { Content, Part } from "../../domain/content/Content.ts"
import type { Conversation, Patch } from "../../domain/conversation/Conversation.ts"
import { Outgoing } from "../../domain/conversation/Outgoing.ts"
import { recallableOf, type Session } from "../../domain/session/Session.ts"
import type { CompressionResult } from "../compression/strategies/CompressRequest.ts"
import type { StrategySession } from "../compression/strategies/StrategyRunner.ts"
import * as Hooked from "../hooks/Hooked.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import { HandleIndex } from "../session/EntryBuilder.ts"
import type { OpenSession, SessionLog, SessionStoreError } from "../session/SessionStore.ts"
import { ChatDefaults, type ChatSettings } from "./ChatSettings.ts"
import type { MeasuredRequest, WindowGuard } from "./WindowGuard.ts"

/**
 * The state of one conversation, passed to every function of this room. Only `Commit.ts` changes `session`; the other mutable
 * fields are caches and notes that can be lost without losing a message.
 */
export interface ChatState {
  readonly log: ChatLog
  /** The session as stored in the log. */
  readonly session: Ref.Ref<Session>
  /** The settings from the next turn on. */
  readonly settings: Ref.Ref<ChatSettings>
  /** The handles of the session and their content. */
  readonly handles: HandleIndex
  /** Held by the one change in progress; see `exclusively`. */
  readonly changing: Semaphore.Semaphore
  /** Names the change in progress, for `ChatBusy`. */
  readonly activity: Ref.Ref<string>
  /** Held while a commit writes its line and swaps the state. */
  readonly committing: Semaphore.Semaphore
  /** Reads the part of the session that the store did not load. Undefined once it is read. */
  unread: Effect.Effect<Session, SessionStoreError> | undefined
  /** Whether PreCompress was fired, and PostCompress has yet to be. */
  awaitsPostCompress: boolean
  /** A committed compression that no event has reported yet. A cancelled turn reports it. */
  unreported: Outcome | undefined
  /** Hook failures that were reported to the user already. */
  readonly hookFailures: Set<string>
  readonly requests: RequestState
  /** Closes with the chat. */
  readonly scope: Scope.Scope
  /** The session of the active strategy. Undefined before the first turn, or when the strategy has no session. */
  strategy: { readonly name: string; readonly session: StrategySession; readonly scope: Scope.Closeable } | undefined
  /** The snapshot that is prepared for the next compression of this view, if any. */
  preparation: Preparation | undefined
  /** Events about preparations that were not emitted yet. */
  readonly preparationEvents: Array<Extract<ChatEvent, { _tag: "SnapshotPreparation" }>>
}

/** A snapshot that a model writes in the background. */
export interface Preparation {
  readonly strategy: string
  /** Completes with the snapshot. Undefined: there is none. */
  readonly done: Deferred.Deferred<PreparedSnapshot | undefined>
  state: "running" | "ready" | "failed"
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  /** The prepared snapshot applied to the conversation as it was then, so that adopting it takes less time. */
  rehearsal: Rehearsal | undefined
}

/** The result of applying a prepared snapshot to one state of the conversation, and its request. */
export interface Rehearsal {
  readonly conversation: Conversation
  readonly patch: Patch
  readonly outgoing: Outgoing
}

/** The result of a compression that was not committed, and the conversation it was computed for. */
export interface PreparedSnapshot extends CompressionResult {
  readonly outcome: Extract<Outcome, { _tag: "Compressed" }>
  readonly from: Conversation
}

/** The request state of this conversation: caches, and measurements of the last request. */
export interface RequestState {
  /** Computed for these settings and this model; replaced when either changes. */
  context: RequestContext | undefined
  /** The last request that was measured exactly. Undefined: it does not apply to the next one. */
  measured: MeasuredRequest | undefined
  /** The view and the message of the last request. */
  last: { readonly view: ViewChain; readonly message: Content | undefined } | undefined
  /** The provider's count of the last request, and the view with its answer. */
  reported: { readonly view: ViewChain; readonly prompt: number } | undefined
  /** The view that the scale of the window belongs to. Undefined: it belongs to another request. */
  scaled: { readonly view: ViewChain } | undefined
  /** The scales of views for which the provider reported a count, or that were compressed. An undo restores such a view. */
  readonly scales: WeakMap<NonNullable<ViewChain>, { readonly model: string; readonly scale: number }>
  /** Whether hooks changed the last request. */
  isChangedByHooks: boolean
  /** The view whose images were last fitted to what a model's provider accepts, and their number. */
  images: { readonly view: ViewChain; readonly model: string; readonly count: number } | undefined
  /** Whether the provider refused signatures of earlier answers, which are left out since. */
  isUnsigned: boolean
  /** The tools whose declaration the provider refused, which are left out since. */
  readonly refusedTools: Set<string>
  outgoing: Outgoing
  /** Held while `outgoing` follows a view: a reader may look at another view while a turn runs. */
  readonly following: Semaphore.Semaphore
}

/** The model that is asked, its window, and the other content of every request. */
export interface RequestContext {
  readonly settings: ChatSettings
  readonly model: string
  /** The strategy that the settings name. */
  readonly strategy: Strategy
  /** The system instruction, the tool declarations and the environment message. */
  readonly overheadParts: ReadonlyArray<Part>
  /** Estimated tokens of `overheadParts`. */
  readonly overheadTokens: number
  readonly environment: string | undefined
  /** The tools of the settings without those that the provider refused. */
  readonly tools: ChatSettings["tools"]
  /** The environment message, if any: it opens the request. */
  readonly opening: ReadonlyArray<Content>
  readonly window: WindowGuard
}

/** The view of a conversation, newest message first. */
export type ViewChain = Session["conversation"]["view"]

/** The log that a chat writes. Without `blobs`, the `TempStore` of the context keeps them. */
export type ChatLog = Pick<SessionLog, "append"> & Partial<SessionLog>

/** A session opened from a store: its log, which only this chat may write from now on, and its content. */
export interface ChatOptions extends Partial<Pick<OpenSession, "complete">> {
  readonly log: ChatLog
  readonly session: Session
  /** Default: `ChatDefaults`. */
  readonly settings?: ChatSettings | undefined
}

/** Receives the events of a turn. It may make the turn wait. */
export type Emit = (event: ChatEvent) => Effect.Effect<unknown>

/** Makes the state of a conversation that nothing has changed yet. */
export const makeState = Effect.fnUntraced(function* (
  options: ChatOptions,
  scope: Scope.Scope
): Effect.fn.Return<ChatState> {
  const handles = new HandleIndex()
  handles.restore(recallableOf(options.session).entries)
  return {
    log: options.log,
    session: yield* Ref.make(options.session),
    settings: yield* Ref.make(options.settings ?? (yield* ChatDefaults)),
    handles,
    changing: yield* Semaphore.make(1),
    activity: yield* Ref.make("another change"),
    committing: yield* Semaphore.make(1),
    unread: options.complete === false ? options.log.whole : undefined,
    awaitsPostCompress: false,
    unreported: undefined,
    hookFailures: new Set(),
    requests: {
      context: undefined,
      measured: undefined,
      last: undefined,
      reported: undefined,
      scaled: undefined,
      scales: new WeakMap(),
      isChangedByHooks: false,
      images: undefined,
      isUnsigned: false,
      refusedTools: new Set(),
      outgoing: new Outgoing(),
      following: yield* Semaphore.make(1)
    },
    scope,
    strategy: undefined,
    preparation: undefined,
    preparationEvents: []
  }
})

/** The hooks, bound to the session and folder of this conversation. `reported` holds the failures that `emit` has already shown. */
export const hooksOf = Effect.fnUntraced(function* (chat: ChatState, emit: Emit, reported?: Set<string>) {
  const { started } = yield* Ref.get(chat.session)
  const { cwd } = yield* Ref.get(chat.settings)
  return Hooked.make(yield* HookSystem, { session: started?.session, cwd: cwd ?? started?.cwd }, emit, reported)
})
