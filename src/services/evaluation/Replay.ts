/** Plays a recorded conversation again in another window, and reports each compression and its figures. */

import { Clock, Effect, Layer, Schema, type Scope, Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { InvalidOption } from "../../domain/compression/InvalidOption.ts"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import { type Conversation, view } from "../../domain/conversation/Conversation.ts"
import { shownText } from "../../domain/evaluation/CompactionPoints.ts"
import { groundedActions } from "../../domain/evaluation/GroundedActions.ts"
import { Figures } from "../../domain/evaluation/Measure.ts"
import { prepareMeasures } from "../../domain/evaluation/Measuring.ts"
import { recaller } from "../../domain/evaluation/OneRecall.ts"
import { type RecordedTurn, type RequestSize, tokensOf } from "../../domain/evaluation/Replay.ts"
import { replayedCompactions, type ReplayMoment } from "../../domain/evaluation/ReplayFigures.ts"
import {
  applyEvent,
  emptySession,
  logVersion,
  type Session,
  type SessionEvent,
  type Started
} from "../../domain/session/Session.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { estimatorVersion, type Usage } from "../../domain/tokens/Tokens.ts"
import { Chat } from "../chat/Chat.ts"
import type { ContextOverflow } from "../chat/FitRequest.ts"
import type { TurnError } from "../chat/Turn.ts"
import { Compression } from "../compression/Compression.ts"
import { Summarizer } from "../compression/summary/Summarizer.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import { Model, type ModelError } from "../model/Model.ts"
import { ReportProgress } from "../platform/Progress.ts"
import { type SessionLog, SessionStore, type SessionStoreError } from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import { Calibrations } from "../tokens/Calibrations.ts"
import { TokenCounter } from "../tokens/TokenCounter.ts"
import { ReplayModel } from "./ReplayModel.ts"

/** Options of a replay. */
export interface ReplayOptions {
  /** The id of the new session. */
  readonly session: string
  /** The window of the model, in tokens. */
  readonly window: number
  /** Share of the window above which the conversation is compressed. Default: as the strategy says. */
  readonly threshold: number | undefined
  /** The compression policy. Code writes the snapshots. */
  readonly policy: Partial<Omit<Policy, "limit" | "threshold" | "overhead" | "promptTokens" | "summarizer">>
  /** The recorded conversation. */
  readonly recording: Session
}

/** One compression of a replay. Tokens are those of the request. */
export const ReplayedCompression = Schema.Struct({
  /** The exchange before whose request it was done, counted from 1. */
  turn: Schema.Natural,
  status: Schema.String,
  /** `threshold`: due by the threshold. `guard`: forced, because the request might not have fitted. */
  trigger: Schema.Literals(["threshold", "guard"]),
  /** Why a stronger plan was needed, or what failed; null otherwise. */
  message: Schema.NullOr(Schema.String),
  before: Schema.Natural,
  after: Schema.Natural,
  /** Number of requests before it. */
  request: Schema.Natural,
  /** What it left the agent until the next one, by the measures of `eval`. Null: it changed nothing. */
  figures: Schema.NullOr(Figures)
})
export type ReplayedCompression = typeof ReplayedCompression.Type

/** The result of a replay. */
export interface ReplayResult {
  readonly requests: ReadonlyArray<RequestSize>
  /** The usage of each request. The part it shares with the previous one counts as cached. */
  readonly usages: ReadonlyArray<Usage>
  /**
   * Exchanges, counted from 1, that were left out (tool results stay): either the message did not fit at all and its answer
   * was copied, or the answer has calls that no request could hold.
   */
  readonly refused: ReadonlyArray<number>
  /** Those of `refused` that were sent and have a request: their answer was too large. */
  readonly unanswered: ReadonlyArray<number>
  readonly compressions: ReadonlyArray<ReplayedCompression>
  /** Time that the runtime took in milliseconds, without its measurement. */
  readonly millis: number
}

/** A runtime without outside effects: no model, no network, no user hooks. */
const runtime = Compression.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(TokenCounter.layerEstimate, Summarizer.layerExtractive, HookSystem.layer))
)

/** The recorded model counts as the estimator does (`ReplayModel`), so there is nothing to learn and no margin. */
const calibrations = Layer.succeed(Calibrations, {
  added: () => Effect.succeed(0),
  upperBound: (_, parts) => Work.run(tokensOf(parts)),
  expected: (_, parts) => Work.run(tokensOf(parts())),
  observe: () => Effect.undefined
})

/** One attempt only: a recorded answer does not change on a retry. */
const once = { attempts: 1, initialDelayMillis: 0, maxDelayMillis: 0 }

const triggerOf = (event: SessionEvent): ReplayedCompression["trigger"] | undefined => {
  // A replay has no manual compressions: the guard forces them.
  if (event._tag === "Compressed") return event.trigger === "manual" ? "guard" : "threshold"
  if (event._tag === "CompressionFailed") return event.forced ? "guard" : "threshold"
  return undefined
}

const isTooLarge = (error: TurnError): error is ModelError =>
  error._tag === "ModelError" && error.reason._tag === "AnswerTooLargeError"

const isRefusal = (error: TurnError): error is ContextOverflow | ModelError =>
  error._tag === "ContextOverflow" || isTooLarge(error)

/** A clock with a fixed wall time, so that a replay dates its messages the same whenever it runs. */
const standingAt = (clock: Clock.Clock, millis: number): Clock.Clock => ({
  currentTimeMillisUnsafe: () => millis,
  currentTimeMillis: Effect.succeed(millis),
  currentTimeNanosUnsafe: () => BigInt(millis) * 1_000_000n,
  currentTimeNanos: Effect.succeed(BigInt(millis) * 1_000_000n),
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
  monotonicTimeNanos: clock.monotonicTimeNanos,
  sleep: (duration) => clock.sleep(duration)
})

/** Returns the event that starts the new session. */
const startOf = (options: ReplayOptions): Started => {
  const { at = 0, cwd } = options.recording.started ?? {}
  return {
    _tag: "Started",
    version: logVersion,
    session: options.session,
    at,
    estimator: estimatorVersion,
    model: options.recording.model ?? "recorded",
    ...(cwd === undefined ? {} : { cwd })
  }
}

/** A compression that the chat tried. */
interface Attempt {
  readonly trigger: ReplayedCompression["trigger"]
  /** Number of requests before it. */
  readonly request: number
  /** Its index in the moments; undefined when it changed nothing. */
  readonly moment: number | undefined
}

/** Follows what is appended to the log of the new session: the session, and its compressions. `requests` is the number of requests so far. */
const follow = (log: SessionLog, started: Started, requests: Effect.Effect<number>) => {
  const attempts: Array<Attempt> = []
  const moments: Array<ReplayMoment> = []
  let session = applyEvent(emptySession, started)
  const note = (event: SessionEvent, request: number): void => {
    const before = session
    session = applyEvent(before, event)
    const trigger = triggerOf(event)
    if (trigger === undefined) return
    const moment = event._tag === "Compressed" ? moments.push({ before, after: session }) - 1 : undefined
    attempts.push({ trigger, request, moment })
  }
  const append = (event: SessionEvent) =>
    Effect.tap(log.append(event), () => Effect.map(requests, (request) => note(event, request)))
  return { log: { ...log, append }, attempts, moments, session: () => session }
}

/** Plays exchange by exchange through a chat. */
const playTurns = Effect.fnUntraced(function* (
  turns: ReadonlyArray<RecordedTurn>,
  chat: Chat["Service"],
  replay: ReplayModel["Service"],
  attempts: ReadonlyArray<Attempt>
) {
  const report = yield* ReportProgress
  const refused: Array<number> = []
  const unanswered: Array<number> = []
  const compressions: Array<Omit<ReplayedCompression, "figures">> = []
  const noteCompression = (event: ChatEvent, turn: number): void => {
    if (event._tag !== "ChatCompressed") return
    const { after, before, message, status } = event
    const { request = 0, trigger = "threshold" } = attempts[compressions.length] ?? {}
    compressions.push({ turn, status, trigger, message, before, after, request })
  }
  const playOne = Effect.fnUntraced(function* (one: RecordedTurn, turn: number) {
    report({ done: turn - 1, total: turns.length, unit: "requests" })
    yield* chat.append(one.before)
    yield* chat.send(one.message).pipe(
      Stream.runForEach((event) => Effect.sync(() => noteCompression(event, turn))),
      Effect.catchIf(
        (error): error is ContextOverflow | ModelError => isRefusal(error) && turn > 1,
        Effect.fnUntraced(function* (error) {
          refused.push(turn)
          // After a completed answer, the recording has already advanced.
          if ((yield* replay.next) === one) yield* replay.skip
          if (isTooLarge(error)) unanswered.push(turn)
          else yield* chat.append([{ content: one.answer }])
        })
      )
    )
  })
  yield* Effect.forEach(turns, (turn, index) => playOne(turn, index + 1), { discard: true })
  return { refused, unanswered, compressions }
})

/** Returns the figures of grounded actions and facts after each compression, until the next one. */
const figuresAfter = (moments: ReadonlyArray<ReplayMoment>, end: Conversation) =>
  Effect.forEach(
    replayedCompactions(moments, end),
    Effect.fnUntraced(function* ({ after, compaction }) {
      const figuresOf = yield* Work.run(prepareMeasures([groundedActions], compaction))
      // The measure reads the context alone.
      const context = shownText(view(after.conversation))
      return yield* Work.run(figuresOf({ snapshot: "", context, recall: recaller(after) }))
    })
  )

/**
 * Replays a recorded conversation, exchange by exchange, through the real chat in a window of this size. The chat appends
 * everything to a new session of the store. The replay ends when the first message does not fit, because the rest depends on
 * it. A later message that does not fit is left out, as when a user reads the refusal and goes on, and so is an exchange
 * whose calls are too large.
 */
export const playRecording = Effect.fn("Replay.playRecording")(
  function* (
    turns: ReadonlyArray<RecordedTurn>,
    options: ReplayOptions
  ): Effect.fn.Return<
    ReplayResult,
    InvalidOption | TurnError | SessionStoreError,
    SessionStore | TempStore | Compression | HookSystem | TokenCounter | Calibrations | Scope.Scope
  > {
    const store = yield* SessionStore
    const replay = yield* ReplayModel.make(turns)
    const started = startOf(options)
    const requests = Effect.map(replay.requests, ({ length }) => length)
    const { attempts, log, moments, session } = follow(yield* store.create(started), started, requests)
    const chat = yield* Chat.make({
      log,
      session: session(),
      settings: {
        model: started.model ?? "recorded",
        window: options.window,
        threshold: options.threshold,
        policy: { ...options.policy, summarizer: "extractive" },
        retries: { call: { ...once, maxServerDelayMillis: 0 }, answer: once }
      }
    }).pipe(Effect.provideService(Model, replay.model))
    const from = yield* Clock.monotonicTimeNanos
    const { compressions, refused, unanswered } = yield* playTurns(turns, chat, replay, attempts)
    const millis = Number((yield* Clock.monotonicTimeNanos) - from) / 1e6
    const end = session().conversation
    const figures = yield* figuresAfter(moments, end)
    return {
      requests: yield* replay.requests,
      usages: yield* replay.usages,
      refused,
      unanswered,
      compressions: compressions.map((one, index) => ({
        ...one,
        figures: figures[attempts[index]?.moment ?? -1] ?? null
      })),
      millis
    }
  },
  (effect, _turns, { recording }) =>
    Effect.updateService(effect, Clock.Clock, (clock) => standingAt(clock, recording.started?.at ?? 0)),
  // Built anew, because the program's layers are the same values with other services behind them.
  Effect.provide(Layer.mergeAll(runtime, calibrations), { local: true }),
  Effect.scoped
)
