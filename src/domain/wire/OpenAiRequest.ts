import type { Part } from "../content/Content.ts"
import { mediaType } from "../content/MediaBlocks.ts"
import type { Json } from "../text/JsonObject.ts"
import { wellFormedJson } from "../text/JsonText.ts"
import type { ValueAt } from "./Dialect.ts"
import type { DialogueRequest } from "./Dialogue.ts"
import { isClosed } from "./ResponseSchema.ts"
import type { ToolDeclaration, ToolNames } from "./ToolDeclarations.ts"

/** What requests have in common in the two dialects of OpenAI: Responses, and Chat Completions, which many other servers speak. */

/** Whether a model reasons. Such models take no sampling parameters. */
export const thinks = (model: string): boolean => /(?:^|\/)(?:o\d|gpt-[5-9](?!.*-chat)|codex-)/.test(model)

/** The reasoning effort that corresponds to a thinking budget. Undefined: the model chooses. */
export const effortOf = ({ model, thinkingBudget = 0 }: DialogueRequest): "high" | "low" | "medium" | undefined =>
  thinkingBudget <= 0 || !thinks(model)
    ? undefined
    : thinkingBudget < 4_096
      ? "low"
      : thinkingBudget < 16_384
        ? "medium"
        : "high"

/** The sampling parameters of a request. */
export const sampling = ({ model, temperature, topP }: DialogueRequest): Json =>
  thinks(model)
    ? {}
    : { ...(temperature === undefined ? {} : { temperature }), ...(topP === undefined ? {} : { top_p: topP }) }

/** The instructions of a request; undefined if they are blank. */
export const systemOf = ({ systemInstruction = "" }: DialogueRequest): string | undefined =>
  systemInstruction.trim() === "" ? undefined : systemInstruction

/** The address of an image or a PDF file that can be sent. Undefined for other media. */
export const sendable = (part: Part): { readonly isImage: boolean; readonly url: string } | undefined => {
  const { fileData, inlineData } = part
  const mimeType = mediaType(part)
  const isImage = mimeType.startsWith("image/")
  if (!isImage && mimeType !== "application/pdf") return undefined
  const { data = "" } = inlineData ?? {}
  const url = data === "" ? (fileData?.fileUri ?? "") : `data:${mimeType};base64,${data}`
  return /^(?:data|https?):/.test(url) ? { isImage, url } : undefined
}

/** The arguments of a call as JSON. */
export const argumentsOf = (args: unknown): string => wellFormedJson(JSON.stringify(args))

/** The declarations of the tools of a request. */
export const declared = (
  { tools }: DialogueRequest,
  names: ToolNames,
  declaredTool: (tool: ToolDeclaration) => Json
): Json =>
  tools.length === 0 ? {} : { tools: tools.map((tool) => declaredTool({ ...tool, name: names.sent(tool.name) })) }

/** Whether a client gets one answer at once, and its functions are not those that the API had before it had tools. */
export const allowsTools = (valueAt: ValueAt): boolean =>
  (valueAt("n") ?? 1) === 1 && valueAt("functions") === undefined && valueAt("background") !== true

/** The format of the answer: its name, its schema, and whether the API holds the answer to it. */
export const formatOf = ({ responseSchema: schema }: DialogueRequest): Json | undefined =>
  schema === undefined ? undefined : { name: "answer", schema, strict: isClosed(schema) }

/** Forces a call, if the request asks for one. */
export const choice = ({ mustCall, tools }: DialogueRequest): Json =>
  mustCall === true && tools.length > 0 ? { tool_choice: "required" } : {}
