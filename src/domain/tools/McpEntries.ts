import { Option, Predicate, Schema } from "effect"
import * as McpSchema from "effect/ai/McpSchema"

/** Makes an answer of an MCP server usable in which one entry is odd: the client refuses a list for one entry that it cannot read. */

const decodeTool = Schema.decodeUnknownOption(McpSchema.Tool)
const decodeBlock = Schema.decodeUnknownOption(McpSchema.ContentBlock)

/** A list of tools, and the names of those that cannot be used. */
interface UsableTools {
  readonly result: unknown
  readonly unreadable: ReadonlyArray<string>
}

/** The forms of a tool to try: as it is, as a tool with an object of arguments, and without what a model does not need. */
const formsOf = (tool: unknown): ReadonlyArray<unknown> => {
  if (!Predicate.isObject(tool)) return [tool]
  const { description, inputSchema = {}, name } = tool
  const typed = { ...(Predicate.isObject(inputSchema) ? inputSchema : {}), type: "object" }
  return [
    tool,
    { ...tool, inputSchema: typed },
    { name, inputSchema: typed, ...(Predicate.isString(description) ? { description } : {}) }
  ]
}

const nameOf = (tool: unknown): string =>
  Predicate.isObject(tool) && Predicate.isString(tool["name"]) ? tool["name"] : "a tool without a name"

/** The result of `tools/list`, without the tools that have no usable form. */
export const usableTools = (result: unknown): UsableTools => {
  if (!Predicate.isObject(result) || !Array.isArray(result["tools"])) return { result, unreadable: [] }
  const unreadable: Array<string> = []
  const tools = result["tools"].flatMap((tool: unknown) => {
    const usable = formsOf(tool).find((form) => Option.isSome(decodeTool(form)))
    if (usable === undefined) unreadable.push(nameOf(tool))
    return usable === undefined ? [] : [usable]
  })
  return { result: { ...result, tools }, unreadable }
}

/** The result of `tools/call`, with a line in place of each block that cannot be read. */
export const usableBlocks = (result: unknown): unknown => {
  if (!Predicate.isObject(result) || !Array.isArray(result["content"])) return result
  const content = result["content"].map((block: unknown) => {
    if (Option.isSome(decodeBlock(block))) return block
    const type = Predicate.isObject(block) && Predicate.isString(block["type"]) ? block["type"] : "no type"
    return { type: "text", text: `[a block of type ${JSON.stringify(type)}: left out, it cannot be read]` }
  })
  return { ...result, content }
}
