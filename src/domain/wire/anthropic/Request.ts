/** Requests in the dialect of Anthropic's Messages API. */

import { Predicate } from "effect"
import type { Part } from "../../content/Content.ts"
import { mediaText, mediaType } from "../../content/MediaBlocks.ts"
import { jsonsAt, textOrEmpty } from "../../text/JsonObject.ts"
import {
  type DialogueRequest,
  type DialogueTurn,
  dialogueOf,
  type ModelBlock,
  noWords,
  type ToolResult,
  type UserTurn
} from "../Dialogue.ts"
import type { Need } from "../LearnedForm.ts"
import { isCompaction, type Target } from "../ModelState.ts"
import { withToldSchema } from "../ResponseSchema.ts"
import type { ToolDeclaration, ToolNames } from "../ToolDeclarations.ts"
import { cacheMark } from "./CacheMarks.ts"

type Block = Readonly<Record<string, unknown>>
interface Message {
  readonly role: "assistant" | "user"
  readonly content: ReadonlyArray<Block>
}

const imageTypes: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"])

/** Images and PDF files as they are; other media by its name. */
export const userBlock = (part: Part): Block => {
  const { fileData, inlineData } = part
  const mimeType = mediaType(part)
  const type = imageTypes.has(mimeType) ? "image" : mimeType === "application/pdf" ? "document" : undefined
  if (type !== undefined && inlineData?.data !== undefined && inlineData.data !== "") {
    return { type, source: { type: "base64", media_type: mimeType, data: inlineData.data } }
  }
  if (/^https?:/.test(fileData?.fileUri ?? "")) {
    // The address of an image need not say which type it has.
    const there = mimeType === "image/*" ? "image" : type
    if (there !== undefined) return { type: there, source: { type: "url", url: fileData?.fileUri } }
  }
  return { type: "text", text: part.text ?? mediaText(part) }
}

/** A failure has nothing but texts: its media stand behind the results. */
const resultBlock = ({ id, isError, media, text }: ToolResult): Block => ({
  type: "tool_result",
  tool_use_id: id,
  ...(isError
    ? { content: text.trim() === "" ? noWords.result : text, is_error: true }
    : {
        content:
          media.length === 0 ? text : [...(text.trim() === "" ? [] : [{ type: "text", text }]), ...media.map(userBlock)]
      })
})

const messageContent = ({ parts, results }: UserTurn): ReadonlyArray<Block> => [
  ...results.map(resultBlock),
  ...[...results.flatMap(({ isError, media }) => (isError ? media : [])), ...parts].map(userBlock)
]

/** Thinking without a signature, which servers of other models want back, and Claude refuses: a relay took it out. */
const isUnsigned = (block: Block): boolean => block["type"] === "thinking" && (block["signature"] ?? "") === ""

const modelBlock =
  (names: ToolNames, isClaude: boolean) =>
  (block: ModelBlock): ReadonlyArray<Block> => {
    switch (block._tag) {
      case "Text":
        return [{ type: "text", text: block.text }]
      case "Call":
        return [{ type: "tool_use", id: block.id, name: names.sent(block.name), input: block.args }]
      case "State":
        return Predicate.isObject(block.state) && !(isClaude && isUnsigned({ ...block.state }))
          ? [{ ...block.state }]
          : []
    }
  }

/** What stands for the thinking of another model, before its calls. */
const unthought: Block = { type: "thinking", thinking: noWords.thought, signature: "" }

const messageOf =
  (names: ToolNames, needs: ReadonlySet<Need>, model: string) =>
  (turn: DialogueTurn): Message => {
    if (turn.role === "user") return { role: "user", content: messageContent(turn) }
    const content = turn.blocks.flatMap(modelBlock(names, /claude/i.test(model)))
    const isUnthought = content.some(({ type }) => type === "tool_use") && !content.some(isThinking)
    return { role: "assistant", content: isUnthought && needs.has("reasoning") ? [unthought, ...content] : content }
  }

const isThinking = ({ type }: Block): boolean => type === "thinking" || type === "redacted_thinking"

const withMark = (blocks: ReadonlyArray<Block>): ReadonlyArray<Block> =>
  blocks.map((block, at) => (at === blocks.length - 1 ? { ...block, ...cacheMark } : block))

/** Puts cache marks on the last two messages of the user: one to read the cache of the request before, one to write the next. */
const marked = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> =>
  messages.map((message, at) =>
    message.role === "user" && at >= messages.length - 3 ? { ...message, content: withMark(message.content) } : message
  )

/** Whether thinking may be requested: results of calls that were made without thinking must be answered without it. */
const canThink = (messages: ReadonlyArray<Message>): boolean => {
  const [before, last] = messages.slice(-2)
  return (
    last?.content[0]?.["type"] !== "tool_result" ||
    isThinking(before?.content.find((block) => !isCompaction(block)) ?? {})
  )
}

/** Models with a thinking budget. Later models choose how much they think and reject a budget. */
const takesBudget = /claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[015])?(?:-\d{8}|-latest|$))/
/** Models that take sampling parameters, one of temperature and top_p. */
const takesSampling = /claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[0156])?(?:-\d{8}|-latest|$))/
/** Models whose answer the API holds to a schema: all since 4.5 of these families. */
const takesFormat = /claude-(?:opus|sonnet|haiku)-(?:4-[5-9]|[5-9])(?:-|$)/
/** The smallest budget that the API accepts. */
const minBudget = 1_024

/**
 * Models that reject two things: a forced call, and earlier thinking after the conversation before it changed, which
 * a compression, a rewind or another instruction does. For these models the call is requested in text, and the API is
 * told to drop such thinking.
 */
const bindsThinking = /claude-(?:(?:opus|sonnet|haiku)-(?:5-[5-9]|[6-9])|(?:fable|mythos)-(?:5-[1-9]|[6-9]))/
const callInstruction = "Answer with a call of one of the tools, without any text."
const dropsChanged = { block_binding: { prefix_mismatch_behavior: "drop_block" } }

/** The input of a request. */
export interface AnthropicRequest extends DialogueRequest {
  /** The API requires it. */
  readonly maxOutputTokens: number
}

/** The model that reads a request. */
export const targetOf = ({ model, server }: AnthropicRequest): Target => ({ dialect: "anthropic", model, server })

/** Whether a message returns thinking that the API must drop when it no longer applies. */
const carriesBound = (model: string, messages: ReadonlyArray<Message>): boolean =>
  bindsThinking.test(model) && messages.some(({ content }) => content.some(isThinking))

const thinkingOptions = (request: AnthropicRequest, messages: ReadonlyArray<Message>): Block => {
  const { maxOutputTokens, model, mustCall, thinkingBudget = 0 } = request
  // These models think by default, so that nothing else changes.
  if (carriesBound(model, messages)) return { thinking: { type: "adaptive", ...dropsChanged } }
  // A call can only be forced without thinking.
  if (thinkingBudget <= 0 || mustCall === true) return {}
  if (!takesBudget.test(model)) return { thinking: { type: "adaptive" } }
  if (!canThink(messages)) return {}
  const budget = Math.max(minBudget, thinkingBudget)
  return {
    thinking: { type: "enabled", budget_tokens: budget },
    max_tokens: Math.max(maxOutputTokens, budget + minBudget)
  }
}

const samplingOptions = ({ model, temperature, topK, topP }: AnthropicRequest): Block =>
  takesSampling.test(model)
    ? {
        ...(temperature === undefined ? {} : { temperature: Math.min(1, temperature) }),
        ...(topP === undefined || temperature !== undefined ? {} : { top_p: topP }),
        ...(topK === undefined ? {} : { top_k: topK })
      }
    : {}

/** A tool, as a request declares it. */
export const declaredTool = ({ description, name, parameters }: ToolDeclaration): Block => ({
  name,
  ...(description === undefined ? {} : { description }),
  input_schema: parameters
})

/** Returns the part of a request that is counted, and the messages without cache marks. */
const prepared = (request: AnthropicRequest, names: ToolNames, needs: ReadonlySet<Need> = new Set()) => {
  const { contents, model, mustCall, systemInstruction = "", tools } = request
  const isAsked = mustCall === true && tools.length > 0 && bindsThinking.test(model)
  const texts = isAsked ? [systemInstruction, callInstruction] : [systemInstruction]
  const system = texts.filter((text) => text.trim() !== "").join("\n\n")
  const isSilent = system === ""
  const messages = dialogueOf(contents, targetOf(request)).map(messageOf(names, needs, model))
  const declared = tools.map((tool) => declaredTool({ ...tool, name: names.sent(tool.name) }))
  const body: Block = {
    model,
    ...(tools.length === 0 ? {} : { tools: isSilent ? withMark(declared) : declared }),
    // Its mark covers the tools, which come before it.
    ...(isSilent ? {} : { system: withMark([{ type: "text", text: system }]) }),
    messages: marked(messages)
  }
  return { body, messages }
}

/** The beta features that a body needs: to return what the server compacted, and to drop thinking that no longer applies. */
export const betaOf = (body: Block): string | undefined => {
  const blocks = jsonsAt(body, "messages").flatMap((message) => jsonsAt(message, "content"))
  const isBound = bindsThinking.test(textOrEmpty(body, "model")) && blocks.some(isThinking)
  const names = [
    ...(blocks.some(isCompaction) ? ["compact-2026-01-12"] : []),
    ...(isBound ? ["thinking-binding-controls-2026-08-01"] : [])
  ]
  return names.length === 0 ? undefined : names.join(",")
}

/** The body of a request that only counts tokens. */
export const countBody = (request: AnthropicRequest, names: ToolNames): Block => {
  const { body, messages } = prepared(request, names)
  // Counting makes the same check.
  return carriesBound(request.model, messages) ? { ...body, thinking: { type: "adaptive", ...dropsChanged } } : body
}

/** The body of a request for a streamed answer. `needs`: what its server refuses calls without. */
export const requestBody = (given: AnthropicRequest, names: ToolNames, needs?: ReadonlySet<Need>): Block => {
  const request = takesFormat.test(given.model) ? given : withToldSchema(given)
  const { maxOutputTokens, model, mustCall, responseSchema, tools } = request
  const { body, messages } = prepared(request, names, needs)
  const thinking = thinkingOptions(request, messages)
  return {
    ...body,
    max_tokens: maxOutputTokens,
    stream: true,
    ...(mustCall === true && tools.length > 0 && !bindsThinking.test(model) ? { tool_choice: { type: "any" } } : {}),
    ...(responseSchema === undefined
      ? {}
      : { output_config: { format: { type: "json_schema", schema: responseSchema } } }),
    ...("thinking" in thinking ? {} : samplingOptions(request)),
    ...thinking
  }
}
