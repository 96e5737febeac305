import { Result } from "effect"
import { isPart, type Part } from "../../content/Content.ts"
import { isJson, type Json, jsonAt, jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
import { isTooDeep, maxDepth } from "../../text/JsonText.ts"
import {
  type AnswerReader,
  faulty,
  finishReasonOf,
  type Grounding,
  maxAnswerParts,
  type ReadEvent,
  type Reading,
  unknownEvent
} from "../AnswerReader.ts"
import { counted } from "../AnswerUsage.ts"
import { carriedState, type Target } from "../ModelState.ts"
import { candidateOf, growthOf, usage } from "./Answer.ts"
import { namedPart } from "./Messages.ts"

/** Reads the answers of the Gemini API, whole or streamed. */

/** The addresses that a candidate quotes. The documentation and the wire use different keys for them. */
const citationsOf = (metadata: Json): ReadonlyArray<string> =>
  [...jsonsAt(metadata, "citations"), ...jsonsAt(metadata, "citationSources")].flatMap((citation) => {
    const [title, uri] = [textOrEmpty(citation, "title"), textOrEmpty(citation, "uri")]
    return uri === "" ? [] : [title === "" ? uri : `(${title}) ${uri}`]
  })

const isNatural = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0

/** The results of the API's search tool. Positions are counted in bytes. */
const groundingOf = (metadata: Json): Grounding => ({
  sources: jsonsAt(metadata, "groundingChunks").map((chunk) => {
    const web = jsonAt(chunk, "web")
    return { uri: textOrEmpty(web, "uri"), title: textOrEmpty(web, "title") }
  }),
  supports: jsonsAt(metadata, "groundingSupports").flatMap((support) => {
    const { endIndex: end } = jsonAt(support, "segment")
    const { groundingChunkIndices: sources = [] } = support
    return isNatural(end) && Array.isArray(sources) ? [{ end, sources: sources.filter(isNatural) }] : []
  })
})

/** A part whose signature goes back to this model alone. */
const signedPart = (part: Part, target: Target): Part =>
  part.thoughtSignature === undefined
    ? part
    : { ...part, thoughtSignature: carriedState(target, part.thoughtSignature) }

/** Reads a piece of an answer. */
const readPiece = (response: unknown, target: Target): ReadEvent => {
  if (!isJson(response)) return unknownEvent(response)
  if (response["error"] !== undefined && response["error"] !== null) return faulty(response)
  const { blocks, counts, end } = growthOf(response)
  // Relays name fields otherwise, or write null for those without a value.
  const parts = blocks.map((part) => (isPart(part) ? part : namedPart(part)))
  const finishReason = finishReasonOf(end)
  const refusal =
    textOrEmpty(jsonAt(response, "promptFeedback"), "blockReason") || (finishReason === undefined ? end : "")
  if (refusal !== "") return Result.fail({ _tag: "Refusal", reason: refusal })
  if (parts.length > maxAnswerParts) return Result.fail({ _tag: "TooLarge", unit: "parts", limit: maxAnswerParts })
  if (!parts.every(isPart)) return Result.fail({ _tag: "Invalid", detail: "it contains a part of an unknown form" })
  const candidate = candidateOf(response) ?? {}
  const citations = citationsOf(jsonAt(candidate, "citationMetadata"))
  const { groundingMetadata: grounding } = candidate
  return Result.succeed({
    parts: parts.map((part) => signedPart(part, target)),
    ...(finishReason === undefined || end === "" ? {} : { finishReason }),
    ...counted(usage, counts),
    ...(citations.length === 0 ? {} : { citations }),
    ...(isJson(grounding) ? { grounding: groundingOf(grounding) } : {})
  })
}

/** Reads a whole answer that was parsed elsewhere, so that its depth is not limited yet. */
export const readGemini = (response: unknown, target: Target): ReadEvent =>
  isTooDeep(response) ? Result.fail({ _tag: "TooLarge", unit: "levels", limit: maxDepth }) : readPiece(response, target)

/** Reads one streamed answer of the Gemini API. */
export const geminiAnswerReader = ({ target }: Pick<Reading, "target">): AnswerReader => ({
  read: (event) => readPiece(event, target),
  end: () => undefined
})
