import { Effect, Stream } from "effect"
import type { ModelAnswer, ModelChunk, ModelError, ModelRequest } from "./Model.ts"

/**
 * Spans of model calls, with the attributes of OpenTelemetry's conventions for generative AI. They contain names and
 * numbers, and no text of the conversation.
 */

type Attributes = Readonly<Record<string, unknown>>

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
    "gen_ai.response.finish_reasons": finishReason === undefined ? undefined : [finishReason],
    "gen_ai.usage.input_tokens": usage?.prompt,
    "gen_ai.usage.output_tokens": usage == null ? undefined : usage.answer + usage.thoughts,
    "gen_ai.usage.cache_read.input_tokens": usage?.cached,
    "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWrite
  })

/** Adds a span to a call that returns a whole answer. */
export const answerSpan =
  (provider: string, request: ModelRequest) =>
  <R>(call: Effect.Effect<ModelAnswer, ModelError, R>): Effect.Effect<ModelAnswer, ModelError, R> =>
    Effect.tap(call, (answer) => Effect.annotateCurrentSpan(answerAttributes(answer))).pipe(
      Effect.withSpan("Model.generate", { attributes: requestAttributes(provider, request) })
    ) as Effect.Effect<ModelAnswer, ModelError, R>

/** Adds a span to a stream. */
export const streamSpan =
  (provider: string, request: ModelRequest) =>
  <R>(stream: Stream.Stream<ModelChunk, ModelError, R>): Stream.Stream<ModelChunk, ModelError, R> =>
    Stream.suspend(() => {
      let last: Pick<ModelChunk, "finishReason" | "usage"> = {}
      return stream.pipe(
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
        Stream.withSpan("Model.stream", { attributes: requestAttributes(provider, request) })
      )
    }) as Stream.Stream<ModelChunk, ModelError, R>
