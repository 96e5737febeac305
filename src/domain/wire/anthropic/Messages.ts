/** Messages of Anthropic's Messages API. */

import type { Part } from "../../content/Content.ts"
import { isJson, type Json, textOrEmpty } from "../../text/JsonObject.ts"
import {
  contentParts,
  groupOf,
  type MessageCodec,
  opaque,
  opaqueMedia,
  type PartSlot,
  plainMessage,
  type ReadPart,
  resultTexts,
  shortText
} from "../MessageCodec.ts"
import { isCompaction } from "../ModelState.ts"

const textBlock = (part: Part) => ({ type: "text", text: shortText(part) })

const partOf = (block: Json, names: Map<string, string>): Part => {
  switch (block["type"]) {
    case "text":
      return { text: textOrEmpty(block, "text") }
    case "compaction":
      // The server leaves out what stands before it.
      return typeof block["content"] === "string" ? { text: block["content"] } : opaque(block)
    case "thinking":
      return { text: textOrEmpty(block, "thinking"), thought: true }
    case "tool_use": {
      const [id, name] = [textOrEmpty(block, "id"), textOrEmpty(block, "name")]
      names.set(id, name)
      return { functionCall: { id, name, args: block["input"] } }
    }
    case "tool_result": {
      const id = textOrEmpty(block, "tool_use_id")
      const shown = resultTexts(block["content"] ?? "", "text")
      const response = block["is_error"] === true ? { error: shown } : shown
      return { functionResponse: { id, name: names.get(id) ?? "", response } }
    }
    default:
      return opaque(block)
  }
}

const readBlock = (
  block: Json,
  message: number,
  path: PartSlot["path"],
  names: Map<string, string>
): ReadonlyArray<ReadPart> => {
  const part = partOf(block, names)
  if (block["type"] === "tool_result") return [[part, { message, path: [...path, "content"], write: shortText }]]
  const isWhole = part.thought === true || isCompaction(block)
  const media = part.thought === true ? opaqueMedia(block) : []
  return [[part, isWhole ? undefined : { message, path, write: textBlock }], ...media]
}

/** Messages in Anthropic's dialect. The system instruction is not one of them. */
export const anthropicCodec: MessageCodec = {
  read: (messages) => {
    const names = new Map<string, string>()
    return messages.flatMap((message, at) => {
      if (!isJson(message) || (message["role"] !== "user" && message["role"] !== "assistant")) return []
      const role = message["role"] === "user" ? "user" : "model"
      const parts = contentParts(message["content"], at, (block, path) => readBlock(block, at, path, names))
      return parts.length === 0 ? [] : [groupOf(at, at + 1, role, parts)]
    })
  },
  write: plainMessage
}
