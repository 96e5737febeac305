/** Plays an `effect/ai` language model from a script, and records its requests. */

import { Context, Effect, Layer, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"

/** A step that never answers: for tests of cancelling and of time limits. */
export const hang = { _tag: "Hang" } as const

/** One answer of the model: a text, parts (the last of which may hang), a failure, or no answer. */
export type Step = string | ReadonlyArray<Response.PartEncoded | typeof hang> | AiError.AiError | typeof hang

/** The steps in the order of the calls, or a function of the request and the number of earlier calls. */
export type Answers = ReadonlyArray<Step> | ((request: LanguageModel.ProviderOptions, index: number) => Step)

/** The record of a scripted language model. */
export class Script extends Context.Service<
  Script,
  {
    /** The requests that reached the provider, in the order in which calls began. */
    readonly requests: Effect.Effect<ReadonlyArray<LanguageModel.ProviderOptions>>
    /** The number of hanging calls that were interrupted. */
    readonly interrupted: Effect.Effect<number>
  }
>()("palimpsest/layers/ScriptedLanguageModel/Script") {}

const finish: Response.FinishPartEncoded = {
  type: "finish",
  reason: "stop",
  usage: { inputTokens: {}, outputTokens: {} }
}

interface Answer {
  readonly parts: Array<Response.PartEncoded>
  /** Whether nothing follows the parts, not even an end. */
  readonly hangs: boolean
}

const isPart = (part: Response.PartEncoded | typeof hang): part is Response.PartEncoded => "type" in part

const answerOf = (step: Exclude<Step, AiError.AiError>): Answer => {
  if (typeof step === "string") return { parts: [{ type: "text", text: step }, finish], hangs: false }
  if ("_tag" in step) return { parts: [], hangs: true }
  const parts = step.filter(isPart)
  const hangs = parts.length < step.length
  return { parts: hangs || parts.some((part) => part.type === "finish") ? parts : [...parts, finish], hangs }
}

/** Splits a part for a stream: texts and thoughts line by line, anything else whole. */
const streamed = (part: Response.PartEncoded, index: number): ReadonlyArray<Response.StreamPartEncoded> => {
  const id = `part-${index}`
  if (part.type === "text") {
    const deltas = part.text.split(/(?<=\n)/).map((delta) => ({ type: "text-delta", id, delta }) as const)
    return [{ type: "text-start", id }, ...deltas, { type: "text-end", id, metadata: part.metadata }]
  }
  if (part.type === "reasoning") {
    const deltas = part.text.split(/(?<=\n)/).map((delta) => ({ type: "reasoning-delta", id, delta }) as const)
    return [{ type: "reasoning-start", id }, ...deltas, { type: "reasoning-end", id, metadata: part.metadata }]
  }
  return [part]
}

const isFailure = (step: Step): step is AiError.AiError => AiError.isAiError(step)

/**
 * An `effect/ai` language model with scripted answers, for tests: the same script gives the same run. Requests are recorded in `Script`.
 * A call without a step left dies, so that the test notices it. Tools are resolved as with any other model. A stream emits one part at a
 * time, then hangs, fails or ends with its finish reason.
 *
 * **Example** (Testing a program of effect/ai without a network)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import { ScriptedLanguageModel } from "palimpsest/testing"
 *
 * const answer = LanguageModel.generateText({ prompt: "When?" })
 * const scripted = ScriptedLanguageModel.layer(
 *   (request, index) => `call ${index}: ${request.prompt.content.length} message`
 * )
 * console.log((await Effect.runPromise(Effect.provide(answer, scripted))).text) // => call 0: 1 message
 * ```
 */
export const layer = (answers: Answers): Layer.Layer<LanguageModel.LanguageModel | Script> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const requests: Array<LanguageModel.ProviderOptions> = []
      let interrupted = 0

      const hanging = Effect.onInterrupt(Effect.never, () =>
        Effect.sync(() => {
          interrupted += 1
        })
      )

      const next = (request: LanguageModel.ProviderOptions) =>
        Effect.suspend((): Effect.Effect<Answer, AiError.AiError> => {
          const index = requests.push(request) - 1
          const step = typeof answers === "function" ? answers(request, index) : answers[index]
          if (step === undefined) {
            return Effect.die(new Error(`call ${index + 1} of a script of ${answers.length} answers`))
          }
          return isFailure(step) ? Effect.fail(step) : Effect.succeed(answerOf(step))
        })

      const model = yield* LanguageModel.make({
        generateText: (request) =>
          Effect.flatMap(next(request), ({ hangs, parts }) => (hangs ? hanging : Effect.succeed(parts))),
        streamText: (request) =>
          Stream.unwrap(
            Effect.map(next(request), ({ hangs, parts }) =>
              Stream.fromIterable(parts.flatMap(streamed)).pipe(
                Stream.rechunk(1),
                Stream.concat(hangs ? Stream.fromEffectDrain(hanging) : Stream.empty)
              )
            )
          )
      })
      const script = Script.of({
        requests: Effect.sync(() => [...requests]),
        interrupted: Effect.sync(() => interrupted)
      })
      return Context.make(LanguageModel.LanguageModel, model).pipe(Context.add(Script, script))
    })
  )
