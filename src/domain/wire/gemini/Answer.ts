import { isJson, type Json, jsonAt, jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import type { AnswerForm, GrowingAnswer, Growth } from "../AnswerForm.ts"
import { numberAt } from "../AnswerUsage.ts"

/** Answers of the Gemini API, whole or a piece of a stream: parts, finish reasons and counts. */

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
export const growthOf = (response: Json): Growth & { readonly blocks: ReadonlyArray<Json>; readonly end: string } => {
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
