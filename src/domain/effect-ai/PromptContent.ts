/**
 * Converts a message of an `effect/ai` prompt to a `Content` and back without loss. Whatever our parts can express becomes a part, so that it is
 * counted, summarized and recalled like any other; the rest travels beside it, under its own key.
 */

import { Predicate, Result, Schema } from "effect"
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import { type Content, isCall, isResponse, outputText, type Part } from "../content/Content.ts"
import { extraKey, optionsKey } from "../content/WireContent.ts"
import { fromJson } from "../text/JsonText.ts"

const Options = Schema.Record(Schema.String, Schema.NullOr(Schema.Json))
const isOptions = Schema.is(Options)

const SystemText = Schema.Struct({ content: Schema.String, options: Schema.optionalKey(Options) })

const MessageExtra = Schema.Struct({
  role: Schema.Literals(["user", "assistant", "tool"]),
  /** Parts without content, with their places in the message: approval requests and responses. */
  aside: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        at: Schema.Natural,
        part: Schema.Union([
          Schema.toEncoded(Prompt.ToolApprovalRequestPart),
          Schema.toEncoded(Prompt.ToolApprovalResponsePart)
        ])
      })
    )
  ),
  /** System messages that stood directly before this one. */
  system: Schema.optionalKey(Schema.Array(SystemText))
})
const isMessageExtra = Schema.is(MessageExtra)

/** What the model saw in place of a tool's result: texts, and the files that follow as parts of their own. */
const OutputPart = Schema.Union([
  Schema.Struct({ text: Schema.String, options: Schema.optionalKey(Options) }),
  Schema.Literal("file")
])

const PartExtra = Schema.Struct({
  fileName: Schema.optionalKey(Schema.String),
  /** The data was bytes, and is base64 here. */
  bytes: Schema.optionalKey(Schema.Literal(true)),
  /** The part belongs to the result before it. */
  shown: Schema.optionalKey(Schema.Literal(true)),
  /** A call that the provider runs itself, or its result: as JSON, in a thought. */
  own: Schema.optionalKey(Schema.Literal(true)),
  /** The tool failed: its result stands under `error`. */
  isFailure: Schema.optionalKey(Schema.Literal(true)),
  /** A tool's own result, if the model saw something else. */
  result: Schema.optionalKey(Schema.Unknown),
  output: Schema.optionalKey(Schema.Array(OutputPart))
})
type PartExtra = typeof PartExtra.Type
const isPartExtra = Schema.is(PartExtra)

const noExtra: PartExtra = {}
const extraOf = (part: Part): PartExtra => {
  const extra = part[extraKey]
  return isPartExtra(extra) ? extra : noExtra
}

/** The options of a part or a message, which a provider needs back. */
export const optionsOf = (value: Part | Content): Prompt.ProviderOptions => {
  const options = value[optionsKey]
  return isOptions(options) ? options : {}
}

const isEmpty = (value: object): boolean => {
  for (const _ in value) return false
  return true
}

const withExtras = (part: Part, options: Prompt.ProviderOptions, extra: PartExtra = noExtra): Part =>
  isEmpty(options) && isEmpty(extra)
    ? part
    : {
        ...part,
        ...(isEmpty(options) ? {} : { [optionsKey]: options }),
        ...(isEmpty(extra) ? {} : { [extraKey]: extra })
      }

/** Encodes the bytes of a file as text. Counting does not need the text. */
type Bytes = (bytes: Uint8Array) => string

const fileParts = ({ data, fileName, mediaType, options }: Prompt.FilePart, bytes: Bytes, extra: PartExtra): Part => {
  const withName: PartExtra = fileName === undefined ? extra : { ...extra, fileName }
  if (data instanceof URL)
    return withExtras({ fileData: { fileUri: data.href, mimeType: mediaType } }, options, withName)
  return typeof data === "string"
    ? withExtras({ inlineData: { mimeType: mediaType, data } }, options, withName)
    : withExtras({ inlineData: { mimeType: mediaType, data: bytes(data) } }, options, { ...withName, bytes: true })
}

const outputPart = (part: Prompt.ToolModelOutputPart): typeof OutputPart.Type =>
  part.type === "file" ? "file" : { text: part.text, ...(isEmpty(part.options) ? {} : { options: part.options }) }

const resultParts = (part: Prompt.ToolResultPart, bytes: Bytes): ReadonlyArray<Part> => {
  const { id, isFailure, modelOutput, name, options, result } = part
  const shown =
    modelOutput === undefined
      ? result
      : modelOutput.flatMap((output) => (output.type === "text" ? [output.text] : [])).join("\n")
  const extra: PartExtra = {
    ...(isFailure ? { isFailure } : {}),
    ...(modelOutput === undefined ? {} : { result, output: modelOutput.map(outputPart) })
  }
  const value = isFailure ? { error: shown } : shown
  const response = { functionResponse: { id, name, ...(value === undefined ? {} : { response: value }) } }
  return [
    withExtras(response, options, extra),
    ...(modelOutput ?? []).flatMap((output) =>
      output.type === "file" ? [fileParts(output, bytes, { shown: true })] : []
    )
  ]
}

/** Calls that the provider runs itself, and their results, stand in one message, and this code does not pair them. */
const Own = fromJson(Schema.Union([Prompt.ToolCallPart, Prompt.ToolResultPart]))
const writeOwn = Schema.encodeSync(Own)
const readOwn = Schema.decodeUnknownResult(Own)

const ownPart = (part: Prompt.ToolCallPart | Prompt.ToolResultPart): Part => ({
  text: writeOwn(part),
  thought: true,
  [extraKey]: { own: true }
})

type ApprovalPart = Prompt.ToolApprovalRequestPart | Prompt.ToolApprovalResponsePart
const isApproval = (part: Prompt.Part): part is ApprovalPart =>
  part.type === "tool-approval-request" || part.type === "tool-approval-response"

const partsOf = (part: Exclude<Prompt.Part, ApprovalPart>, bytes: Bytes): ReadonlyArray<Part> => {
  const { options } = part
  switch (part.type) {
    case "text":
      return [withExtras({ text: part.text }, options)]
    case "reasoning":
      return [withExtras({ text: part.text, thought: true }, options)]
    case "file":
      return [fileParts(part, bytes, noExtra)]
    case "tool-call": {
      if (part.providerExecuted) return [ownPart(part)]
      const { id, name, params } = part
      return [withExtras({ functionCall: { id, name, ...(params === undefined ? {} : { args: params }) } }, options)]
    }
    case "tool-result":
      return part.providerExecuted ? [ownPart(part)] : resultParts(part, bytes)
  }
}

const Aside = Schema.Union([Prompt.ToolApprovalRequestPart, Prompt.ToolApprovalResponsePart])
const writeAside = Schema.encodeSync(Aside)
const readAside = Schema.decodeUnknownResult(Aside)

/** Any message except a system message. */
export type DialogueMessage = Exclude<Prompt.Message, Prompt.SystemMessage>

const systemText = ({ content, options }: Prompt.SystemMessage): typeof SystemText.Type => ({
  content,
  ...(isEmpty(options) ? {} : { options })
})

/**
 * Converts a message to a `Content`. Tool results get the user's role. Approval requests and responses have no content and stand beside the parts.
 * System messages have no place in a conversation: those directly `before` the message travel with it.
 */
export const toContent = (
  message: DialogueMessage,
  before: ReadonlyArray<Prompt.SystemMessage> = [],
  bytes: Bytes = Base64.encode
): Content => {
  const content: ReadonlyArray<Prompt.Part> = message.content
  const aside = content.flatMap((part, at) => (isApproval(part) ? [{ at, part: writeAside(part) }] : []))
  return {
    role: message.role === "assistant" ? "model" : "user",
    parts: content.flatMap((part) => (isApproval(part) ? [] : partsOf(part, bytes))),
    ...(isEmpty(message.options) ? {} : { [optionsKey]: message.options }),
    [extraKey]: {
      role: message.role,
      ...(aside.length === 0 ? {} : { aside }),
      ...(before.length === 0 ? {} : { system: before.map(systemText) })
    }
  }
}

/** The parts of a message for counting. The bytes of files are left out: their cost depends on their kind. */
export const countedParts = (message: Prompt.Message): ReadonlyArray<Part> =>
  message.role === "system" ? [{ text: message.content }] : toContent(message, [], () => "").parts

/** Whether `toContent` made this content. */
export const isPromptContent = (content: Content): boolean => isMessageExtra(content[extraKey])

/** The system messages that travel with a message (see `toContent`). */
export const systemBefore = (content: Content): ReadonlyArray<Prompt.SystemMessage> => {
  const extra = content[extraKey]
  return isMessageExtra(extra)
    ? (extra.system ?? []).map(({ content, options = {} }) => Prompt.systemMessage({ content, options }))
    : []
}

const fileOf = (part: Part): Prompt.FilePart => {
  const { bytes, fileName } = extraOf(part)
  const { data = "", mimeType: mediaType = "application/octet-stream" } = part.inlineData ?? {}
  const read = bytes === true ? Result.getOrElse(Base64.decode(data), () => data) : data
  const uri = part.fileData?.fileUri
  return Prompt.filePart({
    mediaType: part.fileData?.mimeType ?? mediaType,
    ...(fileName === undefined ? {} : { fileName }),
    data: uri !== undefined && URL.canParse(uri) ? new URL(uri) : read,
    options: optionsOf(part)
  })
}

const shownOutput = (
  output: ReadonlyArray<typeof OutputPart.Type>,
  files: ReadonlyArray<Part>
): ReadonlyArray<Prompt.ToolModelOutputPart> => {
  let next = 0
  return output.flatMap((part): ReadonlyArray<Prompt.ToolModelOutputPart> => {
    if (part !== "file") return [Prompt.textPart({ text: part.text, options: part.options ?? {} })]
    const file = files[next]
    next += 1
    return file === undefined ? [] : [fileOf(file)]
  })
}

const resultOf = (part: Part, files: ReadonlyArray<Part>, isShortened: boolean): Prompt.ToolResultPart => {
  const { id = "", name = "", response } = part.functionResponse ?? {}
  const { isFailure = false, output, result } = extraOf(part)
  const common = { id, name, isFailure, providerExecuted: false, options: optionsOf(part) }
  if (isShortened) {
    // The replacement text stands for everything the model saw, except files.
    const text = outputText(part) ?? ""
    const modelOutput = [Prompt.textPart({ text }), ...files.map(fileOf)]
    return Prompt.toolResultPart({ ...common, result: text, ...(output === undefined ? {} : { modelOutput }) })
  }
  if (output !== undefined) {
    return Prompt.toolResultPart({ ...common, result, modelOutput: shownOutput(output, files) })
  }
  const value = isFailure && Predicate.isObject(response) ? response["error"] : response
  return Prompt.toolResultPart({ ...common, result: value })
}

type SpokenPart = Exclude<Prompt.Part, ApprovalPart>

/** The text or call in a part; nothing for a part that belongs to an answer. */
const spokenParts = (part: Part): ReadonlyArray<SpokenPart> => {
  const { own, shown } = extraOf(part)
  if (isResponse(part) || shown === true) return []
  if (own === true) {
    const read = readOwn(part.text)
    return Result.isSuccess(read) ? [read.success] : []
  }
  const options = optionsOf(part)
  if (isCall(part)) {
    const { args, id = "", name } = part.functionCall
    return [Prompt.toolCallPart({ id, name, params: args, providerExecuted: false, options })]
  }
  if (part.inlineData !== undefined || part.fileData !== undefined) return [fileOf(part)]
  if (part.text === undefined) return []
  return part.thought === true
    ? [Prompt.reasoningPart({ text: part.text, options })]
    : [Prompt.textPart({ text: part.text, options })]
}

/** The parts after `at` that belong to the result there. */
const filesAfter = (parts: ReadonlyArray<Part>, at: number): ReadonlyArray<Part> => {
  const end = parts.findIndex((part, index) => index > at && extraOf(part).shown !== true)
  return parts.slice(at + 1, end < 0 ? undefined : end)
}

/**
 * The message from which `toContent` made this content, equal to it in all but identity. `shortened`: the parts in which a compression replaced a
 * tool's output by a text. Undefined for any other content.
 */
export const toMessage = (
  content: Content,
  shortened: ReadonlySet<number> = new Set()
): DialogueMessage | undefined => {
  const extra = content[extraKey]
  if (!isMessageExtra(extra)) return undefined
  const options = optionsOf(content)
  const { parts } = content
  const all: Array<Prompt.Part> = parts.flatMap((part, at): ReadonlyArray<Prompt.Part> =>
    isResponse(part) ? [resultOf(part, filesAfter(parts, at), shortened.has(at))] : spokenParts(part)
  )
  for (const { at, part } of extra.aside ?? []) {
    const read = readAside(part)
    if (Result.isSuccess(read)) all.splice(at, 0, read.success)
  }
  switch (extra.role) {
    case "user":
      return Prompt.userMessage({
        content: all.filter((part) => part.type === "text" || part.type === "file"),
        options
      })
    case "assistant":
      return Prompt.assistantMessage({ content: all.filter((part) => part.type !== "tool-approval-response"), options })
    case "tool":
      return Prompt.toolMessage({
        content: all.filter((part) => part.type === "tool-result" || part.type === "tool-approval-response"),
        options
      })
  }
}
