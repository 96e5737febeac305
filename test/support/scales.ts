import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { model, type Part, text } from "../../src/domain/content/Content.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { partTokens } from "../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../src/layers/testing/ScriptedModel.ts"
import type { ModelRequest } from "../../src/services/model/Model.ts"
import { contentParts, overheadParts } from "../../src/services/tokens/Calibrations.ts"

/** Budgets, limits and reports at several numbers of the model's tokens per estimated token. */

/** Estimated tokens of these parts. */
export const estimated = (parts: ReadonlyArray<Part>): number =>
  parts.reduce((total, part) => total + Work.runSync(partTokens(part)), 0)

/** Estimated tokens of a request. */
export const estimateOf = (request: ModelRequest): number =>
  estimated([...overheadParts(request), ...contentParts(request)])

/** A runtime with a model that counts `scale` tokens for an estimated one, and says so with each answer. */
export const countingBy = (scale: number, answer: (request: ModelRequest) => Scripted.Step = () => "fine") =>
  Layer.fresh(
    Offline.layerWithModel(
      Scripted.layer(
        (request): Scripted.Step => {
          const step = answer(request)
          if (typeof step !== "string") return step
          const usage = { prompt: Math.ceil(estimateOf(request) * scale), answer: 1, thoughts: 0, cached: 0 }
          return { content: model(text(step)), finishReason: "STOP", usage }
        },
        ({ contents, model: name }) => Math.ceil(estimateOf({ contents, model: name }) * scale)
      )
    )
  )

/** What a scene measures: in the model's tokens, and in estimated tokens or other units that no scale changes. */
export interface Measured {
  readonly tokens?: Readonly<Record<string, number>>
  readonly estimated?: Readonly<Record<string, number>>
}

/** The share by which a calibration may miss. */
const tolerance = 0.05

/**
 * Runs a scene at the scales 0.5, 1 and 2. It multiplies each of its limits by the scale: then the conversation goes the same
 * way, and each number of tokens that is reported is so many times larger.
 */
export const atScales = <E, R>(scene: (scale: number) => Effect.Effect<Measured, E, R>) =>
  Effect.gen(function* () {
    const [one, half, double] = yield* Effect.all([scene(1), scene(0.5), scene(2)])
    for (const [scale, measured] of [
      [0.5, half],
      [2, double]
    ] as const) {
      const close = (kind: keyof Measured, factor: number) => {
        for (const [name, expected] of Object.entries(one[kind] ?? {})) {
          const actual = (measured[kind]?.[name] ?? Number.NaN) / factor
          assert.closeTo(actual, expected, Math.max(1, expected * tolerance), `${name} at a scale of ${scale}`)
        }
      }
      close("tokens", scale)
      close("estimated", 1)
    }
    return one
  })
