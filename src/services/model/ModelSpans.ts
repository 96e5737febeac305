import { Effect, Stream } from "effect"
import type { ModelAnswer, ModelChunk, ModelError, ModelRequest } from "./Model.ts"

/** Spans of model calls, with the attributes of OpenTelemetry's conventions for generative AI. They hold names and numbers, and nobody's words. */

type Attributes = Readonly<Record<string, unknown>>

/** Leaves out what is not known. */
const known = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))

/** The attributes of a request to a provider, by the name that the conventions give it. */
const requestAttributes = (provider: string, { contents, generation, model }: ModelRequest): Attributes =>
  known({
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
  known({
    "gen_ai.response.finish_reasons": finishReason === undefined ? undefined : [finishReason],
    "gen_ai.usage.input_tokens": usage?.prompt,
    "gen_ai.usage.output_tokens": usage == null ? undefined : usage.answer + usage.thoughts,
    "gen_ai.usage.cache_read.input_tokens": usage?.cached,
    "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWrite
  })

/** Gives a call that returns a whole answer its span. */
export const answerSpan =
  (provider: string, request: ModelRequest) =>
  <R>(call: Effect.Effect<ModelAnswer, ModelError, R>): Effect.Effect<ModelAnswer, ModelError, R> =>
    Effect.tap(call, (answer) => Effect.annotateCurrentSpan(answerAttributes(answer))).pipe(
      Effect.withSpan("Model.generate", { attributes: requestAttributes(provider, request) })
    ) as Effect.Effect<ModelAnswer, ModelError, R>

/** Gives a stream its span. */
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
