/**
 * Uses any `effect/ai` language model as a `Model`. Data that a provider needs back, such as signatures of thoughts,
 * travels in a part's `providerMetadata`.
 */

import { Effect, Layer, type JsonSchema, Predicate, Result, Stream } from "effect"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Base64 from "effect/encoding/Base64"
import {
  type Content,
  isCall,
  isErrorResponse,
  isResponse,
  type Part,
  type Role
} from "../../domain/content/Content.ts"
import { optionsKey } from "../../domain/content/WireContent.ts"
import { itemParts, type ViewItem } from "../../domain/conversation/Conversation.ts"
import { writtenContent } from "../../domain/conversation/Projection.ts"
import { optionsOf, toMessage } from "../../domain/effect-ai/PromptContent.ts"
import { excessOf, refusedIn, refusedTool } from "../../domain/wire/ProviderFault.ts"
import { type ToolDeclaration, toolDeclarations } from "../../domain/wire/ToolDeclarations.ts"
import { collect, finished } from "../model/CollectedAnswer.ts"
import {
  AuthenticationError,
  ContentPolicyError,
  ContextLengthError,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  Model,
  type ModelChunk,
  ModelError,
  type ModelErrorReason,
  type ModelRequest,
  NetworkError,
  QuotaExhaustedError,
  RateLimitError,
  RequestBytesError
} from "../model/Model.ts"
import { estimateContents } from "../tokens/Calibrations.ts"

const withMetadata = (part: Part, metadata: Response.ProviderMetadata): Part =>
  Object.keys(metadata).length === 0 ? part : { ...part, [optionsKey]: metadata }

/** Ids of calls and responses by part. A call without an id gets one, and a response gets the id of its call. */
const pair = (contents: ReadonlyArray<Content>): ReadonlyMap<Part, string> => {
  const ids = new Map<Part, string>()
  const open: Array<{ readonly name: string; readonly id: string }> = []
  let made = 0
  const fresh = () => {
    made += 1
    return `call_${made}`
  }
  for (const part of contents.flatMap((content) => content.parts)) {
    if (isCall(part)) {
      const { id = fresh(), name } = part.functionCall
      ids.set(part, id)
      open.push({ name, id })
    } else if (isResponse(part)) {
      const { id, name } = part.functionResponse
      const answered = open.findIndex((call) =>
        id === undefined ? name === undefined || call.name === name : call.id === id
      )
      const [call] = answered < 0 ? [] : open.splice(answered, 1)
      ids.set(part, id ?? call?.id ?? fresh())
    }
  }
  return ids
}

const filePart = (part: Part): Prompt.FilePart | undefined => {
  if (part.inlineData !== undefined) {
    const { data = "", mimeType = "application/octet-stream" } = part.inlineData
    return Prompt.filePart({ mediaType: mimeType, data, options: optionsOf(part) })
  }
  const { fileUri = "", mimeType = "application/octet-stream" } = part.fileData ?? {}
  // A name that is not a URL has a meaning for its own provider only.
  return URL.canParse(fileUri)
    ? Prompt.filePart({ mediaType: mimeType, data: new URL(fileUri), options: optionsOf(part) })
    : undefined
}

/** Converts text and media. Undefined for a part without a counterpart. */
const plainPart = (part: Part): Prompt.TextPart | Prompt.FilePart | undefined => {
  if (part.inlineData !== undefined || part.fileData !== undefined) return filePart(part)
  return Prompt.textPart({ text: part.text ?? JSON.stringify(part), options: optionsOf(part) })
}

const userMessages = (content: Content, ids: ReadonlyMap<Part, string>): ReadonlyArray<Prompt.Message> => {
  const results = content.parts.filter(isResponse).map((part) =>
    Prompt.toolResultPart({
      id: ids.get(part) ?? "",
      name: part.functionResponse.name ?? "",
      isFailure: isErrorResponse(part),
      result: part.functionResponse.response ?? null,
      providerExecuted: false,
      options: optionsOf(part)
    })
  )
  const userParts = content.parts.flatMap((part) => (isResponse(part) ? [] : (plainPart(part) ?? [])))
  return [
    ...(results.length === 0 ? [] : [Prompt.toolMessage({ content: results })]),
    ...(userParts.length === 0 ? [] : [Prompt.userMessage({ content: userParts })])
  ]
}

/**
 * Joins the pieces of a thought, whose signature comes with the last one, into one part. Thoughts without a signature are left out, because providers
 * reject thoughts that are not their own.
 */
const reasoning = (thoughts: ReadonlyArray<Part>): ReadonlyArray<Prompt.ReasoningPart> => {
  const options = Object.fromEntries(thoughts.flatMap((part) => Object.entries(optionsOf(part))))
  if (Object.keys(options).length === 0) return []
  return [Prompt.reasoningPart({ text: thoughts.map((part) => part.text ?? "").join(""), options })]
}

const assistantMessages = (content: Content, ids: ReadonlyMap<Part, string>): ReadonlyArray<Prompt.Message> => {
  const parts: Array<Prompt.AssistantMessagePart> = []
  let thoughts: Array<Part> = []
  const endThought = () => {
    for (const each of reasoning(thoughts)) parts.push(each)
    thoughts = []
  }
  for (const part of content.parts) {
    if (part.thought === true) {
      thoughts.push(part)
      // The next piece belongs to another thought.
      if (part[optionsKey] !== undefined) endThought()
      continue
    }
    endThought()
    if (isCall(part)) {
      const { args = {}, name } = part.functionCall
      const id = ids.get(part) ?? ""
      parts.push(Prompt.toolCallPart({ id, name, params: args, providerExecuted: false, options: optionsOf(part) }))
    } else {
      const plain = plainPart(part)
      if (plain !== undefined) parts.push(plain)
    }
  }
  endThought()
  return parts.length === 0 ? [] : [Prompt.assistantMessage({ content: parts })]
}

const messages: Record<Role, typeof userMessages> = { user: userMessages, model: assistantMessages }

/**
 * Converts contents to prompt messages, grouped by content. Responses become tool messages under the ids of their calls. A call without an id gets
 * one, the same for the same contents.
 */
export const toMessages = (contents: ReadonlyArray<Content>): ReadonlyArray<ReadonlyArray<Prompt.Message>> => {
  const ids = pair(contents)
  return contents.map((content) => messages[content.role](content, ids))
}

/** The prompt message that a view entry was made from, with its outputs as short as the view shows them. */
export const viewMessage = (item: ViewItem): Prompt.Message | undefined =>
  toMessage({ ...item.entry.content, parts: itemParts(item) }, new Set(item.shortened.keys()))

/** The messages for an item of a view that no message of the prompt stands for as it is: shorter, or inserted by a compression. */
export const itemMessages = (item: ViewItem): ReadonlyArray<Prompt.Message> => {
  const own = viewMessage(item)
  return own === undefined ? toMessages([writtenContent(item)]).flat() : [own]
}

/**
 * Converts a request to a prompt: the system instruction first, then every message; responses become tool messages under the ids of their calls. A
 * call without an id gets one, the same for the same request.
 */
export const toPrompt = ({ contents, systemInstruction }: ModelRequest): Prompt.Prompt => {
  const system = systemInstruction === undefined ? [] : [Prompt.systemMessage({ content: systemInstruction })]
  return Prompt.fromMessages([...system, ...toMessages(contents).flat()])
}

const isJsonSchema = (value: unknown): value is JsonSchema.JsonSchema => Predicate.isObject(value)

const toTool = ({ description, name, parameters }: ToolDeclaration) =>
  Tool.dynamic(name, { description, parameters: isJsonSchema(parameters) ? parameters : {} })

const toToolkit = Effect.fnUntraced(function* ({ tools }: ModelRequest) {
  const declared = yield* Effect.fromResult(
    Result.mapError(
      toolDeclarations(tools),
      (detail) => new ModelError({ reason: new InvalidRequestError({ detail }) })
    )
  )
  return Toolkit.make(...declared.map(toTool))
})

const requestReason = (detail: string): ModelErrorReason => {
  const fault = { kind: "", message: detail }
  const { _tag: excess, ...counts } = excessOf(400, fault) ?? {}
  if (excess === "TooManyTokens") return new ContextLengthError(counts)
  if (excess === "TooManyBytes") return new RequestBytesError({})
  const refused = refusedIn(400, fault)
  const tool = refusedTool(400, fault)
  return new InvalidRequestError({
    detail,
    ...(refused === undefined ? {} : { refused }),
    ...(tool === undefined ? {} : { tool })
  })
}

const statusOf = (reason: AiError.InternalProviderError | AiError.UnknownError): number =>
  reason.http?.response?.status ?? 500

/** Converts the reason of a failure, exhaustively. A retryable reason stays retryable. */
const toReason = (reason: AiError.AiErrorReason): ModelErrorReason => {
  switch (reason._tag) {
    case "NetworkError":
      return reason.isRetryable
        ? new NetworkError({ detail: reason.description ?? reason.reason })
        : requestReason(reason.message)
    case "RateLimitError":
      return new RateLimitError(reason.retryAfter === undefined ? {} : { retryAfter: reason.retryAfter })
    case "QuotaExhaustedError":
      return new QuotaExhaustedError({ detail: reason.message })
    case "AuthenticationError":
      return new AuthenticationError({
        kind: reason.kind === "MissingKey" || reason.kind === "InsufficientPermissions" ? reason.kind : "InvalidKey"
      })
    case "ContentPolicyError":
      return new ContentPolicyError({ finishReason: reason.description })
    case "InternalProviderError":
      return new InternalProviderError({ status: statusOf(reason) })
    case "UnknownError":
      return statusOf(reason) < 500
        ? requestReason(reason.message)
        : new InternalProviderError({ status: statusOf(reason) })
    case "InvalidRequestError":
    case "UnsupportedSchemaError":
    case "ToolConfigurationError":
    case "ToolkitRequiredError":
    case "ToolResultEncodingError":
    case "InvalidToolResultError":
    case "InvalidUserInputError":
      return requestReason(reason.message)
    case "InvalidResponseError":
    case "InvalidOutputError":
    case "StructuredOutputError":
    case "ToolNotFoundError":
    case "ToolParameterValidationError":
      return new InvalidResponseError({ detail: reason.message })
  }
}

/** Converts a failure of an `effect/ai` model. */
export const toModelError = (error: AiError.AiError): ModelError => new ModelError({ reason: toReason(error.reason) })

const invalid = (detail: string): ModelError => new ModelError({ reason: new InvalidResponseError({ detail }) })

const finishReasons: Readonly<Record<Response.FinishReason, string>> = {
  stop: "STOP",
  "tool-calls": "STOP",
  length: "MAX_TOKENS",
  "content-filter": "SAFETY",
  error: "OTHER",
  pause: "OTHER",
  other: "OTHER",
  unknown: "OTHER"
}

const usageOf = ({ inputTokens, outputTokens }: Response.Usage): Pick<ModelChunk, "usage"> => {
  const cached = inputTokens.cacheRead ?? 0
  const cacheWrite = inputTokens.cacheWrite ?? 0
  const prompt = inputTokens.total ?? (inputTokens.uncached ?? 0) + cached + cacheWrite
  const thoughts = outputTokens.reasoning ?? 0
  const answer = outputTokens.text ?? Math.max(0, (outputTokens.total ?? 0) - thoughts)
  // All zeros means that the provider does not count.
  if (prompt === 0 && answer === 0 && thoughts === 0) return {}
  return { usage: { prompt, answer, thoughts, cached, ...(cacheWrite === 0 ? {} : { cacheWrite }) } }
}

const finish = (part: Response.FinishPart): Effect.Effect<ModelChunk, ModelError> => {
  if (part.reason === "content-filter") {
    return Effect.fail(new ModelError({ reason: new ContentPolicyError({ finishReason: finishReasons[part.reason] }) }))
  }
  if (part.reason === "error")
    return Effect.fail(new ModelError({ reason: new InternalProviderError({ status: 500 }) }))
  return Effect.succeed({ parts: [], finishReason: finishReasons[part.reason], ...usageOf(part.usage) })
}

/** Converts a call or file of an answer. Undefined for the provider's own tools, sources and response metadata. */
const toPart = (part: Response.AnyPart): Part | undefined => {
  if (part.type === "text") return withMetadata({ text: part.text }, part.metadata)
  if (part.type === "text-delta") return withMetadata({ text: part.delta }, part.metadata)
  if (part.type === "reasoning") return withMetadata({ text: part.text, thought: true }, part.metadata)
  if (part.type === "reasoning-delta") return withMetadata({ text: part.delta, thought: true }, part.metadata)
  if (part.type === "reasoning-end" && Object.keys(part.metadata).length > 0) {
    return withMetadata({ text: "", thought: true }, part.metadata)
  }
  if (part.type === "tool-call" && !part.providerExecuted) {
    return withMetadata({ functionCall: { id: part.id, name: part.name, args: part.params } }, part.metadata)
  }
  if (part.type === "file") {
    return withMetadata({ inlineData: { mimeType: part.mediaType, data: Base64.encode(part.data) } }, part.metadata)
  }
  return undefined
}

const toChunk = (part: Response.AnyPart): Effect.Effect<ModelChunk, ModelError> => {
  if (part.type === "finish") return finish(part)
  if (part.type === "error") return Effect.fail(invalid(String(part.error)))
  const ours = toPart(part)
  return Effect.succeed({ parts: ours === undefined ? [] : [ours] })
}

const isChunk = (chunk: ModelChunk): boolean => chunk.parts.length > 0 || chunk.finishReason !== undefined

const toChunks = <R>(
  parts: Stream.Stream<Response.AnyPart, AiError.AiError, R>
): Stream.Stream<ModelChunk, ModelError, R> =>
  parts.pipe(Stream.mapError(toModelError), Stream.mapEffect(toChunk), Stream.filter(isChunk), finished)

/** The options of a call. Fails for a model other than `model`. */
const callOptions = Effect.fnUntraced(function* (model: string | undefined, request: ModelRequest) {
  if (model !== undefined && request.model !== model) {
    const detail = `the model here is ${model}, not ${request.model}`
    return yield* new ModelError({ reason: new InvalidRequestError({ detail }) })
  }
  return {
    prompt: toPrompt(request),
    toolkit: yield* toToolkit(request),
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  } as const
})

/**
 * Provides an `effect/ai` language model as a `Model`. Tools are declared to it but never run by it. Its layer has already chosen the model: with
 * `model` set, a request for another one fails with InvalidRequest; without it, the model name of the request is ignored. `generation` cannot be
 * passed on, because `effect/ai` leaves it to the provider's own configuration. `countTokens` uses the estimator, because `effect/ai` has no such
 * call.
 *
 * **Example** (Using a language model of effect/ai as a Model)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Content, Models } from "palimpsest"
 * import { ScriptedLanguageModel } from "palimpsest/testing"
 *
 * const Provider = ScriptedLanguageModel.layer(["In 1743."]) // the layer of your provider
 * const Model = Models.layerFromLanguageModel({}).pipe(Layer.provide(Provider))
 * const answer = Models.Model.use((model) =>
 *   model.generate({ model: "theirs", contents: [Content.user(Content.text("When?"))] })
 * )
 * const { content } = await Effect.runPromise(Effect.provide(answer, Model))
 * console.log(Content.plainText(content)) // => In 1743.
 * ```
 */
export const layerLanguageModel = (options: {
  readonly model?: string
}): Layer.Layer<Model, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    Model,
    Effect.map(LanguageModel.LanguageModel, (language) => ({
      generate: Effect.fn("Model.generate")(function* (request) {
        const opened = yield* callOptions(options.model, request)
        const { content } = yield* Effect.mapError(language.generateText(opened), toModelError)
        return yield* collect(toChunks(Stream.fromIterable(content)))
      }),
      stream: (request) =>
        Effect.map(callOptions(options.model, request), (opened) => toChunks(language.streamText(opened))).pipe(
          Stream.unwrap
        ),
      countTokens: Effect.fn("Model.countTokens")((request) => estimateContents(request))
    }))
  )
