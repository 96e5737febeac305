import { Effect, Option, Predicate, Schema } from "effect"
import { maxAnswerParts } from "../../domain/chat/Answer.ts"
import { model, type Part } from "../../domain/content/Content.ts"
import { isTooDeep, maxDepth } from "../../domain/text/JsonText.ts"
import { type Citations, readGenerateResponse, usageIn } from "../../domain/wire/gemini/Answer.ts"
import { carriedState, type Target } from "../../domain/wire/ModelState.ts"
import { faultIn } from "../../domain/wire/ProviderFault.ts"
import {
  AnswerTooLargeError,
  ContentPolicyError,
  type Grounding,
  type ModelAnswer,
  type ModelChunk,
  type ModelError
} from "../../services/model/Model.ts"
import { clip, failed, unusable } from "./ModelFailures.ts"
import { reasonOfEvent } from "./ProviderErrors.ts"
import { type EventReader, type Reading, unfinished } from "./ProviderExchange.ts"

/** Decodes the answers of the Gemini API. */

/** The results of the API's search tool. Positions are counted in bytes. */
const GroundingMetadata = Schema.Struct({
  groundingChunks: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        web: Schema.optionalKey(
          Schema.Struct({ uri: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Schema.String) })
        )
      })
    )
  ),
  groundingSupports: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        segment: Schema.optionalKey(Schema.Struct({ endIndex: Schema.optionalKey(Schema.Natural) })),
        groundingChunkIndices: Schema.optionalKey(Schema.Array(Schema.Natural))
      })
    )
  )
})

const CountResponse = Schema.Struct({ totalTokens: Schema.Natural })
/** Decodes the answer of `countTokens`. */
export const readCountResponse = Schema.decodeUnknownEffect(CountResponse)

const ModelResponse = Schema.Struct({
  inputTokenLimit: Schema.optionalKey(Schema.Natural),
  outputTokenLimit: Schema.optionalKey(Schema.Natural)
})
/** Decodes the description of a model. */
export const readModelResponse = Schema.decodeUnknownEffect(ModelResponse)

/** Finish reasons of an answer that the provider blocked. */
const refusals: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION"
])

const citationsOf = ({
  citationSources = [],
  citations = []
}: {
  readonly citations?: typeof Citations.schema.Type
  readonly citationSources?: typeof Citations.schema.Type
}): ReadonlyArray<string> =>
  [...citations, ...citationSources].flatMap(({ title, uri }) =>
    uri === undefined ? [] : [title === undefined ? uri : `(${title}) ${uri}`]
  )

const readGrounding = Schema.decodeUnknownOption(GroundingMetadata)

/** Undefined if the metadata is invalid; the answer is still used. */
const groundingOf = (metadata: unknown): Grounding | undefined => {
  const decoded = Option.getOrUndefined(readGrounding(metadata))
  if (decoded === undefined) return undefined
  const { groundingChunks = [], groundingSupports = [] } = decoded
  return {
    sources: groundingChunks.map(({ web }) => ({ uri: web?.uri ?? "", title: web?.title ?? "" })),
    supports: groundingSupports.flatMap(({ groundingChunkIndices = [], segment }) =>
      segment?.endIndex === undefined ? [] : [{ end: segment.endIndex, sources: groundingChunkIndices }]
    )
  }
}

const readParts = Schema.decodeUnknownOption(
  Schema.Struct({
    candidates: Schema.Tuple([Schema.Struct({ content: Schema.Struct({ parts: Schema.Array(Schema.Unknown) }) })])
  })
)

/** Whether a response has more parts than any model intends. Then none of them is decoded. */
const hasTooManyParts = (response: unknown): boolean =>
  Option.exists(readParts(response), ({ candidates: [{ content }] }) => content.parts.length > maxAnswerParts)

/** A part whose signature goes back to this model alone. */
const signedPart = (part: Part, target: Target): Part =>
  part.thoughtSignature === undefined
    ? part
    : { ...part, thoughtSignature: carriedState(target, part.thoughtSignature) }

/** Converts a response or a piece of one. Fails if the provider refused to answer. */
const toChunk = Effect.fnUntraced(function* (
  response: unknown,
  { hide, names, target }: Omit<Reading, "tools">
): Effect.fn.Return<ModelChunk, ModelError> {
  const fault = Predicate.hasProperty(response, "error") ? faultIn(response) : undefined
  if (fault !== undefined) {
    return yield* failed(reasonOfEvent({ ...fault, message: hide(fault.message) }, names))
  }
  if (hasTooManyParts(response)) {
    return yield* failed(new AnswerTooLargeError({ unit: "parts", limit: maxAnswerParts }))
  }
  if (isTooDeep(response)) return yield* failed(new AnswerTooLargeError({ unit: "levels", limit: maxDepth }))
  const read = yield* readGenerateResponse(response).pipe(Effect.mapError((error) => unusable(hide(error.message))))
  const { candidates, promptFeedback } = read
  const candidate = candidates?.[0]
  const refusal = promptFeedback?.blockReason ?? candidate?.finishReason
  if (promptFeedback?.blockReason !== undefined || (refusal !== undefined && refusals.has(refusal))) {
    return yield* failed(new ContentPolicyError({ finishReason: clip(hide(refusal ?? "")) }))
  }
  const grounding = groundingOf(candidate?.groundingMetadata)
  const usage = usageIn(read)
  return {
    parts: (candidate?.content?.parts ?? []).map((part) => signedPart(part, target)),
    ...(candidate?.finishReason === undefined ? {} : { finishReason: candidate.finishReason }),
    ...(usage === undefined ? {} : { usage }),
    ...(candidate?.citationMetadata === undefined ? {} : { citations: citationsOf(candidate.citationMetadata) }),
    ...(grounding === undefined ? {} : { grounding })
  }
})

/** Reads one streamed answer of the Gemini API. */
export const makeGeminiReader = (reading: Omit<Reading, "tools">): EventReader => ({
  read: (event) => toChunk(event, reading),
  end: () => Effect.undefined
})

/** Reads a whole answer. */
export const wholeAnswer = (
  response: unknown,
  reading: Omit<Reading, "tools">
): Effect.Effect<ModelAnswer, ModelError> =>
  Effect.flatMap(toChunk(response, reading), ({ finishReason, grounding, parts, usage }) =>
    finishReason === undefined
      ? Effect.fail(unusable(parts.length === 0 ? "it has no candidates" : unfinished))
      : Effect.succeed({
          content: model(...parts),
          finishReason,
          usage: usage ?? null,
          ...(grounding === undefined ? {} : { grounding })
        })
  )
