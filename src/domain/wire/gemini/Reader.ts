import { Option, Predicate, Result, Schema } from "effect"
import type { Part } from "../../content/Content.ts"
import { isTooDeep, maxDepth } from "../../text/JsonText.ts"
import { type AnswerReader, type Grounding, maxAnswerParts, type ReadEvent, type Reading } from "../AnswerReader.ts"
import { counted } from "../AnswerUsage.ts"
import { carriedState, type Target } from "../ModelState.ts"
import { faulty } from "../ProviderFault.ts"
import { type Citations, readGenerateResponse, usage } from "./Answer.ts"

/** Reads the answers of the Gemini API, whole or streamed. */

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

/** Reads a response, or a piece of one. */
export const readGemini = (response: unknown, target: Target): ReadEvent => {
  if (Predicate.hasProperty(response, "error") && response.error !== null) return faulty(response)
  if (hasTooManyParts(response)) return Result.fail({ _tag: "TooLarge", unit: "parts", limit: maxAnswerParts })
  if (isTooDeep(response)) return Result.fail({ _tag: "TooLarge", unit: "levels", limit: maxDepth })
  const decoded = readGenerateResponse(response)
  if (Result.isFailure(decoded)) return Result.fail({ _tag: "Invalid", detail: decoded.failure.message })
  const { candidates, promptFeedback, usageMetadata } = decoded.success
  const candidate = candidates?.[0]
  const refusal = promptFeedback?.blockReason ?? candidate?.finishReason
  if (refusal !== undefined && (promptFeedback?.blockReason !== undefined || refusals.has(refusal))) {
    return Result.fail({ _tag: "Refusal", reason: refusal })
  }
  const grounding = groundingOf(candidate?.groundingMetadata)
  return Result.succeed({
    parts: (candidate?.content?.parts ?? []).map((part) => signedPart(part, target)),
    ...(candidate?.finishReason === undefined ? {} : { finishReason: candidate.finishReason }),
    ...counted(usage, usageMetadata),
    ...(candidate?.citationMetadata === undefined ? {} : { citations: citationsOf(candidate.citationMetadata) }),
    ...(grounding === undefined ? {} : { grounding })
  })
}

/** Reads one streamed answer of the Gemini API. */
export const geminiReader = ({ target }: Pick<Reading, "target">): AnswerReader => ({
  read: (event) => readGemini(event, target),
  end: () => undefined
})
