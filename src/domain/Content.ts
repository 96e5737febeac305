import { Schema } from "effect"
import { decode, encode } from "./Bytes.ts"
import type { SourceText } from "./Source.ts"

/**
 * One message of a conversation in the wire shape of the Gemini API: a role and parts. Keys this module does not know
 * (thought signatures, cache hints, whatever comes next) pass through untouched.
 */

const open = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Unknown)])

/** A tool the model asks for. `id` pairs it with its response; where it is missing, order does. */
export const FunctionCall = open({
  id: Schema.optionalKey(Schema.String),
  name: Schema.String,
  args: Schema.optionalKey(Schema.Unknown)
})
export type FunctionCall = typeof FunctionCall.Type

/** What a tool answered. */
export const FunctionResponse = open({
  id: Schema.optionalKey(Schema.String),
  name: Schema.optionalKey(Schema.String),
  response: Schema.optionalKey(Schema.Unknown),
  parts: Schema.optionalKey(Schema.Unknown)
})
export type FunctionResponse = typeof FunctionResponse.Type

/** Bytes carried inside the message, base64. */
export const InlineData = open({
  mimeType: Schema.optionalKey(Schema.String),
  data: Schema.optionalKey(Schema.String)
})

/** Bytes that lie elsewhere. */
export const FileData = open({
  mimeType: Schema.optionalKey(Schema.String),
  fileUri: Schema.optionalKey(Schema.String)
})

/** The shape of a part, as a schema that says what is wrong with a value that is none. */
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

/** Who sends a message. The protocol knows these two; tools answer, and programs speak, in the user's role. */
export const Role = Schema.Literals(["user", "model"])
export type Role = typeof Role.Type

/** The shape of a message. */
export const ContentShape = open({ role: Role, parts: Schema.Array(PartShape) })
export type Content = typeof ContentShape.Type

/**
 * Decoding checks the shape and hands on the very same value: rebuilding it would change the order of its keys, and with
 * it the bytes behind its handle.
 */
export const Part = Schema.declare(Schema.is(PartShape), { title: "Part" })
/** A message. Decoding hands on the very same value, as that of a part does. */
export const Content = Schema.declare(Schema.is(ContentShape), { title: "Content" })

/** A part that says this. */
export const text = (value: string): Part => ({ text: value })
/** A message in the user's role. */
export const user = (...parts: ReadonlyArray<Part>): Content => ({ role: "user", parts })
/** A message in the model's role. */
export const model = (...parts: ReadonlyArray<Part>): Content => ({ role: "model", parts })
/** A tool asked for by the model. Without an id, its response is found by name and order. */
export const call = (name: string, args: unknown, id?: string): Part => ({
  functionCall: id === undefined ? { name, args } : { id, name, args }
})
/** What a tool answered, with the id of its call where that had one. */
export const response = (name: string, value: unknown, id?: string): Part => ({
  functionResponse: id === undefined ? { name, response: value } : { id, name, response: value }
})

/** Whether a part asks for a tool. */
export const isCall = (part: Part): part is Part & { readonly functionCall: FunctionCall } =>
  part.functionCall !== undefined
/** Whether a part is what a tool answered. */
export const isResponse = (part: Part): part is Part & { readonly functionResponse: FunctionResponse } =>
  part.functionResponse !== undefined
/** Whether the model thought this instead of saying it. */
export const isThought = (part: Part): boolean => part.thought === true
/** Whether a part is bytes, carried along or lying elsewhere. */
export const isMedia = (part: Part): boolean => part.inlineData !== undefined || part.fileData !== undefined
/** Plain text: what somebody said, not what the model thought. */
export const isText = (part: Part): part is Part & { readonly text: string } =>
  part.text !== undefined && !isThought(part) && !isCall(part) && !isResponse(part)

/** Whether any part is what a tool answered. */
export const hasResponses = (content: Content): boolean => content.parts.some(isResponse)

/** All plain text of a message, parts joined by a line break. */
export const plainText = (content: Content): string =>
  content.parts
    .filter(isText)
    .map((part) => part.text)
    .join("\n")

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const textKeys = ["output", "content", "error", "result"]

/** The key of a response that holds its one text: `{output}`, `{content}`, `{error}` or `{result}`, with nothing beside it. */
const textKey = (response: unknown): string | undefined => {
  if (!isRecord(response)) return undefined
  const keys = Object.keys(response)
  const key = keys[0]
  return keys.length === 1 && key !== undefined && textKeys.includes(key) && typeof response[key] === "string"
    ? key
    : undefined
}

/** A tool's answer when it is one text and nothing else, so that the text alone can stand for it. */
export const outputText = (part: Part): string | undefined => {
  const answer = part.functionResponse
  if (answer === undefined || answer.parts !== undefined) return undefined
  if (typeof answer.response === "string") return answer.response
  const key = textKey(answer.response)
  return key === undefined || !isRecord(answer.response) ? undefined : String(answer.response[key])
}

/** True when the tool said that it failed: its answer is `{error: …}`. */
export const isErrorResponse = (part: Part): boolean =>
  isRecord(part.functionResponse?.response) && "error" in part.functionResponse.response

/** The same answer with another text: the pairing (id, name) and the key stay. */
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
 * What a handle gives back for a part (law 1): a text as itself, anything else as the JSON text it was read from.
 * `source` is that text where writing the value again would differ from it.
 */
export interface Payload {
  readonly form: "text" | "json"
  readonly text: string
}

/** Whether all that is not well-formed in a text stands for bytes, so that its bytes read back as the same text. */
const standsForBytes = (text: string): boolean => decode(encode(text)).text === text

/** The text that stands for a part: its own, or a tool's one text. */
const partText = (part: Part): string | undefined =>
  part.text !== undefined && !isCall(part) && !isResponse(part) ? part.text : outputText(part)

/** What a handle of this part gives back. `source` is the JSON text it was read from, where that was kept (`needsSource`). */
export const payload = (part: Part, source?: SourceText): Payload => {
  const value = partText(part)
  // Lone surrogates stand for bytes of the file (see Bytes.ts) unless the file itself spelled them out.
  const isText =
    value?.isWellFormed() === true || (source === undefined && value !== undefined && standsForBytes(value))
  return isText && value !== undefined
    ? { form: "text", text: value }
    : { form: "json", text: source ?? JSON.stringify(part) }
}

const plainKeys = new Set(["text", "thought", "thoughtSignature", "functionResponse"])
const escapedSurrogate = /\\u[dD][89a-fA-F]/

/**
 * Whether `slice`, the JSON text a part was read from, has to be kept beside it: where writing the part again would
 * give another text and the part is not simply a text.
 */
export const needsSource = (part: Part, slice: SourceText): boolean => {
  const value = partText(part)
  if (value?.isWellFormed() === false && escapedSurrogate.test(slice)) return true
  if (value !== undefined && Object.keys(part).every((key) => plainKeys.has(key))) return false
  return JSON.stringify(part) !== slice
}

/** A part as JSON, exactly as it was read where that is known. */
export const partJson = (part: Part, source?: SourceText): string => source ?? JSON.stringify(part)
