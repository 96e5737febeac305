/** Makes an answer of an MCP server usable in which one entry is odd: the client refuses a list for one entry that it cannot read. */

import { Option, Predicate, Schema } from "effect"
import * as McpSchema from "effect/ai/McpSchema"

const decodeTool = Schema.decodeUnknownOption(McpSchema.Tool)
const decodeBlock = Schema.decodeUnknownOption(McpSchema.ContentBlock)

/** A record without its fields of null, which many servers write for what is not there, and those of its records. */
const withoutNulls = (value: unknown, levels = 2): unknown => {
  if (!Predicate.isObject(value) || levels === 0) return value
  const fields = Object.entries(value).filter(([, field]) => field !== null)
  return Object.fromEntries(fields.map(([key, field]) => [key, withoutNulls(field, levels - 1)]))
}

/** The forms of a tool to try: as it is, without null, with an object of arguments, and with what a model needs. */
const formsOf = (tool: unknown): ReadonlyArray<unknown> => {
  const clean = withoutNulls(tool)
  if (!Predicate.isObject(clean)) return [tool]
  const { description, inputSchema = {}, name } = clean
  const typed = { ...(Predicate.isObject(inputSchema) ? inputSchema : {}), type: "object" }
  return [
    tool,
    clean,
    { ...clean, inputSchema: typed },
    { name, inputSchema: typed, ...(Predicate.isString(description) ? { description } : {}) }
  ]
}

const nameOf = (tool: unknown): string =>
  Predicate.isObject(tool) && Predicate.isString(tool["name"]) ? tool["name"] : "a tool without a name"

/** The result of `tools/list`, without the tools that have no usable form. */
export const usableTools = (result: unknown) => {
  if (Predicate.isObject(result) && result["tools"] === null)
    return { result: { ...result, tools: [] }, unreadable: [] }
  if (!Predicate.isObject(result) || !Array.isArray(result["tools"])) return { result, unreadable: [] }
  const unreadable: Array<string> = []
  const tools = result["tools"].flatMap((tool: unknown) => {
    const usable = formsOf(tool).find((form) => Option.isSome(decodeTool(form)))
    if (usable === undefined) unreadable.push(nameOf(tool))
    return usable === undefined ? [] : [usable]
  })
  return { result: { ...result, tools }, unreadable }
}

/** A block whose data are base64: some servers write them as a data URL, for addresses, or without their end. */
const withBase64 = (block: unknown): unknown => {
  const { data } = Predicate.isObject(block) ? block : {}
  if (!Predicate.isObject(block) || !Predicate.isString(data)) return block
  const plain = data
    .replace(/^data:[^,]*,/, "")
    .replaceAll(/\s|=+$/g, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/")
  return { ...block, data: plain + "=".repeat((4 - (plain.length % 4)) % 4) }
}

/** The result of `tools/call`, with a line in place of each block that cannot be read. */
export const usableBlocks = (result: unknown): unknown => {
  if (!Predicate.isObject(result)) return result
  const { content } = result
  if (Predicate.isString(content)) return { ...result, content: [{ type: "text", text: content }] }
  // Go writes null for an empty list.
  const isEmpty = content === null || (content === undefined && Predicate.isObject(result["structuredContent"]))
  if (isEmpty) return { ...result, content: [] }
  if (!Array.isArray(content)) return result
  const blocks = content.map((block: unknown) => {
    const forms = [block, withoutNulls(block), withBase64(withoutNulls(block))]
    const usable = forms.find((form) => Option.isSome(decodeBlock(form)))
    if (usable !== undefined) return usable
    const type = Predicate.isObject(block) && Predicate.isString(block["type"]) ? block["type"] : "no type"
    return { type: "text", text: `[a block of type ${JSON.stringify(type)}: left out, it cannot be read]` }
  })
  return { ...result, content: blocks }
}
