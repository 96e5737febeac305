/** Items of OpenAI's Responses API. */

import type { Content, Part } from "../../content/Content.ts"
import { isJson, type Json, textOrEmpty } from "../../text/JsonObject.ts"
import { callArguments } from "../AnswerForm.ts"
import { isInstruction } from "../Dialect.ts"
import {
  contentParts,
  groupOf,
  type MessageCodec,
  type MessageGroup,
  opaque,
  opaqueMedia,
  plainMessage,
  type ReadPart,
  resultTexts,
  shortText
} from "../MessageCodec.ts"
import { openAiPart } from "../OpenAi.ts"

const readContent = ({ content, role }: Json, message: number): ReadonlyArray<ReadPart> => {
  const type = role === "assistant" ? "output_text" : "input_text"
  const write = (part: Part) => ({ type, text: shortText(part) })
  return contentParts(content, message, (block, path) => [[openAiPart(block), { message, path, write }]])
}

/** The role and the parts of an item; undefined for an instruction. */
const readItem = (
  item: Json,
  at: number,
  names: Map<string, string>
): readonly [Content["role"], ReadonlyArray<ReadPart>] | undefined => {
  // What the provider compacted is nowhere else, and nobody but the provider can read it.
  if (isInstruction(item) || textOrEmpty(item, "type").includes("compaction")) return undefined
  const id = textOrEmpty(item, "call_id")
  switch (item["type"] ?? "message") {
    case "message":
      if (item["role"] === "user") return ["user", readContent(item, at)]
      return item["role"] === "assistant" ? ["model", readContent(item, at)] : undefined
    case "function_call":
    case "custom_tool_call": {
      const name = textOrEmpty(item, "name")
      names.set(id, name)
      const args = "input" in item ? item["input"] : (callArguments(item["arguments"]) ?? item["arguments"])
      return ["model", [[{ functionCall: { id, name, args } }, undefined]]]
    }
    case "function_call_output":
    case "custom_tool_call_output": {
      const part = {
        functionResponse: { id, name: names.get(id) ?? "", response: resultTexts(item["output"], "input_text") }
      }
      return ["user", [[part, { message: at, path: ["output"], write: shortText }]]]
    }
    default:
      // Reasoning, searches and calls that the provider runs itself belong to the turn they stand in.
      return ["model", [[opaque(item), undefined], ...opaqueMedia(item)]]
  }
}

const reference = "item_reference"
/** Whether the JSON of an item may be a reference to one that the provider stores. */
export const mayRefer = (json: string): boolean => json.includes(reference) || /^\{\s*"(?:id|type)"[^{}]*\}$/.test(json)

/** The id of the item that this one refers to; undefined for any other item. The API takes one without a type as well. */
export const referenceOf = (item: Json): string | undefined => {
  const { id, type, ...others } = item
  const isBare = (type ?? undefined) === undefined && typeof id === "string" && Object.keys(others).length === 0
  return type === reference || isBare ? textOrEmpty(item, "id") : undefined
}

/** What an item is to its neighbours: items of the same kind in a row are one group, so that reasoning stays with what it led to. */
const kindOf = (role: Content["role"], item: Json): string =>
  role === "model" ? "model" : "call_id" in item ? "results" : `message ${String(item["id"])}`

/** Items in the dialect of the Responses API. */
export const responsesCodec: MessageCodec = {
  read: (messages) => {
    const names = new Map<string, string>()
    const groups: Array<MessageGroup> = []
    let open: { readonly kind: string; readonly from: number; readonly role: Content["role"] } | undefined
    let parts: Array<ReadPart> = []
    const close = (to: number) => {
      if (open !== undefined && parts.length > 0) groups.push(groupOf(open.from, to, open.role, parts))
      open = undefined
      parts = []
    }
    for (const [at, item] of messages.entries()) {
      const read = isJson(item) ? readItem(item, at, names) : undefined
      if (read === undefined || !isJson(item)) {
        close(at)
        continue
      }
      const [role, found] = read
      const kind = kindOf(role, item)
      if (open?.kind !== kind || kind.startsWith("message")) close(at)
      open ??= { kind, from: at, role }
      for (const each of found) parts.push(each)
    }
    close(messages.length)
    return groups
  },
  write: plainMessage
}
