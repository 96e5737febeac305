/**
 * Spans of model calls, with the attributes of OpenTelemetry's conventions for generative AI. They contain names and
 * numbers, and no text of the conversation.
 */

import { Context, Effect, Stream } from "effect"
import { type Content, payload } from "../../domain/content/Content.ts"
import { withoutEcho } from "../../domain/model/EchoedText.ts"
import {
  ContentPolicyError,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  type ModelAnswer,
  type ModelChunk,
  ModelError,
  type ModelErrorReason,
  type ModelRequest,
  QuotaExhaustedError
} from "./Model.ts"

/** The conversation that a call belongs to, for its span. */
export const SpanConversation = Context.Reference<string | undefined>(
  "palimpsest/services/model/ModelSpans/SpanConversation",
  {
    defaultValue: () => undefined
  }
)

type Attributes = Readonly<Record<string, unknown>>

/** The texts of a request that nobody but its model is to read. */
function* textsOf({
  contents,
  systemInstruction
}: Pick<ModelRequest, "contents" | "systemInstruction">): Generator<string> {
  if (systemInstruction !== undefined) yield systemInstruction
  const partsOf = ({ parts }: Content) => parts
  for (const part of contents.flatMap(partsOf)) yield part.inlineData === undefined ? payload(part).text : ""
}

const cleanReason = (reason: ModelErrorReason, clean: (text: string) => string): ModelErrorReason => {
  switch (reason._tag) {
    case "QuotaExhaustedError":
      return new QuotaExhaustedError({ detail: clean(reason.detail) })
    case "ContentPolicyError":
      return new ContentPolicyError({ finishReason: clean(reason.finishReason) })
    case "InvalidRequestError":
      return new InvalidRequestError({ ...reason, detail: clean(reason.detail) })
    case "InternalProviderError":
      return reason.detail === undefined
        ? reason
        : new InternalProviderError({ ...reason, detail: clean(reason.detail) })
    case "InvalidResponseError":
      return new InvalidResponseError({ detail: clean(reason.detail) })
    default:
      return reason
  }
}

/** The error without what the server quotes of the request. */
export const cleanError =
  (request: Pick<ModelRequest, "contents" | "systemInstruction">) =>
  (error: ModelError): ModelError => {
    const reason = cleanReason(error.reason, (text) => withoutEcho(text, () => textsOf(request)))
    return reason.message === error.message ? error : new ModelError({ reason })
  }

/** A provider's word for the end of an answer; it could be any text. */
const endWord = (finishReason: string): string => (/^[\w.-]{1,64}$/.test(finishReason) ? finishReason : "other")

/** Leaves out undefined attributes. */
const defined = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))

/** Returns the attributes of a request to a provider, by the provider's name in the conventions. */
const requestAttributes = (provider: string, { contents, generation, model }: ModelRequest): Attributes =>
  defined({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": provider,
    "gen_ai.request.model": model,
    "gen_ai.request.max_tokens": generation?.maxOutputTokens,
    "gen_ai.request.temperature": generation?.temperature,
    "gen_ai.request.top_p": generation?.topP,
    "gen_ai.request.top_k": generation?.topK,
    model,
    contents: contents.length
  })

/** The attributes of an answer. */
const answerAttributes = ({
  finishReason,
  usage
}: {
  readonly finishReason?: string | undefined
  readonly usage?: ModelAnswer["usage"] | undefined
}): Attributes =>
  defined({
    "gen_ai.response.finish_reasons": finishReason === undefined ? undefined : [endWord(finishReason)],
    "gen_ai.usage.input_tokens": usage?.prompt,
    "gen_ai.usage.output_tokens": usage == null ? undefined : usage.answer + usage.thoughts,
    "gen_ai.usage.cache_read.input_tokens": usage?.cached,
    "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWrite
  })

const spanOptions = (provider: string, request: ModelRequest, operation = "chat") => ({
  kind: "client" as const,
  attributes: { ...requestAttributes(provider, request), "gen_ai.operation.name": operation }
})

/** Says in the current span to which conversation it belongs. */
export const annotateConversation: Effect.Effect<void> = Effect.flatMap(SpanConversation, (conversation) =>
  Effect.annotateCurrentSpan(defined({ "gen_ai.conversation.id": conversation }))
)

/** Adds a span to a call that returns a whole answer. */
export const answerSpan =
  (provider: string, request: ModelRequest) =>
  <R>(call: Effect.Effect<ModelAnswer, ModelError, R>): Effect.Effect<ModelAnswer, ModelError, R> =>
    Effect.andThen(annotateConversation, call).pipe(
      Effect.tap((answer) => Effect.annotateCurrentSpan(answerAttributes(answer))),
      Effect.mapError(cleanError(request)),
      Effect.withSpan("Model.generate", spanOptions(provider, request))
    ) as Effect.Effect<ModelAnswer, ModelError, R>

/** Adds a span to a count of tokens. */
export const countSpan =
  (provider: string, request: ModelRequest) =>
  <R>(call: Effect.Effect<number, ModelError, R>): Effect.Effect<number, ModelError, R> =>
    Effect.andThen(annotateConversation, call).pipe(
      Effect.mapError(cleanError(request)),
      Effect.withSpan("Model.countTokens", spanOptions(provider, request, "count_tokens"))
    ) as Effect.Effect<number, ModelError, R>

/** Adds a span to a stream. */
export const streamSpan =
  (provider: string, request: ModelRequest) =>
  <R>(stream: Stream.Stream<ModelChunk, ModelError, R>): Stream.Stream<ModelChunk, ModelError, R> =>
    Stream.suspend(() => {
      let last: Pick<ModelChunk, "finishReason" | "usage"> = {}
      return Stream.unwrap(Effect.as(annotateConversation, stream)).pipe(
        Stream.mapArray((chunks) => {
          for (const { finishReason, usage } of chunks) {
            last = {
              ...last,
              ...(finishReason === undefined ? {} : { finishReason }),
              ...(usage === undefined ? {} : { usage })
            }
          }
          return chunks
        }),
        Stream.onEnd(Effect.suspend(() => Effect.annotateCurrentSpan(answerAttributes(last)))),
        Stream.mapError(cleanError(request)),
        Stream.withSpan("Model.stream", spanOptions(provider, request))
      )
    }) as Stream.Stream<ModelChunk, ModelError, R>
