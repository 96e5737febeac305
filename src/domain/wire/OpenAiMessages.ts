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

/** The keys of tokens that a cache had: DeepSeek's, Moonshot's, Mistral's and LiteLLM's stand beside the others. */
const cachedKeys = ["prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens", "cache_read_input_tokens"]

/** The count at a place of the details of another one. */
const detailAt = (counts: Json, of: string, key: string): number =>
  numberAt(counts, `${of}_tokens_details`, key) || numberAt(counts, `${of}_token_details`, key)

/** Reads counts, which the two dialects call differently. */
export const openAiUsage =
  (sent: string, answered: string) =>
  (counts: Json): Usage => {
    const [prompt, answer] = [numberAt(counts, `${sent}_tokens`), numberAt(counts, `${answered}_tokens`)]
    // SGLang's stand beside the others.
    const thoughts = detailAt(counts, answered, "reasoning_tokens") || numberAt(counts, "reasoning_tokens")
    const cached =
      detailAt(counts, sent, "cached_tokens") || Math.max(...cachedKeys.map((key) => numberAt(counts, key)))
    const cacheWrite = detailAt(counts, sent, "cache_write_tokens") || numberAt(counts, "cache_creation_input_tokens")
    // Some servers count what a cache had, or takes, beside the prompt.
    const beside = numberAt(counts, "total_tokens") - prompt - answer
    const stored = [cached, cached + cacheWrite].find((tokens) => tokens > 0 && tokens === beside)
    const apart = stored ?? (cached > prompt ? cached : 0)
    // xAI counts its thoughts beside the answer, and Gemini's server names them in the total alone.
    const isThoughtApart = apart === 0 && beside > 0 && prompt > 0 && (thoughts === 0 || thoughts === beside)
    return {
      prompt: prompt + apart,
      answer: isThoughtApart ? answer : Math.max(0, answer - thoughts),
      thoughts: isThoughtApart ? beside : thoughts,
      cached,
      ...(cacheWrite === 0 ? {} : { cacheWrite })
    }
  }

const errorType = (status: number): string =>
  status === 429 ? "rate_limit_exceeded" : status < 500 ? "invalid_request_error" : "server_error"

/** The body of an error. `status` is that of HTTP. */
export const openAiFailure = (status: number, message: string): Json => ({
  error: { message, type: errorType(status), param: null, code: null }
})
