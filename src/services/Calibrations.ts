import { Context, Effect, Schema, Semaphore } from "effect"
import * as Calibration from "../domain/Calibration.ts"
import { outputText, type Part, text } from "../domain/Content.ts"
import { estimatorVersion, partTokens } from "../domain/Tokens.ts"
import * as Work from "../domain/Work.ts"
import { Model, type ModelError, type ModelRequest } from "./Model.ts"

/**
 * What has been learned of every model's own counting. The counts that are kept with entries stay the estimator's
 * (`TokenCounter.layerEstimate`), so that they stay comparable whatever is learned; this service alone says how much they may be
 * short of the truth for one model.
 */
export class Calibrations extends Context.Service<
  Calibrations,
  {
    /**
     * Tokens that the model's own count of these parts does not exceed (see `Calibration.upperBound`). Parts that were
     * asked about before are not read again. Never fails.
     */
    readonly upperBound: (model: string, parts: ReadonlyArray<Part>) => Effect.Effect<number>
    /**
     * The model's likely count of these parts, in tokens: what people are shown and what triggers go by. Undefined while
     * no count of this model is known. Never fails.
     */
    readonly expected: (model: string, parts: ReadonlyArray<Part>) => Effect.Effect<number | undefined>
    /**
     * Learns from a count that the API reported for exactly these parts: every part of the request, the system
     * instruction and tool declarations too where the count includes them (see `partsOf`). What cannot be stored is still
     * known until the program ends; that is warned of once. Never fails.
     */
    readonly observe: (model: string, parts: ReadonlyArray<Part>, actual: number) => Effect.Effect<void>
  }
>()("palimpsest/services/Calibrations") {}

/** Calibrations by model, as they are stored: JSON with a version. */
export const Stored = Schema.Struct({
  version: Schema.Literal(1),
  /** What the features were counted with; factors learned with others mean nothing. */
  features: Schema.String,
  models: Schema.Record(Schema.String, Calibration.Calibration)
})
export type Stored = typeof Stored.Type

const features = `${estimatorVersion}/${Calibration.featuresVersion}`

/** No model is known. */
export const empty: Stored = { version: 1, features, models: {} }

/** What was stored, as far as it still means something: nothing, once the estimator has changed. */
export const current = (stored: Stored): Stored => (stored.features === features ? stored : empty)

/**
 * Calibrations that begin with `initial` and hand every change to `save`, one after the other: the model and what is known of it
 * now, and what was observed as a change of what others may have stored meanwhile. An interrupted `observe` has learned and saved,
 * or neither.
 */
export const make = (
  initial: Stored,
  save: (
    model: string,
    learned: Calibration.Calibration,
    learn: (before: Calibration.Calibration) => Calibration.Calibration
  ) => Effect.Effect<void>
): Effect.Effect<Calibrations["Service"]> =>
  Effect.gen(function* () {
    const turn = yield* Semaphore.make(1)
    const known = new WeakMap<Part, Calibration.Features>()
    const models = new Map(Object.entries(initial.models))

    const featuresOf = Effect.fnUntraced(function* (parts: ReadonlyArray<Part>) {
      const found: Array<Calibration.Features> = []
      for (const part of parts) {
        const features = known.get(part) ?? (yield* Work.run(Calibration.partFeatures(part)))
        known.set(part, features)
        found.push(features)
      }
      return Calibration.sum(found)
    })
    const of = (model: string) => models.get(model) ?? Calibration.cold

    return {
      upperBound: Effect.fn("Calibrations.upperBound")(function* (model, parts) {
        return Calibration.upperBound(of(model), yield* featuresOf(parts))
      }),
      expected: Effect.fn("Calibrations.expected")(function* (model, parts) {
        return Calibration.expected(of(model), yield* featuresOf(parts))
      }),
      observe: Effect.fn("Calibrations.observe")(function* (model, parts, actual) {
        const features = yield* featuresOf(parts)
        yield* turn.withPermits(1)(
          Effect.uninterruptible(
            Effect.suspend(() => {
              const learn = (before: Calibration.Calibration) => Calibration.observe(before, features, actual)
              const learned = learn(of(model))
              models.set(model, learned)
              return save(model, learned, learn)
            })
          )
        )
      })
    }
  })

/** The system instruction and the tool declarations of a request, as parts: what is sent beside its contents. */
export const partsBeside = ({ systemInstruction, tools = [] }: ModelRequest): ReadonlyArray<Part> => [
  ...(systemInstruction === undefined ? [] : [text(systemInstruction)]),
  ...tools.map((tool) => text(JSON.stringify(tool)))
]

/** The parts of a request's contents, in order. */
export const partsWithin = ({ contents }: ModelRequest): ReadonlyArray<Part> =>
  contents.flatMap((content) => content.parts)

/** Everything a request sends, as parts: what its usage reports as the prompt. */
export const partsOf = (request: ModelRequest): ReadonlyArray<Part> => [
  ...partsBeside(request),
  ...partsWithin(request)
]

/** What the estimator says of a request's contents: for models that cannot count. */
export const estimate = Effect.fnUntraced(function* (request: ModelRequest): Effect.fn.Return<number> {
  let tokens = 0
  for (const part of partsWithin(request)) tokens += yield* Work.run(partTokens(part, outputText(part)))
  return tokens
})

/** How many tokens a request has. */
export interface Count {
  /** Never less than the model will count, as far as that can be said (law 3). */
  readonly tokens: number
  /** Who counted the contents. Instruction and tools are always bounded: `countTokens` does not count them. */
  readonly by: "model" | "bound"
  /** Why the bound had to stand in for the model's own count. */
  readonly fellBack: ModelError | null
}

/**
 * Counts a whole request: its contents by the model itself, and where that fails by the bound, with the failure in the
 * answer. A count by the model is learned from. Never fails; interruptible.
 */
export const count = Effect.fn("Calibrations.count")(function* (
  request: ModelRequest
): Effect.fn.Return<Count, never, Calibrations | Model> {
  const calibrations = yield* Calibrations
  const model = yield* Model
  const beside = partsBeside(request)
  const within = partsWithin(request)
  const counted = yield* Effect.result(model.countTokens(request))
  if (counted._tag === "Failure") {
    const tokens = yield* calibrations.upperBound(request.model, [...beside, ...within])
    return { tokens, by: "bound", fellBack: counted.failure }
  }
  yield* calibrations.observe(request.model, within, counted.success)
  const rest = beside.length === 0 ? 0 : yield* calibrations.upperBound(request.model, beside)
  return { tokens: counted.success + rest, by: "model", fellBack: null }
})
