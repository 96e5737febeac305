import { isCall, isResponse, isText, isThought, outputText, type Part } from "../../content/Content.ts"
import type { NativeCall } from "../CompactionLayout.ts"
import { isJson, type Json } from "../JsonRecord.ts"
import { listedBlocks } from "../ListedBlocks.ts"
import type { Skipped } from "../Skipped.ts"

/** Writes parts as blocks of Pi's messages. */

/** A block, or the kind of a part for which Pi has no block. */
type Native = { readonly block: Json } | { readonly left: string }

const left = (kind: string): Native => ({ left: kind })

const signature = (key: string, { thoughtSignature }: Part) =>
  thoughtSignature === undefined ? {} : { [key]: thoughtSignature }

/** Writes a part of a message by the model. */
export const modelBlock = (part: Part, call: NativeCall | undefined): Native => {
  if (isCall(part)) {
    const { args, name } = part.functionCall
    const block = { type: "toolCall", id: call?.id, name, arguments: isJson(args) ? args : {} }
    return { block: { ...block, ...signature("thoughtSignature", part) } }
  }
  if (isResponse(part)) return left("results of the model")
  if (isThought(part)) {
    return { block: { type: "thinking", thinking: part.text ?? "", ...signature("thinkingSignature", part) } }
  }
  if (isText(part)) return { block: { type: "text", text: part.text } }
  return left(part.inlineData !== undefined || part.fileData !== undefined ? "media" : "unknown parts")
}

/** Writes a part of a message by the user. */
export const userBlock = (part: Part): Native => {
  if (isCall(part)) return left("calls of the user")
  if (isResponse(part)) return left("results without a call")
  if (isThought(part)) return left("thoughts")
  if (isText(part)) return { block: { type: "text", text: part.text } }
  const { fileData, inlineData } = part
  if (fileData !== undefined) return left("files")
  if (inlineData === undefined) return left("unknown parts")
  const { data, mimeType } = inlineData
  return data === undefined || mimeType?.startsWith("image/") !== true
    ? left("media")
    : { block: { type: "image", data, mimeType } }
}

/** Returns a block of another agent's result in Pi's form. */
const resultBlock = (block: unknown): Json => {
  if (isJson(block) && block.type === "text" && typeof block.text === "string") return block
  if (isJson(block) && block.type === "image") {
    if (typeof block.data === "string") return block
    const source = isJson(block.source) ? block.source : {}
    if (typeof source.data === "string") return { type: "image", data: source.data, mimeType: source.media_type }
  }
  return { type: "text", text: JSON.stringify(block) }
}

/** Returns the content of a result as blocks. */
export const resultContent = (part: Part): ReadonlyArray<Json> => {
  const text = outputText(part)
  if (text !== undefined) return text === "" ? [] : [{ type: "text", text }]
  const json = JSON.stringify(part.functionResponse?.response) ?? ""
  return listedBlocks(part)?.map(resultBlock) ?? [{ type: "text", text: json }]
}

/** Returns the blocks of parts, and counts those that have none. */
export const blocksOf = (natives: ReadonlyArray<Native>, unheld: Skipped): ReadonlyArray<Json> =>
  natives.flatMap((native) => {
    if ("block" in native) return [native.block]
    unheld.add(native.left)
    return []
  })
