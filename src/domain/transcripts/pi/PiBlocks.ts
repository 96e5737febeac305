import { type Content, isCall, isText, isThought, outputText, type Part } from "../../content/Content.ts"
import { messageMedia } from "../../content/MediaBlocks.ts"
import { type NativeCall, unheldKind } from "../CompactionLayout.ts"
import { isJson, type Json } from "../JsonRecord.ts"
import { listedBlocks } from "../ListedBlocks.ts"
import type { Skipped } from "../Skipped.ts"

/** Writes parts as blocks of Pi's messages. */

const signature = (key: string, { thoughtSignature }: Part) =>
  thoughtSignature === undefined ? {} : { [key]: thoughtSignature }

const imageBlock = ({ inlineData: { data, mimeType } = {} }: Part): Json | undefined =>
  data !== undefined && mimeType?.startsWith("image/") === true ? { type: "image", data, mimeType } : undefined

/** Returns the block of a part of a message; undefined when Pi has none for it. */
const blockOf = (role: Content["role"], part: Part, call: NativeCall | undefined): Json | undefined => {
  if (isText(part)) return { type: "text", text: part.text }
  if (role === "user") return imageBlock(part)
  if (isCall(part)) {
    const { args, name } = part.functionCall
    const block = { type: "toolCall", id: call?.id, name, arguments: isJson(args) ? args : {} }
    return { ...block, ...signature("thoughtSignature", part) }
  }
  return isThought(part)
    ? { type: "thinking", thinking: part.text ?? "", ...signature("thinkingSignature", part) }
    : undefined
}

/** Returns a block of another agent's result in Pi's form. */
const resultBlock = (block: unknown): Json => {
  if (isJson(block) && block.type === "text" && typeof block.text === "string") return block
  const media = messageMedia(block)
  return (media === undefined ? undefined : imageBlock(media)) ?? { type: "text", text: JSON.stringify(block) }
}

/** Returns the content of a result as blocks. */
export const resultContent = (part: Part): ReadonlyArray<Json> => {
  const text = outputText(part)
  if (text !== undefined) return text === "" ? [] : [{ type: "text", text }]
  const json = JSON.stringify(part.functionResponse?.response) ?? ""
  return listedBlocks(part)?.map(resultBlock) ?? [{ type: "text", text: json }]
}

/** Returns the blocks of parts, and counts those that have none. */
export const blocksOf = (
  role: Content["role"],
  parts: ReadonlyArray<Part>,
  call: (part: number) => NativeCall | undefined,
  unheld: Skipped
): ReadonlyArray<Json> =>
  parts.flatMap((part, index) => {
    const block = blockOf(role, part, call(index))
    if (block !== undefined) return [block]
    unheld.add(unheldKind(role, part))
    return []
  })
