import type { Part } from "../content/Content.ts"
import { type Json, textOrEmpty } from "../text/JsonObject.ts"
import type { Usage } from "../tokens/Tokens.ts"
import { numberAt } from "./AnswerUsage.ts"
import { opaque } from "./MessageCodec.ts"

/** What messages and answers have in common in the two dialects of OpenAI. */

/** The part that a block of a message is. */
export const openAiPart = (block: Json): Part => {
  switch (block["type"]) {
    case "text":
    case "input_text":
    case "output_text":
      return { text: textOrEmpty(block, "text") }
    case "refusal":
      return { text: textOrEmpty(block, "refusal") }
    default:
      return opaque(block)
  }
}

/** Reads counts, which the two dialects call differently. */
export const openAiUsage =
  (sent: string, answered: string) =>
  (counts: Json): Usage => {
    const thoughts = numberAt(counts, `${answered}_tokens_details`, "reasoning_tokens")
    return {
      prompt: numberAt(counts, `${sent}_tokens`),
      answer: Math.max(0, numberAt(counts, `${answered}_tokens`) - thoughts),
      thoughts,
      // DeepSeek's and Moonshot's stand beside the others.
      cached:
        numberAt(counts, `${sent}_tokens_details`, "cached_tokens") ||
        numberAt(counts, "prompt_cache_hit_tokens") ||
        numberAt(counts, "cached_tokens")
    }
  }

const errorType = (status: number): string =>
  status === 429 ? "rate_limit_exceeded" : status < 500 ? "invalid_request_error" : "server_error"

/** The body of an error. `status` is that of HTTP. */
export const openAiFailure = (status: number, message: string): Json => ({
  error: { message, type: errorType(status), param: null, code: null }
})
