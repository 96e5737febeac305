import type { Content, Part } from "../content/Content.ts"
import { mediaText } from "../content/MediaBlocks.ts"
import { wellFormedJson } from "../text/JsonText.ts"
import { type DialogueTurn, dialogueOf, type ModelBlock, noWords, type ToolResult } from "./Dialogue.ts"
import { isJson, type Json } from "./MessageCodec.ts"
import type { ToolDeclaration, ToolNames } from "./ToolDeclarations.ts"

/** Requests in the two dialects of OpenAI: Responses, and Chat Completions, which many other servers speak. */

/** The input of a request. */
export interface OpenAiRequest {
  readonly model: string
  /** The host of the server. */
  readonly server: string
  readonly contents: ReadonlyArray<Content>
  readonly systemInstruction?: string | undefined
  readonly tools: ReadonlyArray<ToolDeclaration>
  readonly mustCall?: boolean | undefined
  readonly maxOutputTokens?: number | undefined
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  readonly thinkingBudget?: number | undefined
}

/** Whether a model reasons. Such models take no sampling parameters. */
const thinks = (model: string): boolean => /(?:^|\/)(?:o\d|gpt-[5-9](?!.*-chat)|codex-)/.test(model)

/** The reasoning effort that corresponds to a thinking budget. Undefined: the model chooses. */
const effortOf = ({ model, thinkingBudget = 0 }: OpenAiRequest): "high" | "low" | "medium" | undefined =>
  thinkingBudget <= 0 || !thinks(model)
    ? undefined
    : thinkingBudget < 4_096
      ? "low"
      : thinkingBudget < 16_384
        ? "medium"
        : "high"

const sampling = ({ model, temperature, topP }: OpenAiRequest): Json =>
  thinks(model)
    ? {}
    : { ...(temperature === undefined ? {} : { temperature }), ...(topP === undefined ? {} : { top_p: topP }) }

const systemOf = ({ systemInstruction = "" }: OpenAiRequest): string | undefined =>
  systemInstruction.trim() === "" ? undefined : systemInstruction

/** The address of an image or a PDF file that can be sent. Undefined for other media. */
const sendable = ({ fileData, inlineData }: Part): { readonly isImage: boolean; readonly url: string } | undefined => {
  const mimeType = (inlineData?.mimeType ?? fileData?.mimeType ?? "").toLowerCase()
  const isImage = mimeType.startsWith("image/")
  if (!isImage && mimeType !== "application/pdf") return undefined
  const { data = "" } = inlineData ?? {}
  const url = data === "" ? (fileData?.fileUri ?? "") : `data:${mimeType};base64,${data}`
  return /^(?:data|https?):/.test(url) ? { isImage, url } : undefined
}

const argumentsOf = (args: unknown): string => wellFormedJson(JSON.stringify(args))

const functionOf =
  (names: ToolNames) =>
  ({ description, name, parameters }: ToolDeclaration): Json => ({
    name: names.sent(name),
    ...(description === undefined ? {} : { description }),
    parameters
  })

const choice = ({ mustCall, tools }: OpenAiRequest): Json =>
  mustCall === true && tools.length > 0 ? { tool_choice: "required" } : {}

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
export const responsesBody = (request: OpenAiRequest, names: ToolNames): Json => {
  const { contents, maxOutputTokens, model, server, tools } = request
  const instructions = systemOf(request)
  const effort = effortOf(request)
  return {
    model,
    ...(instructions === undefined ? {} : { instructions }),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map((tool) => ({ type: "function", ...functionOf(names)(tool), strict: false })) }),
    input: dialogueOf(contents, { dialect: "responses", model, server }).flatMap(items(names)),
    store: false,
    stream: true,
    ...(thinks(model) ? { include: ["reasoning.encrypted_content"] } : {}),
    ...(effort === undefined ? {} : { reasoning: { effort } }),
    // The API refuses fewer.
    ...(maxOutputTokens === undefined ? {} : { max_output_tokens: Math.max(16, maxOutputTokens) }),
    ...sampling(request),
    ...choice(request)
  }
}

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
  Object.assign({}, ...blocks.map((block) => (block._tag === "State" && isJson(block.state) ? block.state : {})))

const chatMessages =
  (names: ToolNames) =>
  (turn: DialogueTurn): ReadonlyArray<Json> => {
    if (turn.role === "user") {
      // The result of a tool is a text in this dialect, so that its media follows.
      const parts = [...turn.results.flatMap(({ media }) => media), ...turn.parts].map(chatPart)
      return [
        ...turn.results.map(({ id, text }) => ({ role: "tool", tool_call_id: id, content: text })),
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
              ...fieldsOf(turn.blocks),
              tool_calls: calls.map(({ args, id, name, state }) => ({
                ...(isJson(state) ? state : {}),
                id,
                type: "function",
                function: { name: names.sent(name), arguments: argumentsOf(args) }
              }))
            })
      }
    ]
  }

/** The body of a request to a server of Chat Completions. `isOpenAi`: OpenAI's own, which wants another key for the length of an answer. */
export const chatBody = (request: OpenAiRequest, names: ToolNames, isOpenAi: boolean): Json => {
  const { contents, maxOutputTokens, model, server, tools } = request
  const system = systemOf(request)
  const effort = effortOf(request)
  return {
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: "system", content: system }]),
      ...dialogueOf(contents, { dialect: "chat", model, server }).flatMap(chatMessages(names))
    ],
    ...(tools.length === 0
      ? {}
      : { tools: tools.map((tool) => ({ type: "function", function: functionOf(names)(tool) })) }),
    stream: true,
    stream_options: { include_usage: true },
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(maxOutputTokens === undefined ? {} : { [isOpenAi ? "max_completion_tokens" : "max_tokens"]: maxOutputTokens }),
    ...sampling(request),
    ...choice(request)
  }
}
