import { Context, Effect, Layer, Stream } from "effect"
import { model as modelContent, type Part, text } from "../domain/Content.ts"
import { estimate } from "../services/Calibrations.ts"
import { Model, type ModelAnswer, type ModelChunk, ModelError, type ModelRequest } from "../services/Model.ts"

/** An answer that never comes: for tests of cancelling and of time limits. */
export const hang = { _tag: "Hang" } as const

/** What the model does when it is called: say a text, give a whole answer, fail, or hang. */
export type Step = string | ModelAnswer | ModelError | typeof hang

/** The steps of `generate` and `stream` in the order of the calls, or a function of the request and the number of calls before. */
export type Answers = ReadonlyArray<Step> | ((request: ModelRequest, index: number) => Step)

/** A call that was made, in the order in which calls began. */
export interface Call {
  readonly method: "generate" | "stream" | "countTokens"
  readonly request: ModelRequest
}

/** What a scripted model has been through. */
export class Script extends Context.Service<
  Script,
  {
    /** Every call so far, those that failed or hang among them. */
    readonly calls: Effect.Effect<ReadonlyArray<Call>>
    /** Steps that nobody asked for yet; none where the script is a function. */
    readonly left: Effect.Effect<number>
    /** Hanging calls that were interrupted. */
    readonly interrupted: Effect.Effect<number>
  }
>()("palimpsest/layers/ScriptedModel/Script") {}

const answerOf = (step: string | ModelAnswer): ModelAnswer =>
  typeof step === "string" ? { content: modelContent(text(step)), finishReason: "STOP", usage: null } : step

/** Texts come line by line, anything else whole. */
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
 * A model that says what it is told to, for tests: the same script gives the same run. Calls are recorded in `Script`. A call
 * of `generate` or `stream` without a step left dies, so that a test sees it. A stream brings an answer line by line
 * and then its finish reason. `countTokens` is the estimator's count unless `count` says another or fails.
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
            return Effect.die(new Error(`call ${index + 1} (${method}) of a script of ${answers.length} answers`))
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
          const counted = count?.(request) ?? (yield* estimate(request))
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
