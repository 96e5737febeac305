/**
 * One message of a conversation in the wire shape of the Gemini API: a role and parts. Unknown keys (thought signatures, cache hints, future
 * additions) pass through unchanged.
 */

import { Predicate, Schema } from "effect"
import { decode, encode } from "../text/Bytes.ts"
import { type SourceText, spelledSurrogate } from "../text/JsonSource.ts"

const open = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Unknown)])

/** A tool call of the model. `id` pairs it with its response; without one, order does. */
export const FunctionCall = open({
  id: Schema.optionalKey(Schema.String),
  name: Schema.String,
  args: Schema.optionalKey(Schema.Unknown)
})
export type FunctionCall = typeof FunctionCall.Type

/** The response of a tool. */
export const FunctionResponse = open({
  id: Schema.optionalKey(Schema.String),
  name: Schema.optionalKey(Schema.String),
  response: Schema.optionalKey(Schema.Unknown),
  parts: Schema.optionalKey(Schema.Unknown)
})
export type FunctionResponse = typeof FunctionResponse.Type

/** Bytes inside the message, as base64. */
export const InlineData = open({
  mimeType: Schema.optionalKey(Schema.String),
  data: Schema.optionalKey(Schema.String)
})

/** Bytes stored elsewhere. */
export const FileData = open({
  mimeType: Schema.optionalKey(Schema.String),
  fileUri: Schema.optionalKey(Schema.String)
})

/** The shape of a part, as a schema that reports what is wrong with an invalid value. */
export const PartShape = open({
  text: Schema.optionalKey(Schema.String),
  thought: Schema.optionalKey(Schema.Boolean),
  thoughtSignature: Schema.optionalKey(Schema.String),
  functionCall: Schema.optionalKey(FunctionCall),
  functionResponse: Schema.optionalKey(FunctionResponse),
  inlineData: Schema.optionalKey(InlineData),
  fileData: Schema.optionalKey(FileData)
})
export type Part = typeof PartShape.Type

/** The sender of a message. The protocol has these two; tools and programs use the user's role. */
export const Role = Schema.Literals(["user", "model"])
export type Role = typeof Role.Type

/** The shape of a message. */
export const ContentShape = open({ role: Role, parts: Schema.Array(PartShape) })
export type Content = typeof ContentShape.Type

/** Whether a value has the shape of a part. */
export const isPart = Schema.is(PartShape)

/**
 * A part. Decoding checks the shape and returns the same value: rebuilding it would change the order of its keys, and with it the bytes behind its
 * handle.
 */
export const Part = Schema.declare(isPart, { title: "Part" })
/** A message. Decoding returns the same value, as for `Part`. */
export const Content = Schema.declare(Schema.is(ContentShape), { title: "Content" })

/** Makes a text part. */
export const text = (value: string): Part => ({ text: value })
/**
 * Makes a message in the user's role.
 *
 * **Example** (Writing a question)
 *
 * ```ts
 * import { Content } from "palimpsest"
 *
 * console.log(Content.user(Content.text("Why does the build fail?"))) // => { role: 'user', parts: [ { text: 'Why does the build fail?' } ] }
 * ```
 */
export const user = (...parts: ReadonlyArray<Part>): Content => ({ role: "user", parts })
/**
 * Makes a message in the model's role.
 *
 * **Example** (Writing an answer with a call)
 *
 * ```ts
 * import { Content } from "palimpsest"
 *
 * const answer = Content.model(
 *   Content.text("Let me see."),
 *   Content.call("read_file", { path: "build.log" }, "call-1")
 * )
 * console.log(answer.parts.filter(Content.isCall).length) // => 1
 * ```
 */
export const model = (...parts: ReadonlyArray<Part>): Content => ({ role: "model", parts })
/** Makes a tool call. Without an id, its response is found by name and order. */
export const call = (name: string, args: unknown, id?: string): Part => ({
  functionCall: id === undefined ? { name, args } : { id, name, args }
})
/**
 * Makes a tool response, with the id of its call if that has one.
 *
 * **Example** (Answering a call)
 *
 * ```ts
 * import { Content } from "palimpsest"
 *
 * const answered = Content.user(Content.response("read_file", { output: "exit 2" }, "call-1"))
 * console.log(Content.hasResponses(answered), answered.parts.map(Content.outputText)) // => true [ 'exit 2' ]
 * ```
 */
export const response = (name: string, value: unknown, id?: string): Part => ({
  functionResponse: id === undefined ? { name, response: value } : { id, name, response: value }
})

/** Whether a part is a tool call. */
export const isCall = (part: Part): part is Part & { readonly functionCall: FunctionCall } =>
  part.functionCall !== undefined
/** Whether a part is a tool response. */
export const isResponse = (part: Part): part is Part & { readonly functionResponse: FunctionResponse } =>
  part.functionResponse !== undefined
/** Whether a part is a thought of the model. */
export const isThought = (part: Part): boolean => part.thought === true
/** Whether a part is media: inline bytes or a file. */
export const isMedia = (part: Part): boolean => part.inlineData !== undefined || part.fileData !== undefined
/** Whether a part is plain text and not a thought. */
export const isText = (part: Part): part is Part & { readonly text: string } =>
  part.text !== undefined && !isThought(part) && !isCall(part) && !isResponse(part)

/** Whether any part is a tool response. */
export const hasResponses = (content: Content): boolean => content.parts.some(isResponse)

/**
 * All plain text of a message, parts joined by a line break.
 *
 * **Example** (Reading the words of a message)
 *
 * ```ts
 * import { Content } from "palimpsest"
 *
 * const answer = Content.model({ text: "The log first.", thought: true }, Content.text("A comma is missing."))
 * console.log(Content.plainText(answer)) // => A comma is missing.
 * ```
 */
export const plainText = (content: Content): string =>
  content.parts
    .filter(isText)
    .map((part) => part.text)
    // A part of nothing but a signature.
    .filter((words) => words !== "")
    .join("\n")

const textKeys = ["output", "content", "error", "result", "response"]

/** The key of a response that consists of one text: `{output}`, `{content}`, `{error}`, `{result}` or `{response}`, with nothing beside it. */
const textKey = (response: unknown): string | undefined => {
  if (!Predicate.isObject(response)) return undefined
  const keys = Object.keys(response)
  const key = keys[0]
  return keys.length === 1 && key !== undefined && textKeys.includes(key) && typeof response[key] === "string"
    ? key
    : undefined
}

/** The text of a tool response that consists of one text, so that the text alone can stand for it. Undefined for any other part. */
export const outputText = (part: Part): string | undefined => {
  const answer = part.functionResponse
  if (answer === undefined || answer.parts !== undefined) return undefined
  if (typeof answer.response === "string") return answer.response
  const key = textKey(answer.response)
  return key === undefined || !Predicate.isObject(answer.response) ? undefined : String(answer.response[key])
}

/** Whether a tool response is a failure: `{error: …}`. */
export const isErrorResponse = (part: Part): boolean =>
  Predicate.isObject(part.functionResponse?.response) && "error" in part.functionResponse.response

/** The same response with another text: the pairing (id, name) and the key stay. */
export const withOutput = (part: Part, value: string): Part => {
  const answer = part.functionResponse
  if (answer === undefined) return { ...part, text: value }
  const { parts: _dropped, ...rest } = answer
  if (typeof answer.response === "string") return { ...part, functionResponse: { ...rest, response: value } }
  return {
    ...part,
    functionResponse: { ...rest, response: { [textKey(answer.response) ?? "output"]: value } }
  }
}

/**
 * The text that a handle returns for a part, byte for byte: a text part's own text, or the JSON text that any other part was read from. `source` is
 * that JSON text if writing the value again would differ from it.
 */
export interface Payload {
  readonly form: "text" | "json"
  readonly text: string
}

/** Whether every ill-formed character of a text stands for a byte, so that its bytes read back as the same text. */
const standsForBytes = (text: string): boolean => decode(encode(text)).text === text

/** The text that stands for a part: its own, or the single text of a tool response. */
const partText = (part: Part): string | undefined =>
  part.text !== undefined && !isCall(part) && !isResponse(part) ? part.text : outputText(part)

/** The text and bytes that a handle of this part returns. `source` is the JSON text it was read from, if that was kept (`needsSource`). */
export const payload = (part: Part, source?: SourceText): Payload => {
  const value = partText(part)
  // Lone surrogates stand for bytes of the file (see Bytes.ts), unless the file itself contained them as escapes.
  const isText =
    value?.isWellFormed() === true || (source === undefined && value !== undefined && standsForBytes(value))
  return isText && value !== undefined
    ? { form: "text", text: value }
    : { form: "json", text: source ?? JSON.stringify(part) }
}

const plainKeys = new Set(["text", "thought", "thoughtSignature", "functionResponse"])

/** Whether `slice`, the JSON text a part was read from, must be kept: the part is not simply a text, and writing it again would give another text. */
export const needsSource = (part: Part, slice: SourceText): boolean => {
  const value = partText(part)
  if (value?.isWellFormed() === false && spelledSurrogate.test(slice)) return true
  if (value !== undefined && Object.keys(part).every((key) => plainKeys.has(key))) return false
  return JSON.stringify(part) !== slice
}

/** A part as JSON, exactly as it was read if the source was kept. */
export const partJson = (part: Part, source?: SourceText): string => source ?? JSON.stringify(part)

/** Stands for a missing thought signature, which the API requires. It is missing when the call came from another model. */
export const placeholderSignature = "skip_thought_signature_validator"

/** A message without the signatures of its parts, for a model that did not write them. */
export const withoutSignatures = (content: Content): Content =>
  content.parts.some(({ thoughtSignature }) => thoughtSignature !== undefined)
    ? { ...content, parts: content.parts.map(({ thoughtSignature: _, ...part }) => part) }
    : content

/**
 * A message as the API accepts it: the first call of a model's message has a signature. Only requests are changed, and every message in the same way,
 * so that content sent before stays byte for byte the same.
 */
export const withSignature = (content: Content): Content => {
  if (content.role !== "model") return content
  const first = content.parts.findIndex(isCall)
  const part = content.parts[first]
  if (part === undefined || part.thoughtSignature !== undefined) return content
  return {
    ...content,
    parts: content.parts.map((each, at) => (at === first ? { ...each, thoughtSignature: placeholderSignature } : each))
  }
}
