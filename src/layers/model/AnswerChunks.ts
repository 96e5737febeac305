/** What a dialect's reader says of an answer, as chunks and errors of a model; and the model that gives them. */

import { Effect, Result, Stream } from "effect"
import type { Json } from "../../domain/text/JsonObject.ts"
import type { AnswerProblem, AnswerReader, ReadEvent } from "../../domain/wire/AnswerReader.ts"
import type { DialogueRequest } from "../../domain/wire/Dialogue.ts"
import {
  formOf,
  type LearnedForm,
  learnedFrom,
  learnedFromFailure,
  nothingLearned,
  withLearned
} from "../../domain/wire/LearnedForm.ts"
import { endMark } from "../../domain/wire/SseEvents.ts"
import { collect, finished } from "../../services/model/CollectedAnswer.ts"
import {
  AnswerTooLargeError,
  ContentPolicyError,
  type Model,
  type ModelChunk,
  type ModelError,
  type ModelRequest
} from "../../services/model/Model.ts"
import { answerSpan, streamSpan } from "../../services/model/ModelSpans.ts"
import type { Provider } from "./Provider.ts"
import { clip, failed, hideKey, unusable, reasonOfEvent } from "./ProviderErrors.ts"

const errorOf = (provider: Provider, problem: AnswerProblem): ModelError => {
  const hide = hideKey(provider)
  switch (problem._tag) {
    case "Refusal":
      return failed(new ContentPolicyError({ finishReason: clip(hide(problem.reason)) }))
    case "Fault": {
      const { exhaustedQuota, kind, message } = problem.fault
      const fault = { ...problem.fault, kind: hide(kind), message: hide(message) }
      const quota = exhaustedQuota === undefined ? {} : { exhaustedQuota: hide(exhaustedQuota) }
      return failed(reasonOfEvent({ ...fault, ...quota }, provider.names))
    }
    case "Invalid":
      return unusable(hide(problem.detail))
    case "TooLarge":
      return failed(new AnswerTooLargeError({ unit: problem.unit, limit: problem.limit }))
  }
}

/** A chunk without the key: a finish reason that is not known is the server's own text. */
const withoutKey = (provider: Provider, chunk: ModelChunk | undefined): ModelChunk | undefined =>
  chunk?.finishReason === undefined ? chunk : { ...chunk, finishReason: clip(hideKey(provider)(chunk.finishReason)) }

/** The chunk that an event completes; undefined: none. */
export const chunkOf = (provider: Provider, read: ReadEvent): Effect.Effect<ModelChunk | undefined, ModelError> =>
  Effect.fromResult(
    Result.mapBoth(read, {
      onFailure: (problem) => errorOf(provider, problem),
      onSuccess: (chunk) => withoutKey(provider, chunk)
    })
  )

/** The chunks of an answer. Fails at its end if no finish reason came. */
export const chunks = (
  provider: Provider,
  answer: Stream.Stream<unknown, ModelError>,
  makeReader: () => AnswerReader
): Stream.Stream<ModelChunk, ModelError> =>
  Stream.suspend(() => {
    const reader = makeReader()
    let isMarked = false
    return answer.pipe(
      Stream.filter((event) => !(isMarked ||= event === endMark)),
      Stream.mapEffect((event) => chunkOf(provider, reader.read(event))),
      Stream.concat(Stream.suspend(() => Stream.succeed(withoutKey(provider, reader.end(isMarked))))),
      Stream.filter((chunk) => chunk !== undefined),
      finished
    )
  })

/**
 * Asks in the form that a server takes: what a refusal tells of it is heeded at once, and remembered in `learned` for later requests to the model.
 * A refusal may quote anything: what it told is known once a request of this form was accepted.
 */
export const learning = <Request extends DialogueRequest>(
  learned: Map<string, LearnedForm>,
  request: Request,
  bodyOf: (request: Request, known: LearnedForm) => Json,
  ask: (body: Json) => Stream.Stream<ModelChunk, ModelError>
): Stream.Stream<ModelChunk, ModelError> => {
  const askIn = (known: LearnedForm, isNew: boolean): Stream.Stream<ModelChunk, ModelError> => {
    const body = withLearned(bodyOf(formOf(request, known), known), known)
    let isAccepted = false
    return ask(body).pipe(
      Stream.onFirst(() =>
        Effect.sync(() => {
          isAccepted = true
          if (isNew) learned.set(request.model, known)
        })
      ),
      Stream.catch((error) => {
        const { reason } = error
        if (isAccepted) return Stream.fail(error)
        const more =
          reason._tag === "InvalidRequestError" && reason.refused === undefined
            ? learnedFrom(known, reason.detail, body)
            : reason._tag === "InternalProviderError"
              ? learnedFromFailure(known, reason.status, reason.detail ?? "")
              : undefined
        return more === undefined ? Stream.fail(error) : askIn(more, true)
      })
    )
  }
  return Stream.suspend(() => askIn(learned.get(request.model) ?? nothingLearned, false))
}

/** The calls of a provider. A whole answer is collected from its stream unless `generate` asks for one. */
type Calls = Pick<Model["Service"], "countTokens" | "stream"> & Partial<Pick<Model["Service"], "describe" | "generate">>

/** The model of a provider: it names the one model that answers all requests, if there is one. `system` names it in spans. */
export const modelOf = (
  { model }: Pick<Provider, "model">,
  system: string,
  { countTokens, describe, generate, stream: ask }: Calls
): Model["Service"] => {
  const stream = (request: ModelRequest) => streamSpan(system, request)(ask(request))
  const withModel =
    <A>(call: (request: ModelRequest) => A) =>
    (request: ModelRequest): A =>
      call(model === undefined ? request : { ...request, model })
  return {
    ...(model === undefined ? {} : { fixedModel: model }),
    generate: withModel((request) => answerSpan(system, request)(generate?.(request) ?? collect(stream(request)))),
    stream: withModel(stream),
    countTokens: withModel(countTokens),
    ...(describe === undefined ? {} : { describe: (name) => describe(model ?? name) })
  }
}
