/** Requests to OpenAI's Responses API. */

import type { Part } from "../../content/Content.ts"
import { mediaText } from "../../content/MediaBlocks.ts"
import type { Json } from "../../text/JsonObject.ts"
import { type DialogueRequest, type DialogueTurn, dialogueOf, type ModelBlock, type ToolResult } from "../Dialogue.ts"
import { argumentsOf, choice, declared, effortOf, formatOf, sampling, sendable, systemOf, thinks } from "../OpenAi.ts"
import type { ToolDeclaration, ToolNames } from "../ToolDeclarations.ts"

/** A tool, as a request declares it. */
export const declaredTool = (tool: ToolDeclaration): Json => ({ type: "function", ...tool, strict: false })

/** A text, an image or a file as a part of the input of the Responses API. */
export const inputPart = (part: Part): Json => {
  const media = sendable(part)
  if (media === undefined) return { type: "input_text", text: part.text ?? mediaText(part) }
  if (media.isImage) return { type: "input_image", detail: "auto", image_url: media.url }
  return media.url.startsWith("data:")
    ? { type: "input_file", filename: "file.pdf", file_data: media.url }
    : { type: "input_file", file_url: media.url }
}

const resultItem = ({ id, media, text }: ToolResult): Json => ({
  type: "function_call_output",
  call_id: id,
  output: media.length === 0 ? text : [{ type: "input_text", text }, ...media.map(inputPart)]
})

const modelItem =
  (names: ToolNames) =>
  (block: ModelBlock): unknown => {
    switch (block._tag) {
      case "Text":
        return { role: "assistant", content: block.text }
      case "Call":
        return {
          type: "function_call",
          call_id: block.id,
          name: names.sent(block.name),
          arguments: argumentsOf(block.args)
        }
      case "State":
        return block.state
    }
  }

const items =
  (names: ToolNames) =>
  (turn: DialogueTurn): ReadonlyArray<unknown> =>
    turn.role === "model"
      ? turn.blocks.map(modelItem(names))
      : [
          ...turn.results.map(resultItem),
          ...(turn.parts.length === 0 ? [] : [{ role: "user", content: turn.parts.map(inputPart) }])
        ]

/** Returns the body of a request to the Responses API. The API does not store it, so reasoning comes back encrypted. */
export const responsesBody = (request: DialogueRequest, names: ToolNames): Json => {
  const { contents, maxOutputTokens, model, server } = request
  const instructions = systemOf(request)
  const effort = effortOf(request)
  const format = formatOf(request)
  return {
    model,
    ...(instructions === undefined ? {} : { instructions }),
    ...declared(request, names, declaredTool),
    input: dialogueOf(contents, { dialect: "responses", model, server }).flatMap(items(names)),
    store: false,
    stream: true,
    ...(thinks(model) ? { include: ["reasoning.encrypted_content"] } : {}),
    ...(effort === undefined ? {} : { reasoning: { effort } }),
    // The API refuses fewer.
    ...(maxOutputTokens === undefined ? {} : { max_output_tokens: Math.max(16, maxOutputTokens) }),
    ...(format === undefined ? {} : { text: { format: { type: "json_schema", ...format } } }),
    ...sampling(request),
    ...choice(request)
  }
}
