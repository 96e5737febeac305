/** Requests to servers of Chat Completions. */

import { type Part, placeholderSignature } from "../../content/Content.ts"
import { mediaText } from "../../content/MediaBlocks.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import {
  type DialogueRequest,
  type DialogueTurn,
  dialogueOf,
  isMistral,
  type ModelBlock,
  noWords
} from "../Dialogue.ts"
import type { Need } from "../LearnedForm.ts"
import type { Target } from "../ModelState.ts"
import { argumentsOf, choice, declared, effortOf, formatOf, sampling, sendable, systemOf } from "../OpenAi.ts"
import type { ToolDeclaration, ToolNames } from "../ToolDeclarations.ts"

/** A tool, as a request declares it. */
export const declaredTool = (tool: ToolDeclaration): Json => ({ type: "function", function: tool })

const chatPart = (part: Part): Json => {
  const media = sendable(part)
  if (media === undefined) return { type: "text", text: part.text ?? mediaText(part) }
  return media.isImage
    ? { type: "image_url", image_url: { url: media.url } }
    : media.url.startsWith("data:")
      ? { type: "file", file: { filename: "file.pdf", file_data: media.url } }
      : { type: "text", text: mediaText(part) }
}

/** Content of nothing but text is sent as a text: some servers accept nothing else. */
const chatContent = (parts: ReadonlyArray<Json>): unknown =>
  parts.every(({ type }) => type === "text") ? parts.map(({ text }) => text).join("\n\n") : parts

/** The fields that the server added to a message. Servers whose models reason require them with calls; with a text alone some refuse them. */
const fieldsOf = (blocks: ReadonlyArray<ModelBlock>): Json =>
  blocks.reduce<Json>(
    (fields, block) => (block._tag === "State" && isJson(block.state) ? { ...fields, ...block.state } : fields),
    {}
  )

/** What a model of Gemini takes for the signature of another model's call. */
const unsigned = { extra_content: { google: { thought_signature: placeholderSignature } } }

const chatMessages =
  (names: ToolNames, target: Target, needs: ReadonlySet<Need>) =>
  (turn: DialogueTurn): ReadonlyArray<Json> => {
    if (turn.role === "user") {
      // The result of a tool is a text in this dialect, so that its media follows.
      const parts = [...turn.results.flatMap(({ media }) => media), ...turn.parts].map(chatPart)
      return [
        ...turn.results.map(({ id, text }) => ({ role: "tool", tool_call_id: id, content: text })),
        ...(turn.results.length > 0 && parts.length > 0 && isMistral(target)
          ? [{ role: "assistant", content: noWords.model }]
          : []),
        ...(parts.length === 0 ? [] : [{ role: "user", content: chatContent(parts) }])
      ]
    }
    const calls = turn.blocks.filter((block) => block._tag === "Call")
    const text = turn.blocks.flatMap((block) => (block._tag === "Text" ? [block.text] : [])).join("")
    return [
      {
        role: "assistant",
        // A turn that contains only what a server compacted has no text in this dialect.
        content: text !== "" ? text : calls.length === 0 ? noWords.model : null,
        ...(calls.length === 0
          ? {}
          : {
              ...(needs.has("reasoning") ? { reasoning_content: noWords.thought } : {}),
              ...fieldsOf(turn.blocks),
              tool_calls: calls.map(({ args, id, name, state }, at) => ({
                ...(at === 0 && needs.has("signature") ? unsigned : {}),
                ...(isJson(state) ? state : {}),
                id,
                type: "function",
                function: { name: names.sent(name), arguments: argumentsOf(args) }
              }))
            })
      }
    ]
  }

/**
 * The body of a request to a server of Chat Completions. `isOpenAi`: OpenAI's own, which wants another key for the length of an answer.
 * `needs`: what one refuses calls without.
 */
export const chatBody = (
  request: DialogueRequest,
  names: ToolNames,
  isOpenAi: boolean,
  needs: ReadonlySet<Need> = new Set()
): Json => {
  const { contents, maxOutputTokens, model, server } = request
  const system = systemOf(request)
  const effort = effortOf(request)
  const format = formatOf(request)
  const target = { dialect: "chat", model, server } as const
  return {
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: "system", content: system }]),
      ...dialogueOf(contents, target).flatMap(chatMessages(names, target, needs))
    ],
    ...declared(request, names, declaredTool),
    stream: true,
    stream_options: { include_usage: true },
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(maxOutputTokens === undefined ? {} : { [isOpenAi ? "max_completion_tokens" : "max_tokens"]: maxOutputTokens }),
    ...(format === undefined ? {} : { response_format: { type: "json_schema", json_schema: format } }),
    ...sampling(request),
    ...choice(request)
  }
}
