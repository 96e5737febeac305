import { Context, Effect } from "effect"
import {
  type CheckSchedule,
  defaultThresholds,
  firstCheckTurn,
  isCheckDue,
  type Loop,
  LoopDetector as Detector,
  type LoopThresholds,
  newSchedule,
  nextInterval,
  confidenceOfLoop
} from "../../domain/agent/LoopDetection.ts"
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
  /** The conversation's model, which checks where it is not Google's. */
  readonly family: string
}

/** The thresholds of Gemini CLI, March 2026. */
export const defaultLoopSettings: LoopSettings = {
  enabled: true,
  thresholds: defaultThresholds,
  check: true,
  checkAfter: firstCheckTurn,
  confirm: true,
  family: ""
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
 * Detects loops of one agent. A detected loop is reported until the next turn starts: by then the model has been informed, and earlier content no
 * longer counts, so a second report means that the loop started anew.
 */
export interface LoopDetector {
  /** Starts another run. */
  readonly reset: Effect.Effect<void>
  /** Adds a call of the model. */
  readonly call: (name: string, args: unknown) => Effect.Effect<Loop | undefined>
  /** Adds the answer to a call: a call whose answer changes makes progress. */
  readonly result: (name: string, args: unknown, output: string) => Effect.Effect<void>
  /** Adds a piece of the answer; the cuts between pieces do not matter. */
  readonly content: (text: string) => Effect.Effect<Loop | undefined>
  /** Forgets the current answer, because the model starts it again. */
  readonly again: Effect.Effect<void>
  /** Starts a turn. A model checks the contents if that is due; they are computed only then. */
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

/** The detector of one run. */
interface Run {
  readonly settings: LoopSettings
  readonly context: Context.Context<Model>
  readonly detector: Detector
  strikes: number
  schedule: CheckSchedule
}

/** Counts a loop once, however often it is reported. */
const counted = (run: Run, detect: () => Loop | undefined) =>
  Effect.sync(() => {
    const before = run.detector.loop
    const loop = detect()
    if (loop !== undefined && before === undefined) run.strikes += 1
    return loop
  })

const askModel = Effect.fn("LoopDetector.look")(function* (
  run: Run,
  contents: ReadonlyArray<Content>,
  original: string
): Effect.fn.Return<Loop | undefined> {
  const { confirm, family } = run.settings
  const verdict = yield* Effect.provideContext(check({ contents, original, family, confirm }), run.context)
  if (verdict === undefined) return undefined
  run.schedule = { ...run.schedule, interval: nextInterval(verdict.confidence) }
  if (verdict.confidence < confidenceOfLoop) return undefined
  run.strikes += 1
  return { kind: "approach", detail: verdict.analysis === "" ? "it comes no closer to the goal" : verdict.analysis }
})

const startTurn = (run: Run, contents: Effect.Effect<ReadonlyArray<Content>>, original: string) =>
  Effect.suspend(() => {
    const { detector, schedule, settings } = run
    if (detector.loop === undefined) detector.answer()
    else detector.reset()
    const turns = schedule.turns + 1
    const isDue = settings.check && isCheckDue({ ...schedule, turns }, settings.checkAfter)
    run.schedule = { ...schedule, turns, lastCheck: isDue ? turns : schedule.lastCheck }
    return isDue ? Effect.flatMap(contents, (all) => askModel(run, all, original)) : Effect.undefined
  })

/** Makes the detector of one agent. It never fails: what cannot be checked is not a loop. */
export const make = Effect.fn("LoopDetector.make")(function* (
  changed: Partial<LoopSettings> = {}
): Effect.fn.Return<LoopDetector, never, Model> {
  const settings = { ...defaultLoopSettings, ...changed }
  if (!settings.enabled) return off
  const context = Context.pick(Model)(yield* Effect.context<Model>())
  const detector = new Detector(settings.thresholds)
  const run: Run = { settings, context, detector, strikes: 0, schedule: newSchedule }
  return {
    reset: Effect.sync(() => {
      detector.reset()
      run.strikes = 0
      run.schedule = newSchedule
    }),
    call: (name, args) => counted(run, () => detector.call(name, args)),
    result: (name, args, output) => Effect.sync(() => detector.result(name, args, output)),
    content: (text) => counted(run, () => detector.content(text)),
    again: Effect.sync(() => detector.answer()),
    turn: (contents, original) => startTurn(run, contents, original),
    strikes: Effect.sync(() => run.strikes)
  }
})
