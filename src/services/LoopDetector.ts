import { Context, Effect } from "effect"
import type { Content } from "../domain/Content.ts"
import {
  defaultThresholds,
  firstCheck,
  firstInterval,
  type Loop,
  LoopDetector as Detector,
  type LoopThresholds,
  nextInterval,
  sure
} from "../domain/LoopDetection.ts"
import type { ModelOverrides } from "../domain/ModelPurpose.ts"
import { check } from "./LoopCheck.ts"
import { Model } from "./Model.ts"

/** How loops are looked for. */
export interface LoopSettings {
  /** Whether at all. */
  readonly enabled: boolean
  readonly thresholds: LoopThresholds
  /** Whether a model looks, too; `confirm`: and a stronger one when it says yes. */
  readonly check: boolean
  /** The turn of one run from which on it does (spec 12: 30). */
  readonly checkAfter: number
  readonly confirm: boolean
  /** Other models than the known ones for that. */
  readonly models: ModelOverrides
}

/** As in spec 12. */
export const defaultLoopSettings: LoopSettings = {
  enabled: true,
  thresholds: defaultThresholds,
  check: true,
  checkAfter: firstCheck,
  confirm: true,
  models: {}
}

/** The numbers of it that a person sets (`Settings.loopDetection`). */
export interface LoopNumbers extends Pick<LoopThresholds, "calls" | "content" | "chunk" | "history"> {
  readonly checkAfter: number
}

/** How loops are looked for with these numbers; undefined: not at all. */
export const fromNumbers = (numbers: LoopNumbers | undefined): Partial<LoopSettings> => {
  if (numbers === undefined) return { enabled: false }
  const { checkAfter, ...thresholds } = numbers
  return { checkAfter, thresholds: { ...defaultThresholds, ...thresholds } }
}

/**
 * Watches one agent for loops (spec 12). A loop that was found is told of until the next turn begins: by then the model was
 * told, and what came before counts no more, so that one nudge is followed by the next only if all begins anew.
 */
export interface LoopDetector {
  /** Another run begins. */
  readonly reset: Effect.Effect<void>
  /** A call the model asks for. */
  readonly call: (name: string, args: unknown) => Effect.Effect<Loop | undefined>
  /** What it was answered: a call whose answer changes makes progress. */
  readonly result: (name: string, args: unknown, output: string) => Effect.Effect<void>
  /** A piece of the answer, however it is cut. */
  readonly content: (text: string) => Effect.Effect<Loop | undefined>
  /** The answer was dropped and begins anew: its words count no more. */
  readonly again: Effect.Effect<void>
  /** Before a turn: a look by a model, where that is due; only then are the contents made. */
  readonly turn: (contents: Effect.Effect<ReadonlyArray<Content>>, original: string) => Effect.Effect<Loop | undefined>
  /** Loops found in this run. */
  readonly strikes: Effect.Effect<number>
}

/** Finds nothing. */
export const off: LoopDetector = {
  reset: Effect.void,
  call: () => Effect.undefined,
  result: () => Effect.void,
  content: () => Effect.undefined,
  again: Effect.void,
  turn: () => Effect.undefined,
  strikes: Effect.succeed(0)
}

/** A detector of its own for one agent. Nothing of it ever fails: what cannot be looked at is no loop. */
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

  /** A loop counts once, however often it is told of. */
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
    if (verdict.confidence < sure) return undefined
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
