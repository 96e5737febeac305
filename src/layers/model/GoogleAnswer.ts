import { Effect, Option, Schema } from "effect"
import { maxAnswerParts } from "../../domain/chat/Answer.ts"
import { model, Part } from "../../domain/content/Content.ts"
import { isTooDeep, maxDepth } from "../../domain/text/JsonText.ts"
import type { Usage } from "../../domain/tokens/Tokens.ts"
import { carriedState, type Target } from "../../domain/wire/ModelState.ts"
import {
  AnswerTooLargeError,
  ContentPolicyError,
  type Grounding,
  type ModelAnswer,
  type ModelChunk,
  type ModelError
} from "../../services/model/Model.ts"
import { clip, failed, unusable } from "./ModelFailures.ts"

/** Decodes the answers of the Gemini API. */

const Counts = Schema.Struct({
  promptTokenCount: Schema.optionalKey(Schema.Natural),
  candidatesTokenCount: Schema.optionalKey(Schema.Natural),
  thoughtsTokenCount: Schema.optionalKey(Schema.Natural),
  cachedContentTokenCount: Schema.optionalKey(Schema.Natural)
})

/** The documentation and the wire use different keys for these. */
const Citations = Schema.optionalKey(
  Schema.Array(Schema.Struct({ uri: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Schema.String) }))
)

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

const GenerateResponse = Schema.Struct({
  candidates: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        content: Schema.optionalKey(Schema.Struct({ parts: Schema.optionalKey(Schema.Array(Part)) })),
        finishReason: Schema.optionalKey(Schema.String),
        citationMetadata: Schema.optionalKey(Schema.Struct({ citations: Citations, citationSources: Citations })),
        groundingMetadata: Schema.optionalKey(Schema.Unknown)
      })
    )
  ),
  promptFeedback: Schema.optionalKey(Schema.Struct({ blockReason: Schema.optionalKey(Schema.String) })),
  usageMetadata: Schema.optionalKey(Counts)
})
const readGenerateResponse = Schema.decodeUnknownEffect(GenerateResponse)

const CountResponse = Schema.Struct({ totalTokens: Schema.Natural })
/** Decodes the answer of `countTokens`. */
export const readCountResponse = Schema.decodeUnknownEffect(CountResponse)

const ModelResponse = Schema.Struct({
  inputTokenLimit: Schema.optionalKey(Schema.Natural),
  outputTokenLimit: Schema.optionalKey(Schema.Natural)
})
/** Decodes the description of a model. */
export const readModelResponse = Schema.decodeUnknownEffect(ModelResponse)

const usageOf = (counts: typeof Counts.Type): Usage => ({
  prompt: counts.promptTokenCount ?? 0,
  answer: counts.candidatesTokenCount ?? 0,
  thoughts: counts.thoughtsTokenCount ?? 0,
  cached: counts.cachedContentTokenCount ?? 0
})

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

/** Converts a response or a piece of one. Fails if the provider refused to answer. `hide` removes the key from a text. */
export const toChunk = Effect.fnUntraced(function* (
  response: unknown,
  { hide, target }: { readonly hide: (text: string) => string; readonly target: Target }
): Effect.fn.Return<ModelChunk, ModelError> {
  if (hasTooManyParts(response)) {
    return yield* failed(new AnswerTooLargeError({ unit: "parts", limit: maxAnswerParts }))
  }
  if (isTooDeep(response)) return yield* failed(new AnswerTooLargeError({ unit: "levels", limit: maxDepth }))
  const { candidates, promptFeedback, usageMetadata } = yield* readGenerateResponse(response).pipe(
    Effect.mapError((error) => unusable(hide(error.message)))
  )
  const candidate = candidates?.[0]
  const refusal = promptFeedback?.blockReason ?? candidate?.finishReason
  if (promptFeedback?.blockReason !== undefined || (refusal !== undefined && refusals.has(refusal))) {
    return yield* failed(new ContentPolicyError({ finishReason: clip(hide(refusal ?? "")) }))
  }
  const grounding = groundingOf(candidate?.groundingMetadata)
  return {
    parts: (candidate?.content?.parts ?? []).map((part) => signedPart(part, target)),
    ...(candidate?.finishReason === undefined ? {} : { finishReason: candidate.finishReason }),
    ...(usageMetadata === undefined ? {} : { usage: usageOf(usageMetadata) }),
    ...(candidate?.citationMetadata === undefined ? {} : { citations: citationsOf(candidate.citationMetadata) }),
    ...(grounding === undefined ? {} : { grounding })
  }
})

/** The detail of an answer that did not end properly. */
export const unfinished = "it ended without a finish reason"

/** Converts a whole answer from its only piece. */
export const toAnswer = ({
  finishReason,
  grounding,
  parts,
  usage
}: ModelChunk): Effect.Effect<ModelAnswer, ModelError> =>
  finishReason === undefined
    ? Effect.fail(unusable(parts.length === 0 ? "it has no candidates" : unfinished))
    : Effect.succeed({
        content: model(...parts),
        finishReason,
        usage: usage ?? null,
        ...(grounding === undefined ? {} : { grounding })
      })
