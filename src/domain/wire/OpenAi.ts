/** What the two dialects of OpenAI have in common: Responses, and Chat Completions, which many other servers speak. */

import type { Part } from "../content/Content.ts"
import { mediaType } from "../content/MediaBlocks.ts"
import { type Json, textOrEmpty } from "../text/JsonObject.ts"
import { wellFormedJson } from "../text/JsonText.ts"
import type { Usage } from "../tokens/Tokens.ts"
import { numberAt } from "./AnswerUsage.ts"
import type { ValueAt } from "./Dialect.ts"
import type { DialogueRequest } from "./Dialogue.ts"
import { opaque } from "./MessageCodec.ts"
import { isClosed } from "./ResponseSchema.ts"
import type { ToolDeclaration, ToolNames } from "./ToolDeclarations.ts"

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
    const countedBeside = stored ?? (cached > prompt ? cached : 0)
    // xAI counts its thoughts beside the answer, and Gemini's server names them in the total alone.
    const isThoughtApart = countedBeside === 0 && beside > 0 && prompt > 0 && (thoughts === 0 || thoughts === beside)
    return {
      prompt: prompt + countedBeside,
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

/** Whether a model reasons. Such models take no sampling parameters. */
export const thinks = (model: string): boolean => /(?:^|\/)(?:o\d|gpt-[5-9](?!.*-chat)|codex-)/.test(model)

/** The reasoning effort that corresponds to a thinking budget. Undefined: the model chooses. */
export const effortOf = ({ model, thinkingBudget = 0 }: DialogueRequest): "high" | "low" | "medium" | undefined =>
  thinkingBudget <= 0 || !thinks(model)
    ? undefined
    : thinkingBudget < 4_096
      ? "low"
      : thinkingBudget < 16_384
        ? "medium"
        : "high"

/** The sampling parameters of a request. */
export const sampling = ({ model, temperature, topP }: DialogueRequest): Json =>
  thinks(model)
    ? {}
    : { ...(temperature === undefined ? {} : { temperature }), ...(topP === undefined ? {} : { top_p: topP }) }

/** The instructions of a request; undefined if they are blank. */
export const systemOf = ({ systemInstruction = "" }: DialogueRequest): string | undefined =>
  systemInstruction.trim() === "" ? undefined : systemInstruction

/** The address of an image or a PDF file that can be sent. Undefined for other media. */
export const sendable = (part: Part): { readonly isImage: boolean; readonly url: string } | undefined => {
  const { fileData, inlineData } = part
  const mimeType = mediaType(part)
  const isImage = mimeType.startsWith("image/")
  if (!isImage && mimeType !== "application/pdf") return undefined
  const { data = "" } = inlineData ?? {}
  const url = data === "" ? (fileData?.fileUri ?? "") : `data:${mimeType};base64,${data}`
  return /^(?:data|https?):/.test(url) ? { isImage, url } : undefined
}

/** The arguments of a call as JSON. */
export const argumentsOf = (args: unknown): string => wellFormedJson(JSON.stringify(args))

/** The declarations of the tools of a request. */
export const declared = (
  { tools }: DialogueRequest,
  names: ToolNames,
  declaredTool: (tool: ToolDeclaration) => Json
): Json =>
  tools.length === 0 ? {} : { tools: tools.map((tool) => declaredTool({ ...tool, name: names.sent(tool.name) })) }

/** Whether a client gets one answer at once, and its functions are not those that the API had before it had tools. */
export const allowsTools = (valueAt: ValueAt): boolean =>
  (valueAt("n") ?? 1) === 1 && valueAt("functions") === undefined && valueAt("background") !== true

/** The format of the answer: its name, its schema, and whether the API holds the answer to it. */
export const formatOf = ({ responseSchema: schema }: DialogueRequest): Json | undefined =>
  schema === undefined ? undefined : { name: "answer", schema, strict: isClosed(schema) }

/** Forces a call, if the request asks for one. */
export const choice = ({ mustCall, tools }: DialogueRequest): Json =>
  mustCall === true && tools.length > 0 ? { tool_choice: "required" } : {}
