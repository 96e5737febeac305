import { Context, Effect, Schema, Semaphore } from "effect"
import { isMedia, type Part, text } from "../../domain/content/Content.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import * as Calibration from "../../domain/tokens/Calibration.ts"
import type { CutPrompt } from "../../domain/tokens/CutPrompts.ts"
import * as TextFeatures from "../../domain/tokens/TextFeatures.ts"
import { estimatorVersion, partTokens } from "../../domain/tokens/Tokens.ts"
import { Model, type ModelError, type ModelRequest } from "../model/Model.ts"

/**
 * The learned corrections of the token estimate for each model.
 *
 * *Details*: the counts stored with entries are always the estimator's (`TokenCounter.layerEstimate`), so that they remain comparable. This service
 * alone estimates how far they may fall short of one model's counts.
 */
export class Calibrations extends Context.Service<
  Calibrations,
  {
    /**
     * The tokens that the model's own count of these parts does not exceed (see `Calibration.upperBound`). A part is read only
     * once. Never fails.
     */
    readonly upperBound: (model: string, parts: ReadonlyArray<Part>) => Effect.Effect<number>
    /**
     * The model's likely count of these parts, in tokens: shown to the user and compared with the threshold. Undefined while no
     * count of this model is known; the parts are then not asked for. Never fails.
     */
    readonly expected: (model: string, parts: () => ReadonlyArray<Part>) => Effect.Effect<number | undefined>
    /** The tokens that the model's server probably adds to each request by itself: a part of `expected`. 0 while no count is known. */
    readonly added: (model: string) => Effect.Effect<number>
    /**
     * Learns from a count that the API reported for exactly these parts: every part of the request, including the system instruction and tool
     * declarations if the count includes them (see `partsOf`). If the observation cannot be stored, it is used until the program ends, with one
     * warning. Returns the prompt if the server seems to have cut it: then nothing is learned. Never fails.
     */
    readonly observe: (
      model: string,
      parts: ReadonlyArray<Part>,
      actual: number
    ) => Effect.Effect<CutPrompt | undefined>
  }
>()("palimpsest/services/tokens/Calibrations") {}

/** Calibrations by model, as they are stored: JSON with a version. */
export const StoredCalibrations = Schema.Struct({
  version: Schema.Literal(1),
  /** The version of the features: factors learned with another version mean nothing. */
  features: Schema.String,
  models: Schema.Record(Schema.String, Calibration.Calibration)
})
export type StoredCalibrations = typeof StoredCalibrations.Type

const features = `${estimatorVersion}/${TextFeatures.featuresVersion}`

/** No calibration of any model. */
export const noCalibrations: StoredCalibrations = { version: 1, features, models: {} }

/** Returns stored calibrations, or none if the estimator has changed since. */
export const usableCalibrations = (stored: StoredCalibrations): StoredCalibrations =>
  stored.features === features ? stored : noCalibrations

/** The sum of the features of so many parts. */
interface FeatureSum {
  readonly count: number
  readonly total: TextFeatures.Features
}

const nothing: FeatureSum = { count: 0, total: TextFeatures.sumFeatures([]) }

/** Sums that are kept: of the instruction and the tools alone, and of the last requests. */
const maxSums = 8

/** Sums over the beginnings of the last list of parts: a request is the one before it and some more. Mutable. */
class FeatureSums {
  private readonly known = new WeakMap<Part, TextFeatures.Features>()
  private parts: ReadonlyArray<Part> = []
  private sums: ReadonlyArray<FeatureSum> = []

  /** The longest sum over a beginning of these parts. */
  private before(parts: ReadonlyArray<Part>): FeatureSum {
    let same = 0
    while (same < parts.length && same < this.parts.length && parts[same] === this.parts[same]) same += 1
    return this.sums.findLast(({ count }) => count <= same) ?? nothing
  }

  /** The sum over these parts. A part is read only once. */
  *of(parts: ReadonlyArray<Part>): Work.SlicedWork<TextFeatures.Features> {
    const { count, total } = this.before(parts)
    const more: Array<TextFeatures.Features> = []
    for (const part of parts.slice(count)) {
      const features = this.known.get(part) ?? (yield* TextFeatures.partFeatures(part))
      this.known.set(part, features)
      more.push(features)
    }
    const all = TextFeatures.sumFeatures(more, total)
    this.keep(parts, all)
    return all
  }

  /** Keeps the sum of all of these parts, and those that are still valid. */
  private keep(parts: ReadonlyArray<Part>, total: TextFeatures.Features): void {
    const { count } = this.before(parts)
    // A prefix of a cached list does not replace it.
    const isBeginning = parts.length <= this.parts.length && parts.every((part, index) => part === this.parts[index])
    const others = this.sums.filter((sum) => sum.count !== parts.length && (isBeginning || sum.count <= count))
    if (!isBeginning) this.parts = parts
    const [first, ...rest] = [...others, { count: parts.length, total }].toSorted((one, two) => one.count - two.count)
    this.sums = first === undefined ? [] : [first, ...rest.slice(1 - maxSums)]
  }
}

/** Whether a request is the one before it and more text, whose tokens the estimate knows well. */
const isLonger = (before: ReadonlyArray<Part> | undefined, parts: ReadonlyArray<Part>): boolean =>
  before !== undefined &&
  before.length < parts.length &&
  before.every((part, at) => part === parts[at]) &&
  !parts.slice(before.length).some((part) => isMedia(part) || part.functionResponse?.parts !== undefined)

/**
 * Makes calibrations that begin with `initial` and pass every change to `save`, one at a time: the model, its new calibration, and the observation as
 * a function that applies to calibrations stored by others meanwhile. An interrupted `observe` has both learned and saved, or neither.
 */
export const make = (
  initial: StoredCalibrations,
  save: (
    model: string,
    learned: Calibration.Calibration,
    learn: (before: Calibration.Calibration) => Calibration.Calibration
  ) => Effect.Effect<void>
): Effect.Effect<Calibrations["Service"]> =>
  Effect.gen(function* () {
    const turn = yield* Semaphore.make(1)
    const models = new Map(Object.entries(initial.models))
    const sums = new FeatureSums()
    const of = (model: string) => models.get(model) ?? Calibration.uncalibrated
    /** By model: the parts of the last count, and whether a cut prompt was told. */
    const counted = new Map<string, ReadonlyArray<Part>>()
    const reportedModels = new Set<string>()
    const learn = (model: string, parts: ReadonlyArray<Part>, features: TextFeatures.Features, actual: number) => {
      const isCut = Calibration.isCutCount(of(model), features, actual, isLonger(counted.get(model), parts))
      counted.set(model, parts)
      const next = (before: Calibration.Calibration) =>
        isCut ? Calibration.doubted(before, features, actual) : Calibration.observe(before, features, actual)
      const learned = next(of(model))
      const isNew = isCut && !reportedModels.has(model)
      if (isCut) reportedModels.add(model)
      const cut: CutPrompt | undefined = isCut
        ? { model, estimated: Math.round(TextFeatures.totalTokens(features)), counted: actual, isNew }
        : undefined
      // A count that is not plausible teaches nothing.
      if (learned === of(model)) return Effect.succeed(cut)
      models.set(model, learned)
      return Effect.as(save(model, learned, next), cut)
    }

    return {
      upperBound: Effect.fn("Calibrations.upperBound")(function* (model, parts) {
        return Calibration.upperBound(of(model), yield* Work.run(sums.of(parts)))
      }),
      expected: Effect.fn("Calibrations.expected")(function* (model, parts) {
        const learned = of(model)
        if (learned.observations === 0) return undefined
        return Calibration.expected(learned, yield* Work.run(sums.of(parts())))
      }),
      added: (model) => Effect.sync(() => Calibration.addedTokens(of(model))),
      observe: Effect.fn("Calibrations.observe")(function* (model, parts, actual) {
        const features = yield* Work.run(sums.of(parts))
        return yield* Effect.suspend(() => learn(model, parts, features, actual)).pipe(
          Effect.uninterruptible,
          turn.withPermit
        )
      })
    }
  })

/** The parts of a request outside its contents: the system instruction and the tool declarations. */
export const overheadParts = ({ systemInstruction, tools = [] }: ModelRequest): ReadonlyArray<Part> => [
  ...(systemInstruction === undefined ? [] : [text(systemInstruction)]),
  ...tools.map((tool) => text(JSON.stringify(tool)))
]

/** The parts of a request's contents, in order. */
export const contentParts = ({ contents }: ModelRequest): ReadonlyArray<Part> =>
  contents.flatMap((content) => content.parts)

/** All parts of a request: what its usage reports as the prompt. */
export const requestParts = (request: ModelRequest): ReadonlyArray<Part> => [
  ...overheadParts(request),
  ...contentParts(request)
]

/**
 * The estimated tokens of a request's contents, for models that cannot count.
 *
 * **Example** (Estimating a request)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Content, Tokens } from "palimpsest"
 *
 * const request = {
 *   model: "gemini-2.5-flash",
 *   contents: [Content.user(Content.text("Why does the build fail?"))]
 * }
 * console.log(await Effect.runPromise(Tokens.estimateContents(request))) // => 6
 * ```
 */
export const estimateContents = Effect.fnUntraced(function* (request: ModelRequest): Effect.fn.Return<number> {
  let tokens = 0
  for (const part of contentParts(request)) tokens += yield* Work.run(partTokens(part))
  return tokens
})

/** The tokens of a request. */
export interface RequestCount {
  /** An upper bound of the model's count, as far as it is known. */
  readonly tokens: number
  /** How the contents were counted. Instruction and tools are always an upper bound, because `countTokens` does not count them. */
  readonly by: "model" | "bound"
  /** Why the model's own count failed. Null: it succeeded or was not tried. */
  readonly countError: ModelError | null
}

/**
 * Counts a whole request. The model counts the contents; if that fails, the upper bound is used, and the result holds the failure. A count by the
 * model is learned. Never fails; interruptible.
 *
 * **Example** (Counting before a request is sent)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Content, Palimpsest, Tokens } from "palimpsest"
 * import { ScriptedModel } from "palimpsest/testing"
 *
 * const request = { model: "scripted", contents: [Content.user(Content.text("Why does the build fail?"))] }
 * const counted = Tokens.countRequest(request).pipe(
 *   Effect.provide(Palimpsest.layer({ model: ScriptedModel.layer([]) }))
 * )
 * console.log(await Effect.runPromise(counted)) // => { tokens: 6, by: 'model', countError: null }
 * ```
 */
export const countRequest = Effect.fn("Calibrations.countRequest")(function* (
  request: ModelRequest
): Effect.fn.Return<RequestCount, never, Calibrations | Model> {
  const calibrations = yield* Calibrations
  const model = yield* Model
  const overhead = overheadParts(request)
  const content = contentParts(request)
  const counted = yield* Effect.result(model.countTokens(request))
  if (counted._tag === "Failure") {
    const tokens = yield* calibrations.upperBound(request.model, [...overhead, ...content])
    return { tokens, by: "bound", countError: counted.failure }
  }
  yield* calibrations.observe(request.model, content, counted.success)
  const rest = overhead.length === 0 ? 0 : yield* calibrations.upperBound(request.model, overhead)
  return { tokens: counted.success + rest, by: "model", countError: null }
})
