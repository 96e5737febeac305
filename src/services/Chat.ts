import { Clock, Context, Effect, Layer, Option, Ref, Schema, Semaphore } from "effect"
import {
  Cancelled,
  type Decision,
  type Outcome,
  patchOf,
  type Plan,
  type Policy,
  statusOf,
  tokensOf
} from "../domain/Compression.ts"
import * as Chain from "../domain/Chain.ts"
import { canRedo, canUndo, type Conversation, type Draft, entryId, type Entry } from "../domain/Conversation.ts"
import type { Excerpt, Selection } from "../domain/Excerpt.ts"
import type { Handle } from "../domain/Handle.ts"
import { recall } from "../domain/Recall.ts"
import { recallableOf, type Session, type SessionEvent, step } from "../domain/Session.ts"
import { TokenCount } from "../domain/Tokens.ts"
import { Compression, type PlanRefused } from "./Compression.ts"
import type { Ended } from "./CompressRequest.ts"
import { HookSystem } from "./HookSystem.ts"
import { HandleIndex, makeEntry } from "./Intake.ts"
import type { SessionLog, SessionStoreError } from "./SessionStore.ts"
import { type BadPattern, read, select, TempStore, type TempStoreError } from "./TempStore.ts"
import { type TokenCountError, TokenCounter } from "./TokenCounter.ts"

/** The conversation is being changed by something else: a turn, a compression. Wait for it, or cancel it. */
export class ChatBusy extends Schema.TaggedError<ChatBusy>()("ChatBusy", { doing: Schema.String }) {
  override get message() {
    return `the conversation is busy with ${this.doing}; wait for it to end, or cancel it`
  }
}

/** What is wanted of one compression. `forced` is what a person asks for: no threshold, no failure memory. */
export interface CompressOptions {
  readonly policy: Policy
  readonly forced: boolean
  /** When this completes first, the compression is given up and ends as `Cancelled`. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** Carry out this plan in place of making one. */
  readonly plan?: Plan | undefined
}

/**
 * One conversation. The only place where history changes: everything that can wait or fail is prepared first and changes
 * nothing; then one event is appended to the log and the state is swapped, uninterruptibly. Reading never waits; a second
 * change at the same time fails with `ChatBusy`.
 */
export class Chat extends Context.Service<
  Chat,
  {
    /** Everything the log says at this moment. */
    readonly session: Effect.Effect<Session>
    /** The conversation at this moment. It is a value: what happens later does not change it. */
    readonly conversation: Effect.Effect<Conversation>
    /** Adds messages at the end, each one event. */
    readonly append: (
      drafts: ReadonlyArray<Draft>
    ) => Effect.Effect<ReadonlyArray<Entry>, ChatBusy | TokenCountError | SessionStoreError>
    /** What a compression would do. */
    readonly plan: (options: CompressOptions) => Effect.Effect<Decision>
    /**
     * Compresses once and says how it ended; only an outcome with a patch changes the conversation. Failures of the model or of
     * counting are outcomes. Interrupted, it has happened or not.
     */
    readonly compress: (options: CompressOptions) => Effect.Effect<Outcome, ChatBusy | PlanRefused | SessionStoreError>
    /** Takes the last compression away. False: there is none. */
    readonly undo: Effect.Effect<boolean, ChatBusy | SessionStoreError>
    /** Lays the compression that was undone last again. False: there is none. */
    readonly redo: Effect.Effect<boolean, ChatBusy | SessionStoreError>
    /** What a handle stands for: exactly, or the wanted part of it. */
    readonly recall: (handle: Handle, selection?: Selection) => Effect.Effect<Excerpt, TempStoreError | BadPattern>
  }
>()("palimpsest/services/Chat") {
  /** A conversation as `options.session` says it is, continued in `options.log`. */
  static readonly make = Effect.fnUntraced(function* (
    options: ChatOptions
  ): Effect.fn.Return<Chat["Service"], never, Compression | HookSystem | TokenCounter | TempStore> {
    const compression = yield* Compression
    const hooks = yield* HookSystem
    const counter = yield* TokenCounter
    const store = yield* TempStore
    const { log } = options
    const state = yield* Ref.make(options.session)
    const held = new HandleIndex()
    held.restore(recallableOf(options.session).entries)
    const turn = yield* Semaphore.make(1)
    const doing = yield* Ref.make("another change")

    const alone = <A, E, R>(what: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E | ChatBusy, R> =>
      turn
        .withPermitsIfAvailable(1)(Effect.andThen(Ref.set(doing, what), work))
        .pipe(
          Effect.flatMap(
            Option.match({
              onNone: () => Effect.flatMap(Ref.get(doing), (busy) => Effect.fail(new ChatBusy({ doing: busy }))),
              onSome: Effect.succeed
            })
          )
        )

    /** The one commit point: a line in the log, then the state. A cancel that comes now counts as after it. */
    const commit = (event: SessionEvent) =>
      Effect.uninterruptible(
        Effect.andThen(
          log.append(event),
          Ref.update(state, (session) => step(session, event))
        )
      )

    const appendOne = Effect.fnUntraced(function* (draft: Draft) {
      const { conversation } = yield* Ref.get(state)
      const entry = yield* makeEntry(draft, entryId(conversation.next), held).pipe(
        Effect.provideService(TokenCounter, counter),
        Effect.provideService(TempStore, store)
      )
      yield* commit({ _tag: "Appended", entry })
      return entry
    })

    const requestOf = (session: Session, { forced, policy }: CompressOptions) => ({
      conversation: session.conversation,
      memory: session.memory,
      policy,
      forced,
      held,
      cwd: session.started?.cwd,
      family: session.started?.model
    })

    const cancelled: Ended = { outcome: Cancelled.make({}), dropped: undefined }

    const compress = Effect.fn("Chat.compress")(function* (options: CompressOptions) {
      const session = yield* Ref.get(state)
      const request = requestOf(session, options)
      const work: Effect.Effect<Ended, PlanRefused> =
        options.plan === undefined ? compression.compress(request) : compression.apply(request, options.plan)
      const { dropped, outcome } = yield* options.cancel === undefined
        ? work
        : Effect.raceFirst(work, Effect.as(options.cancel, cancelled))
      const at = yield* Clock.currentTimeMillis
      const patch = patchOf(outcome)
      const { after, before } = tokensOf(outcome)
      const status = statusOf(outcome)
      if (patch !== undefined) {
        yield* commit({
          _tag: "Compressed",
          at,
          status,
          strategy: options.policy.strategy,
          trigger: options.forced ? "manual" : "auto",
          before: TokenCount.make(before),
          after: TokenCount.make(after),
          patch,
          ...(dropped === undefined ? {} : { dropped })
        })
      } else if (status.startsWith("COMPRESSION_FAILED") || status === "FAILED_SUMMARIZER") {
        yield* commit({
          _tag: "CompressionFailed",
          at,
          status,
          forced: options.forced,
          tokens: TokenCount.make(before)
        })
      }
      yield* hooks.fire({
        _tag: "PostCompress",
        trigger: options.forced ? "manual" : "auto",
        status,
        before: TokenCount.make(before),
        after: TokenCount.make(after)
      })
      return outcome
    })

    const change = Effect.fnUntraced(function* (
      tag: "Undone" | "Redone",
      possible: (conversation: Conversation) => boolean
    ) {
      const { conversation } = yield* Ref.get(state)
      if (!possible(conversation)) return false
      yield* commit({ _tag: tag, at: yield* Clock.currentTimeMillis })
      return true
    })

    return {
      session: Ref.get(state),
      conversation: Effect.map(Ref.get(state), (session) => session.conversation),
      append: (drafts) => alone("adding a message", Effect.forEach(drafts, appendOne)),
      plan: (options) => Effect.flatMap(Ref.get(state), (session) => compression.plan(requestOf(session, options))),
      compress: (options) => alone("a compression", compress(options)),
      undo: alone("an undo", change("Undone", canUndo)),
      redo: alone("a redo", change("Redone", canRedo)),
      recall: Effect.fn("Chat.recall")(function* (handle, selection = {}) {
        const ranges = Chain.toArray((yield* Ref.get(state)).ranges)
        const found = held.text(handle) ?? recall({ entries: [], ranges }, handle)?.text
        return found === undefined
          ? yield* read(handle, selection).pipe(Effect.provideService(TempStore, store))
          : yield* select(found, selection)
      })
    }
  })

  /** The one conversation of a program. Programs with many take `Chats`. */
  static readonly layer = (options: ChatOptions) => Layer.effect(Chat, Chat.make(options))
}

/** A session as the store opened it: its log, which only this chat may write from now on, and what the log says. */
export interface ChatOptions {
  readonly log: SessionLog
  readonly session: Session
}
