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

/** What a server was found to refuse in requests to a model. They go out without it from then on. */
export interface LearnedForm {
  /** Whether messages with calls need reasoning: DeepSeek's and Kimi's servers refuse those of other models. */
  readonly needsReasoning: boolean
  /** Parameters that are left out, or have another name. */
  readonly parameters: ReadonlyMap<string, string | undefined>
  /** Values, as JSON, with which parameters are left out. With others they are sent. */
  readonly values: ReadonlyMap<string, string>
}

/** That of a server which refused nothing. */
export const nothingLearned: LearnedForm = { needsReasoning: false, parameters: new Map(), values: new Map() }

/**
 * Parameters without which a request is still answered, with what its server does by itself; the limits of an answer are called otherwise by some
 * servers. A forced call is none of them: an answer without it is another one.
 */
const optionalParameters = ["stream_options", "temperature", "top_p", "reasoning_effort", "reasoning"]
const limits = ["max_tokens", "max_completion_tokens", "max_output_tokens"]

const needsReasoning = /reasoning_content.{0,60}(?:missing|must be passed back)|missing.{0,12}reasoning_content/i

/** Whether a text refuses the value of a parameter, not the parameter. */
const refusesValue = (name: string, text: string): boolean =>
  new RegExp(
    `unsupported value\\W{1,4}${name}\\b|(?<![\\w.])${name}\\b\\W{0,3} ?(?:does not support\\b(?!.{0,12} parameter)|(?:is )?too large|must be less than or equal|only .{0,12} is allowed)`,
    "i"
  ).test(text)

/** Whether a text refuses a parameter. It stands right beside the words that refuse it: elsewhere it may be quoted. */
const refusesName = (name: string, text: string): boolean =>
  new RegExp(
    [
      `\\b(?:unsupported|unrecognized|unknown|unexpected)\\b[a-z ]{0,30}\\W{0,4}${name}\\b`,
      `(?<![\\w.])${name}\\b\\W{0,3} ?(?:and \\w+ )?(?:(?:parameter|argument|field) )?(?:(?:is|are) )?(?:not (?:supported|permitted|allowed)|unsupported|extra (?:inputs|fields))`,
      `extra_forbidden\\W+loc\\W+body\\W+${name}\\b`
    ].join("|"),
    "i"
  ).test(text)

/** What a refusal tells of its server; undefined if it tells nothing new. `detail` is the server's text, `body` the request. */
export const learnedFrom = (known: LearnedForm, detail: string, body: Json): LearnedForm | undefined => {
  if (!known.needsReasoning && needsReasoning.test(detail)) return { ...known, needsReasoning: true }
  // Behind this key, vLLM quotes the request.
  const [text = ""] = detail.split(/['"]input['"]:/)
  const sent = [...optionalParameters, ...limits].filter((name) => name in body)
  const valued = sent.find((name) => refusesValue(name, text))
  if (valued !== undefined) {
    return { ...known, values: new Map([...known.values, [valued, JSON.stringify(body[valued])]]) }
  }
  const name = sent.find((each) => refusesName(each, text))
  if (name === undefined) return undefined
  // A name that was given instead of another one is refused, too: then none is known.
  const [first] = [...known.parameters].find(([, given]) => given === name) ?? []
  const instead = limits.includes(name)
    ? limits.find((each) => each !== name && new RegExp(`\\b${each}\\b`).test(text))
    : undefined
  return {
    ...known,
    parameters: new Map([...known.parameters, [first ?? name, first === undefined ? instead : undefined]])
  }
}

/** A body without the parameters and the values that its server refuses. */
export const withLearned = (body: Json, { parameters, values }: LearnedForm): Json =>
  parameters.size + values.size === 0
    ? body
    : Object.fromEntries(
        Object.entries(body).flatMap(([key, value]) => {
          const name = parameters.has(key) ? parameters.get(key) : key
          const refused = name === undefined ? undefined : values.get(name)
          return name === undefined || (refused !== undefined && refused === JSON.stringify(value))
            ? []
            : [[name, value]]
        })
      )

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
