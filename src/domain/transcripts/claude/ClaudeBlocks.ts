import {
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  isThought,
  outputText,
  type Part,
  isMedia
} from "../../content/Content.ts"
import { blockMedia } from "../../content/MediaBlocks.ts"
import type { Draft } from "../../conversation/Conversation.ts"
import type { NativeCall } from "../CompactionLayout.ts"
import { isJson, type Json } from "../JsonRecord.ts"
import { listedBlocks } from "../ListedBlocks.ts"
import type { Skipped } from "../Skipped.ts"

/** Writes parts as blocks of the Anthropic API, without those that it would refuse. */

/** The text that Claude Code writes for an empty message, because the API accepts none. */
export const noContent = "(no content)"

const images = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

/** A block, or the kind of a part that the API refuses. */
type Native = { readonly block: Json } | { readonly left: string | undefined }

const left = (kind?: string): Native => ({ left: kind })

const mediaBlock = (part: Part): Native => {
  const { fileData: file, inlineData: data } = part
  const mime = data?.mimeType ?? file?.mimeType ?? ""
  const type = images.has(mime) ? "image" : mime === "application/pdf" ? "document" : undefined
  if (data !== undefined) {
    return type === undefined || data.data === undefined
      ? left("media")
      : { block: { type, source: { type: "base64", media_type: mime, data: data.data } } }
  }
  const isWeb = /^https?:\/\//.test(file?.fileUri ?? "")
  return type === undefined || !isWeb ? left("files") : { block: { type, source: { type: "url", url: file?.fileUri } } }
}

const resultTypes = new Set(["text", "image", "document", "search_result", "tool_reference"])

/** Returns a block of another agent's result in Claude Code's form. */
const resultBlock = (block: unknown): Json => {
  const media = isJson(block) && "source" in block ? undefined : blockMedia(block)
  const native = media === undefined ? undefined : mediaBlock(media)
  if (native !== undefined && "block" in native) return native.block
  const known = isJson(block) && resultTypes.has(String(block.type))
  return known && (block.type !== "text" || typeof block.text === "string")
    ? block
    : { type: "text", text: JSON.stringify(block) }
}

const resultContent = (part: Part): unknown =>
  outputText(part) ?? listedBlocks(part)?.map(resultBlock) ?? JSON.stringify(part.functionResponse?.response) ?? ""

/** Writes a result. The API refuses a failure without a text. */
export const resultOf = (part: Part, call: NativeCall): Json => {
  const failed = isErrorResponse(part)
  const content = resultContent(part)
  const isEmpty = content === "" || (Array.isArray(content) && content.length === 0)
  return {
    type: "tool_result",
    tool_use_id: call.id,
    content: failed && isEmpty ? noContent : content,
    ...(failed ? { is_error: true } : {})
  }
}

const noteMediaInResult = ({ functionResponse }: Part, unheld: Skipped): void => {
  if (functionResponse?.parts !== undefined) unheld.add("media in results")
}

const isForeign = (model: string | undefined): boolean => model !== undefined && !/claude/i.test(model)

/** Writes a thought. The API refuses thoughts without a signature that it can check. */
const thoughtBlock = (part: Part, model: string | undefined): Native =>
  part.thoughtSignature === undefined || isForeign(model)
    ? left("thoughts")
    : { block: { type: "thinking", thinking: part.text ?? "", signature: part.thoughtSignature } }

const textBlock = (part: Part): Native =>
  part.text === undefined || part.text === "" ? left() : { block: { type: "text", text: part.text } }

const modelBlock = (part: Part, call: NativeCall | undefined, model: string | undefined): Native => {
  if (isCall(part)) {
    const { args, name } = part.functionCall
    return { block: { type: "tool_use", id: call?.id, name, input: isJson(args) ? args : {} } }
  }
  if (isResponse(part)) return left("results of the model")
  if (isThought(part)) return thoughtBlock(part, model)
  if (isText(part)) return textBlock(part)
  return left(isMedia(part) ? "media" : "unknown parts")
}

const userBlock = (part: Part, call: NativeCall | undefined): Native => {
  if (isCall(part)) return left("calls of the user")
  if (isResponse(part)) return call === undefined ? left("results without a call") : { block: resultOf(part, call) }
  if (isThought(part)) return left("thoughts")
  if (isText(part)) return textBlock(part)
  return isMedia(part) ? mediaBlock(part) : left("unknown parts")
}

/** Returns the blocks of a message in the order that the API requires: results first. */
export const blocksOf = (
  { content }: Draft,
  model: string | undefined,
  call: (part: number) => NativeCall | undefined,
  unheld: Skipped
): ReadonlyArray<Json> => {
  const results: Array<Json> = []
  const others: Array<Json> = []
  for (const [index, part] of content.parts.entries()) {
    const native = content.role === "model" ? modelBlock(part, call(index), model) : userBlock(part, call(index))
    if ("left" in native) {
      if (native.left !== undefined) unheld.add(native.left)
      continue
    }
    noteMediaInResult(part, unheld)
    if (part.thoughtSignature !== undefined && !isThought(part)) unheld.add("signatures")
    if (isResponse(part)) results.push(native.block)
    else others.push(native.block)
  }
  return [...results, ...others]
}

/** Whether a block is the result of a call. */
export const isAnswer = (block: Json): boolean => block.type === "tool_result"

/** Returns the content of a user line. A single text is written as a string. */
export const contentOf = (blocks: ReadonlyArray<Json>): unknown => {
  const [only] = blocks
  if (only === undefined) return noContent
  return blocks.length === 1 && only.type === "text" ? only.text : blocks
}
