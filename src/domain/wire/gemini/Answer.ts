/** Answers of the Gemini API, whole or a piece of a stream: parts, finish reasons and counts. */

import { Result } from "effect"
import { isPart, type Part } from "../../content/Content.ts"
import { isJson, type Json, jsonAt, jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
import { isTooDeep, maxDepth } from "../../text/JsonText.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import type { AnswerForm, GrowingAnswer, Growth } from "../AnswerForm.ts"
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
import { counted, numberAt } from "../AnswerUsage.ts"
import { carriedState, type Target } from "../ModelState.ts"
import { namedPart } from "./Messages.ts"

/** The one answer that is asked for; undefined where an event has none. */
export const candidateOf = (response: Json): Json | undefined => jsonsAt(response, "candidates")[0]

/** The parts of a candidate. */
export const partsOf = (candidate: Json | undefined): ReadonlyArray<Json> =>
  candidate === undefined ? [] : jsonsAt(jsonAt(candidate, "content"), "parts")

/** Why a candidate ends, in the provider's own word. An answer with calls ends like any other. */
const endOf = (candidate: Json | undefined): string =>
  candidate === undefined ? "" : textOrEmpty(candidate, "finishReason")

const states: Readonly<Record<number, string>> = { 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED" }

/** The counts of an answer. */
export const usage = (counts: Json): Usage => ({
  prompt: numberAt(counts, "promptTokenCount"),
  answer: numberAt(counts, "candidatesTokenCount"),
  thoughts: numberAt(counts, "thoughtsTokenCount"),
  cached: numberAt(counts, "cachedContentTokenCount")
})

const isPlainText = (part: Json | undefined): part is Json =>
  part !== undefined && typeof part["text"] === "string" && Object.keys(part).length === 1

/** A text without anything, with which an answer may end. One with a signature is not empty. */
export const isEmptyText = (part: Json): boolean => isPlainText(part) && part["text"] === ""

/** What a response, or a piece of one, adds. Its blocks are parts, which are whole. */
const growthOf = (response: Json): Growth & { readonly blocks: ReadonlyArray<Json>; readonly end: string } => {
  const candidate = candidateOf(response)
  return { blocks: partsOf(candidate), end: endOf(candidate), counts: response["usageMetadata"] }
}

class GeminiAnswer implements GrowingAnswer {
  /** The pieces of a streamed text are joined. */
  private readonly parts: Array<Json> = []
  private usage: unknown
  private isEnded = false

  readonly push = (response: Json): Growth => {
    const growth = growthOf(response)
    for (const part of growth.blocks) {
      const last = this.parts.at(-1)
      if (isPlainText(last) && isPlainText(part)) {
        this.parts[this.parts.length - 1] = { text: textOrEmpty(last, "text") + textOrEmpty(part, "text") }
      } else if (!isEmptyText(part)) this.parts.push(part)
    }
    if (isJson(growth.counts)) this.usage = growth.counts
    this.isEnded ||= growth.end !== ""
    return this.isEnded ? { ...growth, border: "end" } : growth
  }

  readonly end = (): Growth => ({})

  get whole(): Json {
    return { candidates: [{ content: { role: "model", parts: this.parts } }], usageMetadata: this.usage }
  }
}

/** The facts of this dialect about its answers. */
export const answerForm: AnswerForm = {
  begin: () => new GeminiAnswer(),
  blocksOf: (answer) => {
    const candidate = candidateOf(answer)
    return candidate === undefined ? undefined : partsOf(candidate)
  },
  usageKey: "usageMetadata",
  usage,
  callOf: ({ functionCall: call }) =>
    isJson(call) ? { id: textOrEmpty(call, "id"), name: textOrEmpty(call, "name"), args: call["args"] } : undefined,
  visible: (part) =>
    typeof part["text"] === "string"
      ? { kind: part["thought"] === true ? "thought" : "text", text: part["text"] }
      : { kind: "other", text: "" },
  failure: (status, message) => ({ error: { code: status, message, status: states[status] ?? "UNAVAILABLE" } }),
  // The API takes no thoughts back.
  sent: (parts) => [{ role: "model", parts: parts.filter((part) => part["thought"] !== true && !isEmptyText(part)) }]
}

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

/** Reads a whole answer that the vendor's SDK parsed, so that its depth is not limited yet. */
export const readGemini = (response: unknown, target: Target): ReadEvent =>
  isTooDeep(response) ? Result.fail({ _tag: "TooLarge", unit: "levels", limit: maxDepth }) : readPiece(response, target)

/** Reads one streamed answer of the Gemini API. */
export const geminiAnswerReader = ({ target }: Pick<Reading, "target">): AnswerReader => ({
  read: (event) => readPiece(event, target),
  end: () => undefined
})
