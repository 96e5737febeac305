import {
  type Content,
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
import { type NativeCall, unheldKind } from "../CompactionLayout.ts"
import { isJson, type Json } from "../JsonRecord.ts"
import { listedBlocks } from "../ListedBlocks.ts"
import type { Skipped } from "../Skipped.ts"

/** Writes parts as blocks of the Anthropic API, without those that it would refuse. */

/** The text that Claude Code writes for an empty message, because the API accepts none. */
export const noContent = "(no content)"

const images = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

const mediaBlock = ({ fileData: file, inlineData: data }: Part): Json | undefined => {
  const mime = data?.mimeType ?? file?.mimeType ?? ""
  const type = images.has(mime) ? "image" : mime === "application/pdf" ? "document" : undefined
  if (type === undefined) return undefined
  if (data !== undefined) {
    return data.data === undefined ? undefined : { type, source: { type: "base64", media_type: mime, data: data.data } }
  }
  const isWeb = /^https?:\/\//.test(file?.fileUri ?? "")
  return isWeb ? { type, source: { type: "url", url: file?.fileUri } } : undefined
}

const resultTypes = new Set(["text", "image", "document", "search_result", "tool_reference"])

/** Returns a block of another agent's result in Claude Code's form. */
const resultBlock = (block: unknown): Json => {
  const media = isJson(block) && "source" in block ? undefined : blockMedia(block)
  const native = media === undefined ? undefined : mediaBlock(media)
  if (native !== undefined) return native
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

/** Returns the block of a part; undefined for one that the API refuses, such as a thought without a signature that it can check. */
const blockOf = (
  role: Content["role"],
  part: Part,
  call: NativeCall | undefined,
  model: string | undefined
): Json | undefined => {
  if (isText(part)) return { type: "text", text: part.text }
  if (role === "user") {
    if (isResponse(part)) return call === undefined ? undefined : resultOf(part, call)
    return isMedia(part) ? mediaBlock(part) : undefined
  }
  if (isCall(part)) {
    const { args, name } = part.functionCall
    return { type: "tool_use", id: call?.id, name, input: isJson(args) ? args : {} }
  }
  return !isThought(part) || part.thoughtSignature === undefined || isForeign(model)
    ? undefined
    : { type: "thinking", thinking: part.text ?? "", signature: part.thoughtSignature }
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
    if (isText(part) && part.text === "") continue
    const block = blockOf(content.role, part, call(index), model)
    if (block === undefined) {
      unheld.add(unheldKind(content.role, part))
      continue
    }
    noteMediaInResult(part, unheld)
    if (part.thoughtSignature !== undefined && !isThought(part)) unheld.add("signatures")
    if (isResponse(part)) results.push(block)
    else others.push(block)
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
