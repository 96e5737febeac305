import type { Usage } from "../../tokens/Tokens.ts"
import { numberAt } from "../AnswerUsage.ts"
import { type Json, jsonAt, jsonsAt } from "../MessageCodec.ts"

/** Answers of the Gemini API, whole or a piece of a stream. */

/** The one answer that is asked for; undefined where an event has none. */
export const candidateOf = (response: Json): Json | undefined => jsonsAt(response, "candidates")[0]

/** The parts of a candidate. */
export const partsOf = (candidate: Json | undefined): ReadonlyArray<Json> =>
  candidate === undefined ? [] : jsonsAt(jsonAt(candidate, "content"), "parts")

/** The counts of an answer. */
export const usage = (counts: Json): Usage => ({
  prompt: numberAt(counts, "promptTokenCount"),
  answer: numberAt(counts, "candidatesTokenCount"),
  thoughts: numberAt(counts, "thoughtsTokenCount"),
  cached: numberAt(counts, "cachedContentTokenCount")
})
