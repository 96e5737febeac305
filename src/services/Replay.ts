import { Clock, Effect, Layer, type Scope, Stream } from "effect"
import type { Policy } from "../domain/Compression.ts"
import { type Kept, keptOver, type RequestSize, type Turn } from "../domain/Replay.ts"
import { emptySession, logVersion, type Session, type SessionEvent, type Started, step } from "../domain/Session.ts"
import { estimatorVersion } from "../domain/Tokens.ts"
import * as Work from "../domain/Work.ts"
import { Calibrations, empty as noCalibrations, make as makeCalibrations } from "./Calibrations.ts"
import { Chat, type TurnError } from "./Chat.ts"
import type { ContextOverflow } from "./Turn.ts"
import { Compression } from "./Compression.ts"
import { HookSystem } from "./HookSystem.ts"
import { Model, type ModelError } from "./Model.ts"
import { ReplayModel } from "./ReplayModel.ts"
import { SessionStore, type SessionStoreError } from "./SessionStore.ts"
import { Summarizer } from "./Summarizer.ts"
import type { TempStore } from "./TempStore.ts"
import { TokenCounter } from "./TokenCounter.ts"

/** How a recording is played. */
export interface PlayOptions {
  /** The new session's id. */
  readonly session: string
  /** Of the model, in tokens. */
  readonly window: number
  /** Share of the window from which on is compressed. */
  readonly threshold: number
  /** How is compressed; code writes the snapshots. */
  readonly policy: Partial<Omit<Policy, "limit" | "threshold" | "overhead" | "promptTokens" | "summarizer">>
  /** The conversation that was recorded. */
  readonly recording: Session
}

/** One compression of a replay. Tokens of the request. */
export interface Compressing {
  /** The exchange before whose request it was done, from 1. */
  readonly turn: number
  readonly status: string
  /** Due by the threshold, or forced by the guard because the request would not surely have fitted (law 3). */
  readonly trigger: "threshold" | "guard"
  /** A stronger plan than the strategy's first one was needed, or something failed on the way: what. */
  readonly message: string | null
  readonly before: number
  readonly after: number
}

/** What came of playing a recording. */
export interface Played {
  readonly requests: ReadonlyArray<RequestSize>
  /**
   * Exchanges, from 1, that were left out (results of tools stay): the message fitted in no way, and its answer was taken over,
   * or the answer has calls that no request could hold.
   */
  readonly refused: ReadonlyArray<number>
  /** Those of `refused` that were sent, and have their request: the answer was too large. */
  readonly unanswered: ReadonlyArray<number>
  readonly compressions: ReadonlyArray<Compressing>
  readonly kept: Kept
  /** What the runtime took for all of it, the measuring of what was kept left out. Milliseconds. */
  readonly millis: number
}

/** A runtime that reaches nothing outside: no model, no network, no hooks of the person's. */
const runtime = Compression.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(TokenCounter.layerEstimate, Summarizer.layerExtractive, HookSystem.layer))
)

/** Nothing is learned from a replay beyond its end. */
const calibrations = Layer.effect(
  Calibrations,
  makeCalibrations(noCalibrations, () => Effect.void)
)

/** One call, and no second one: what is recorded does not get better. */
const once = { attempts: 1, first: 0, most: 0 }

const triggerOf = (event: SessionEvent): Compressing["trigger"] | undefined => {
  // Nobody compresses by hand here: what is forced, the guard forced.
  if (event._tag === "Compressed") return event.trigger === "manual" ? "guard" : "threshold"
  if (event._tag === "CompressionFailed") return event.forced ? "guard" : "threshold"
  return undefined
}

const isTooLarge = (error: TurnError): error is ModelError =>
  error._tag === "ModelError" && error.reason._tag === "AnswerTooLargeError"

const isRefusal = (error: TurnError): error is ContextOverflow | ModelError =>
  error._tag === "ContextOverflow" || isTooLarge(error)

/**
 * Holds a recorded conversation again, exchange by exchange, through the real chat in a window of this size. Everything
 * that the chat appends goes to a new session of the store. A first message that does not fit ends it, as then nothing of
 * the conversation makes sense; a later one is left out, as by a person who reads the refusal and goes on; so is an exchange whose calls are too large for it.
 */
export const play = Effect.fn("Replay.play")(
  function* (
    turns: ReadonlyArray<Turn>,
    options: PlayOptions
  ): Effect.fn.Return<
    Played,
    TurnError | SessionStoreError,
    SessionStore | TempStore | Compression | HookSystem | TokenCounter | Calibrations | Scope.Scope
  > {
    const store = yield* SessionStore
    const replay = yield* ReplayModel.make(turns)
    const { recording } = options
    const cwd = recording.started?.cwd
    const model = recording.model ?? "recorded"
    const started: Started = {
      _tag: "Started",
      version: logVersion,
      session: options.session,
      at: recording.started?.at ?? 0,
      estimator: estimatorVersion,
      model,
      ...(cwd === undefined ? {} : { cwd })
    }
    const log = yield* store.create(started)

    const triggers: Array<Compressing["trigger"]> = []
    const moments: Array<Session> = []
    let session = step(emptySession, started)
    const watched = {
      ...log,
      append: (event: SessionEvent) =>
        Effect.tap(log.append(event), () =>
          Effect.sync(() => {
            session = step(session, event)
            const trigger = triggerOf(event)
            if (trigger !== undefined) triggers.push(trigger)
            if (event._tag === "Compressed") moments.push(session)
          })
        )
    }
    const chat = yield* Chat.make({
      log: watched,
      session,
      settings: {
        model,
        window: options.window,
        threshold: options.threshold,
        policy: { ...options.policy, summarizer: "extractive" },
        patience: { call: { ...once, asked: 0 }, answer: once }
      }
    }).pipe(Effect.provideService(Model, replay.model))

    const refused: Array<number> = []
    const unanswered: Array<number> = []
    const compressions: Array<Compressing> = []
    const playOne = Effect.fnUntraced(function* (one: Turn, turn: number) {
      yield* chat.append(one.before)
      const sent = chat.send(one.message).pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => {
            if (event._tag !== "ChatCompressed") return
            const { after, before, message, status } = event
            const trigger = triggers[compressions.length] ?? "threshold"
            compressions.push({ turn, status, trigger, message, before, after })
          })
        )
      )
      yield* Effect.catchIf(
        sent,
        (error): error is ContextOverflow | ModelError => isRefusal(error) && turn > 1,
        Effect.fnUntraced(function* (error) {
          refused.push(turn)
          // An answer that was heard to its end is the recording's last one already.
          if ((yield* replay.next) === one) yield* replay.skip
          if (isTooLarge(error)) unanswered.push(turn)
          else yield* chat.append([{ content: one.answer }])
        })
      )
    })
    const from = yield* Clock.monotonicTimeNanos
    yield* Effect.forEach(turns, (turn, index) => playOne(turn, index + 1), { discard: true })
    const millis = Number((yield* Clock.monotonicTimeNanos) - from) / 1e6
    return {
      requests: yield* replay.requests,
      refused,
      unanswered,
      compressions,
      kept: yield* Work.run(keptOver(moments, session.conversation)),
      millis
    }
  },
  // Built anew: the layers of the program around it are the same values, with other services behind them.
  Effect.provide(Layer.mergeAll(runtime, calibrations), { local: true }),
  Effect.scoped
)
