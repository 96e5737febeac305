import { Context, Effect } from "effect"
import {
  defaultThresholds,
  firstCheckTurn,
  firstInterval,
  type Loop,
  LoopDetector as Detector,
  type LoopThresholds,
  nextInterval,
  confidenceOfLoop
} from "../../domain/agent/LoopDetection.ts"
import type { ModelOverrides } from "../../domain/compression/ModelPurpose.ts"
import type { Content } from "../../domain/content/Content.ts"
import { Model } from "../model/Model.ts"
import { check } from "./LoopCheck.ts"

/** Settings of loop detection. */
export interface LoopSettings {
  /** Whether loop detection is on. */
  readonly enabled: boolean
  readonly thresholds: LoopThresholds
  /** Whether a model checks, too. `confirm`: a stronger model confirms its positive verdict. */
  readonly check: boolean
  /** The turn of a run from which on the model checks. */
  readonly checkAfter: number
  readonly confirm: boolean
  /** Models to use for the check in place of the defaults. */
  readonly models: ModelOverrides
}

/** The thresholds of Gemini CLI, March 2026. */
export const defaultLoopSettings: LoopSettings = {
  enabled: true,
  thresholds: defaultThresholds,
  check: true,
  checkAfter: firstCheckTurn,
  confirm: true,
  models: {}
}

/** The numbers that a user can set (`Settings.loopDetection`). */
export interface LoopNumbers extends Pick<LoopThresholds, "calls" | "content" | "chunk" | "history"> {
  readonly checkAfter: number
}

/** Settings of loop detection from these numbers. Undefined: detection is off. */
export const fromNumbers = (numbers: LoopNumbers | undefined): Partial<LoopSettings> => {
  if (numbers === undefined) return { enabled: false }
  const { checkAfter, ...thresholds } = numbers
  return { checkAfter, thresholds: { ...defaultThresholds, ...thresholds } }
}

/**
 * Detects loops of one agent. A detected loop is reported until the next turn begins: by then the model has been informed, and earlier content no
 * longer counts, so a second report means that the loop started anew.
 */
export interface LoopDetector {
  /** Begins another run. */
  readonly reset: Effect.Effect<void>
  /** Adds a call of the model. */
  readonly call: (name: string, args: unknown) => Effect.Effect<Loop | undefined>
  /** Adds the answer to a call: a call whose answer changes makes progress. */
  readonly result: (name: string, args: unknown, output: string) => Effect.Effect<void>
  /** Adds a piece of the answer; the cuts between pieces do not matter. */
  readonly content: (text: string) => Effect.Effect<Loop | undefined>
  /** Forgets the current answer, because the model begins it again. */
  readonly again: Effect.Effect<void>
  /** Begins a turn. A model checks the contents if that is due; they are computed only then. */
  readonly turn: (contents: Effect.Effect<ReadonlyArray<Content>>, original: string) => Effect.Effect<Loop | undefined>
  /** The number of loops detected in this run. */
  readonly strikes: Effect.Effect<number>
}

/** A detector that never reports a loop. */
export const off: LoopDetector = {
  reset: Effect.void,
  call: () => Effect.undefined,
  result: () => Effect.void,
  content: () => Effect.undefined,
  again: Effect.void,
  turn: () => Effect.undefined,
  strikes: Effect.succeed(0)
}

/** Makes the detector of one agent. It never fails: what cannot be checked is not a loop. */
export const make = Effect.fn("LoopDetector.make")(function* (
  given: Partial<LoopSettings> = {}
): Effect.fn.Return<LoopDetector, never, Model> {
  const settings = { ...defaultLoopSettings, ...given }
  if (!settings.enabled) return off
  const context = Context.pick(Model)(yield* Effect.context<Model>())
  const detector = new Detector(settings.thresholds)
  let strikes = 0
  let turns = 0
  let checked = 0
  let interval = firstInterval

  /** Counts a loop once, however often it is reported. */
  const noting = (look: () => Loop | undefined) =>
    Effect.sync(() => {
      const before = detector.loop
      const loop = look()
      if (loop !== undefined && before === undefined) strikes += 1
      return loop
    })

  const look = Effect.fn("LoopDetector.look")(function* (
    contents: ReadonlyArray<Content>,
    original: string
  ): Effect.fn.Return<Loop | undefined> {
    const { confirm, models } = settings
    const verdict = yield* Effect.provideContext(check({ contents, original, models, confirm }), context)
    if (verdict === undefined) return undefined
    interval = nextInterval(verdict.confidence)
    if (verdict.confidence < confidenceOfLoop) return undefined
    strikes += 1
    return { kind: "approach", detail: verdict.analysis === "" ? "it comes no closer to the goal" : verdict.analysis }
  })

  return {
    reset: Effect.sync(() => {
      detector.reset()
      strikes = 0
      turns = 0
      checked = 0
      interval = firstInterval
    }),
    call: (name, args) => noting(() => detector.call(name, args)),
    result: (name, args, output) => Effect.sync(() => detector.result(name, args, output)),
    content: (text) => noting(() => detector.content(text)),
    again: Effect.sync(() => detector.answer()),
    turn: (contents, original) =>
      Effect.suspend(() => {
        if (detector.loop === undefined) detector.answer()
        else detector.reset()
        turns += 1
        const isDue = checked === 0 ? turns >= settings.checkAfter : turns - checked >= interval
        if (!settings.check || !isDue) return Effect.undefined
        checked = turns
        return Effect.flatMap(contents, (all) => look(all, original))
      }),
    strikes: Effect.sync(() => strikes)
  }
})
