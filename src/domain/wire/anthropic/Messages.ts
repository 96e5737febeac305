import type { Part } from "../../content/Content.ts"
import {
  groupOf,
  isJson,
  type Json,
  type MessageCodec,
  opaque,
  plainMessage,
  type ReadPart,
  shortText,
  textAt
} from "../MessageCodec.ts"

/** Messages of Anthropic's Messages API. */

const textBlock = (part: Part) => ({ type: "text", text: shortText(part) })

/** What a result shows: its texts, and its media. */
const resultOf = (content: unknown): unknown => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  const blocks: ReadonlyArray<unknown> = content
  return blocks.every((block) => isJson(block) && block["type"] === "text")
    ? blocks.map((block) => (isJson(block) ? textAt(block, "text") : "")).join("\n")
    : blocks
}

const partOf = (block: Json, names: Map<string, string>): Part => {
  switch (block["type"]) {
    case "text":
      return { text: textAt(block, "text") }
    case "thinking":
      return { text: textAt(block, "thinking"), thought: true }
    case "tool_use": {
      const [id, name] = [textAt(block, "id"), textAt(block, "name")]
      names.set(id, name)
      return { functionCall: { id, name, args: block["input"] } }
    }
    case "tool_result": {
      const id = textAt(block, "tool_use_id")
      const shown = resultOf(block["content"])
      const response = block["is_error"] === true ? { error: shown } : shown
      return { functionResponse: { id, name: names.get(id) ?? "", response } }
    }
    default:
      return opaque(block)
  }
}

const readBlock = (block: unknown, message: number, at: number, names: Map<string, string>): ReadPart => {
  if (!isJson(block)) return [opaque(block), undefined]
  const part = partOf(block, names)
  const path = ["content", at]
  if (block["type"] === "tool_result") return [part, { message, path: [...path, "content"], write: shortText }]
  return [part, part.thought === true ? undefined : { message, path, write: textBlock }]
}

/** Messages in Anthropic's dialect. The system instruction is not one of them. */
export const anthropicCodec: MessageCodec = {
  read: (messages) => {
    const names = new Map<string, string>()
    return messages.flatMap((message, at) => {
      if (!isJson(message) || (message["role"] !== "user" && message["role"] !== "assistant")) return []
      const { content } = message
      const role = message["role"] === "user" ? "user" : "model"
      const parts: ReadonlyArray<ReadPart> =
        typeof content === "string"
          ? [[{ text: content }, { message: at, path: ["content"], write: shortText }]]
          : Array.isArray(content)
            ? content.map((block: unknown, index) => readBlock(block, at, index, names))
            : []
      return parts.length === 0 ? [] : [groupOf(at, at + 1, role, parts)]
    })
  },
  write: plainMessage
}
