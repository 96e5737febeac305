/** Plays a model from a script, and records its calls. */

import { Context, Effect, Layer, Stream } from "effect"
import { model as modelContent, type Part, text } from "../../domain/content/Content.ts"
import { Model, type ModelAnswer, type ModelChunk, ModelError, type ModelRequest } from "../../services/model/Model.ts"
import { estimateContents } from "../../services/tokens/Calibrations.ts"

/** A step that never answers: for tests of cancelling and of time limits. */
export const hang = { _tag: "Hang" } as const

/** One answer of the model: a text, a whole answer, a failure, or no answer. */
export type Step = string | ModelAnswer | ModelError | typeof hang

/** The steps of `generate` and `stream` in the order of the calls, or a function of the request and the number of earlier calls. */
export type Answers = ReadonlyArray<Step> | ((request: ModelRequest, index: number) => Step)

/** A recorded call, in the order in which calls began. */
export interface Call {
  readonly method: "generate" | "stream" | "countTokens"
  readonly request: ModelRequest
}

/** The record of a scripted model. */
export class Script extends Context.Service<
  Script,
  {
    /** Every call so far, including those that failed or hang. */
    readonly calls: Effect.Effect<ReadonlyArray<Call>>
    /** The number of unused steps; 0 when the script is a function. */
    readonly left: Effect.Effect<number>
    /** The number of hanging calls that were interrupted. */
    readonly interrupted: Effect.Effect<number>
  }
>()("palimpsest/layers/ScriptedModel/Script") {}

const answerOf = (step: string | ModelAnswer): ModelAnswer =>
  typeof step === "string" ? { content: modelContent(text(step)), finishReason: "STOP", usage: null } : step

/** Splits a part for a stream: texts line by line, anything else whole. */
const pieces = (part: Part): ReadonlyArray<Part> =>
  part.text === undefined || part.text === ""
    ? [part]
    : part.text.split(/(?<=\n)/).map((line) => ({ ...part, text: line }))

const chunksOf = ({ content, finishReason, usage }: ModelAnswer): ReadonlyArray<ModelChunk> => [
  ...content.parts.flatMap(pieces).map((part) => ({ parts: [part] })),
  { parts: [], finishReason, ...(usage === null ? {} : { usage }) }
]

const isFailure = (step: Step | number): step is ModelError => step instanceof ModelError

/**
 * A model with scripted answers, for tests: the same script gives the same run. Calls are recorded in `Script`. A call of `generate` or
 * `stream` without a step left dies, so that the test notices it. A stream emits an answer line by line and then its finish reason.
 * `countTokens` returns the estimate, unless `count` returns another number or fails.
 *
 * **Example** (Testing a turn without a network)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Content, Models } from "palimpsest"
 * import { ScriptedModel } from "palimpsest/testing"
 *
 * const busy = new Models.ModelError({ reason: new Models.RateLimitError({}) })
 * const request = { model: "scripted", contents: [Content.user(Content.text("When?"))] }
 * const twice = Effect.gen(function* () {
 *   const model = yield* Models.Model
 *   const first = yield* Effect.result(model.generate(request))
 *   const second = yield* model.generate(request)
 *   return [first._tag, Content.plainText(second.content)]
 * })
 * console.log(await Effect.runPromise(Effect.provide(twice, ScriptedModel.layer([busy, "In 1743."])))) // => [ 'Failure', 'In 1743.' ]
 * ```
 */
export const layer = (
  answers: Answers,
  count?: (request: ModelRequest) => number | ModelError
): Layer.Layer<Model | Script> =>
  Layer.effectContext(
    Effect.sync(() => {
      const calls: Array<Call> = []
      let used = 0
      let interrupted = 0

      const hanging = Effect.onInterrupt(Effect.never, () =>
        Effect.sync(() => {
          interrupted += 1
        })
      )

      const next = (method: "generate" | "stream", request: ModelRequest) =>
        Effect.suspend((): Effect.Effect<ModelAnswer, ModelError> => {
          calls.push({ method, request })
          const index = used
          used += 1
          const step = typeof answers === "function" ? answers(request, index) : answers[index]
          if (step === undefined) {
            const end =
              typeof answers === "function" ? "the script's function" : `the script of ${answers.length} answers`
            return Effect.die(new Error(`${end} has no step for call ${index + 1} (${method})`))
          }
          if (isFailure(step)) return Effect.fail(step)
          return typeof step === "string" || !("_tag" in step) ? Effect.succeed(answerOf(step)) : hanging
        })

      const model = Model.of({
        generate: Effect.fn("Model.generate")((request) => next("generate", request)),
        stream: (request) =>
          Stream.unwrap(Effect.map(next("stream", request), (answer) => Stream.fromIterable(chunksOf(answer)))),
        countTokens: Effect.fn("Model.countTokens")(function* (request) {
          calls.push({ method: "countTokens", request })
          const counted = count?.(request) ?? (yield* estimateContents(request))
          return isFailure(counted) ? yield* counted : counted
        })
      })
      const script = Script.of({
        calls: Effect.sync(() => [...calls]),
        left: Effect.sync(() => (typeof answers === "function" ? 0 : Math.max(0, answers.length - used))),
        interrupted: Effect.sync(() => interrupted)
      })
      return Context.make(Model, model).pipe(Context.add(Script, script))
    })
  )
