/**
 * Uses any `Model` as an `effect/ai` language model, the reverse of `LanguageModelBridge`. Signatures travel in the
 * metadata of parts. An object is requested as the arguments of a call, whose schema every provider enforces.
 */

import { Effect, Layer, Predicate, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import { type Content, isThought, type Part } from "../../domain/content/Content.ts"
import { optionsKey, wireContent } from "../../domain/content/WireContent.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import {
  type Generation,
  Model,
  type ModelChunk,
  type ModelError,
  type ModelErrorReason,
  type ModelRequest
} from "../model/Model.ts"

/** Which model is asked, and how. */
export interface LanguageModelOptions {
  readonly model: string
  readonly generation?: Generation | undefined
}

/** The key of our metadata. */
const metadataKey = "palimpsest"

const withSignature = (part: Part): Part => {
  const options = part[optionsKey]
  const ours = Predicate.hasProperty(options, metadataKey) ? options[metadataKey] : undefined
  return Predicate.hasProperty(ours, "signature") && Predicate.isString(ours.signature)
    ? { ...part, thoughtSignature: ours.signature }
    : part
}

const contentOf = (message: Exclude<Prompt.Message, Prompt.SystemMessage>): Content => {
  const { parts, role } = toContent(message)
  return wireContent({ role, parts: parts.map(withSignature) })
}

const toolsOf = ({ toolChoice, tools }: LanguageModel.ProviderOptions): ReadonlyArray<Tool.Any> => {
  if (toolChoice === "none") return []
  if (!Predicate.isObject(toolChoice)) return tools
  const allowed: ReadonlyArray<string> = "tool" in toolChoice ? [toolChoice.tool] : toolChoice.oneOf
  return tools.filter(({ name }) => allowed.includes(name))
}

const mustCall = ({ toolChoice }: LanguageModel.ProviderOptions): boolean =>
  toolChoice === "required" ||
  (Predicate.isObject(toolChoice) && ("tool" in toolChoice || toolChoice.mode === "required"))

const declarationsOf = (options: LanguageModel.ProviderOptions) => {
  const { responseFormat } = options
  return responseFormat.type === "json"
    ? [
        {
          name: responseFormat.objectName,
          description: "Gives the answer.",
          parametersJsonSchema: Tool.getJsonSchemaFromSchema(responseFormat.schema)
        }
      ]
    : toolsOf(options).map((tool) => {
        const description = Tool.getDescription(tool)
        const parametersJsonSchema = Tool.getJsonSchema(tool)
        return { name: tool.name, ...(description === undefined ? {} : { description }), parametersJsonSchema }
      })
}

const requestOf = (
  { generation, model }: LanguageModelOptions,
  options: LanguageModel.ProviderOptions
): ModelRequest => {
  const { content } = options.prompt
  const system = content.flatMap((message) => (message.role === "system" ? [message.content] : []))
  const declarations = declarationsOf(options)
  return {
    model,
    contents: content.flatMap((message) => (message.role === "system" ? [] : [contentOf(message)])),
    systemInstruction: system.length === 0 ? undefined : system.join("\n\n"),
    tools: declarations.length === 0 ? undefined : [{ functionDeclarations: declarations }],
    mustCall: options.responseFormat.type === "json" || mustCall(options),
    generation
  }
}

const reasonOf = (reason: ModelErrorReason): AiError.AiErrorReason => {
  const description = reason.message
  switch (reason._tag) {
    case "NetworkError":
      return new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "", description })
    case "RateLimitError":
      return new AiError.RateLimitError({ retryAfter: reason.retryAfter })
    case "QuotaExhaustedError":
      return new AiError.QuotaExhaustedError({})
    case "AuthenticationError":
      return new AiError.AuthenticationError({ kind: reason.kind, description })
    case "ContentPolicyError":
      return new AiError.ContentPolicyError({ description })
    case "InvalidRequestError":
    case "ContextLengthError":
    case "RequestBytesError":
      return new AiError.InvalidRequestError({ description })
    case "TimeoutError":
    case "InternalProviderError":
      return new AiError.InternalProviderError({ description })
    case "InvalidResponseError":
    case "AnswerTooLargeError":
      return new AiError.InvalidResponseError({ description })
  }
}

const toAiError =
  (method: string) =>
  ({ reason }: ModelError): AiError.AiError =>
    AiError.make({ module: "ModelLanguageModel", method, reason: reasonOf(reason) })

/** What is known about an answer at its end. */
interface Ending {
  readonly finishReason: string | undefined
  readonly usage: ModelChunk["usage"]
  readonly hasCalls: boolean
}

const finishPart = ({ finishReason, hasCalls, usage }: Ending): Response.FinishPartEncoded => ({
  type: "finish",
  reason:
    finishReason === "STOP" ? (hasCalls ? "tool-calls" : "stop") : finishReason === "MAX_TOKENS" ? "length" : "other",
  usage: {
    inputTokens:
      usage === undefined
        ? {}
        : {
            total: usage.prompt,
            uncached: Math.max(0, usage.prompt - usage.cached - (usage.cacheWrite ?? 0)),
            cacheRead: usage.cached,
            ...(usage.cacheWrite === undefined ? {} : { cacheWrite: usage.cacheWrite })
          },
    outputTokens:
      usage === undefined ? {} : { total: usage.answer + usage.thoughts, text: usage.answer, reasoning: usage.thoughts }
  }
})

const metadataOf = ({ thoughtSignature: signature }: Part) =>
  signature === undefined ? {} : { metadata: { [metadataKey]: { signature } } }

/** A call or a file, which a stream and a whole answer give in the same way. */
const wholePart = (part: Part, id: string): Response.ToolCallPartEncoded | Response.FilePartEncoded | undefined => {
  const { functionCall, inlineData } = part
  if (functionCall !== undefined) {
    const { args = {}, id: own = id, name } = functionCall
    return { type: "tool-call", id: own, name, params: args, ...metadataOf(part) }
  }
  return inlineData === undefined
    ? undefined
    : { type: "file", mediaType: inlineData.mimeType ?? "application/octet-stream", data: inlineData.data ?? "" }
}

const generateText =
  (model: Model["Service"], own: LanguageModelOptions) =>
  (options: LanguageModel.ProviderOptions): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
    Effect.map(
      Effect.mapError(model.generate(requestOf(own, options)), toAiError("generateText")),
      ({ content: { parts }, finishReason, usage }) => {
        const isObject = options.responseFormat.type === "json"
        const made = parts.flatMap((part, at): ReadonlyArray<Response.PartEncoded> => {
          const whole = wholePart(part, `call_${at}`)
          if (isObject && whole?.type === "tool-call") return [{ type: "text", text: JSON.stringify(whole.params) }]
          if (whole !== undefined) return [whole]
          // An object is the whole answer: other text would not be JSON.
          if (part.text === undefined || (isObject && parts.some(({ functionCall }) => functionCall !== undefined)))
            return []
          return [{ type: isThought(part) ? "reasoning" : "text", text: part.text, ...metadataOf(part) }]
        })
        const hasCalls = !isObject && parts.some(({ functionCall }) => functionCall !== undefined)
        return [...made, finishPart({ finishReason, usage: usage ?? undefined, hasCalls })]
      }
    )

/** Turns the pieces of one answer into the parts of a stream. Mutable: one for each answer. */
const makeStreamParts = () => {
  let count = 0
  let open: { readonly kind: "reasoning" | "text"; readonly id: string } | undefined
  let ending: Ending = { finishReason: undefined, usage: undefined, hasCalls: false }
  const next = () => {
    count += 1
    return String(count)
  }
  const close = (): ReadonlyArray<Response.StreamPartEncoded> => {
    const closed = open
    open = undefined
    return closed === undefined ? [] : [{ type: `${closed.kind}-end`, id: closed.id }]
  }
  const textParts = (kind: "reasoning" | "text", part: Part): ReadonlyArray<Response.StreamPartEncoded> => {
    const { text: delta = "" } = part
    const isOwn = part.thoughtSignature !== undefined
    // A signature belongs to the part at the same position.
    const before = open?.kind === kind && !isOwn ? [] : close()
    const id = open?.id ?? next()
    const start: ReadonlyArray<Response.StreamPartEncoded> =
      open === undefined ? [{ type: `${kind}-start`, id, ...metadataOf(part) }] : []
    open = { kind, id }
    const piece: ReadonlyArray<Response.StreamPartEncoded> = delta === "" ? [] : [{ type: `${kind}-delta`, id, delta }]
    return [...before, ...start, ...piece, ...(isOwn ? close() : [])]
  }
  const partsOf = (part: Part): ReadonlyArray<Response.StreamPartEncoded> => {
    const whole = wholePart(part, `call_${count}`)
    if (whole !== undefined) {
      count += 1
      if (whole.type === "tool-call") ending = { ...ending, hasCalls: true }
      return [...close(), whole]
    }
    return part.text === undefined ? [] : textParts(isThought(part) ? "reasoning" : "text", part)
  }
  return {
    push: ({ finishReason = ending.finishReason, parts, usage = ending.usage }: ModelChunk) => {
      ending = { ...ending, finishReason, usage }
      return parts.flatMap(partsOf)
    },
    end: () => [...close(), finishPart(ending)]
  }
}

const streamText =
  (model: Model["Service"], own: LanguageModelOptions) =>
  (options: LanguageModel.ProviderOptions): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> =>
    Stream.suspend(() => {
      const { end, push } = makeStreamParts()
      return model.stream(requestOf(own, options)).pipe(
        Stream.mapError(toAiError("streamText")),
        Stream.flatMap((chunk) => Stream.fromIterable(push(chunk))),
        Stream.concat(Stream.suspend(() => Stream.fromIterable(end())))
      )
    })

/**
 * The `Model` as a language model of `effect/ai`. Its errors have the reasons that it gives, as `effect/ai` names them.
 *
 * **Example** (Using a Model as a language model of effect/ai)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import { Models } from "palimpsest"
 * import { ScriptedModel } from "palimpsest/testing"
 *
 * const Model = Models.layerLanguageModel({ model: "scripted" }).pipe(
 *   Layer.provide(ScriptedModel.layer(["In 1743."]))
 * )
 * const answer = LanguageModel.generateText({ prompt: "When?" }).pipe(Effect.provide(Model))
 * console.log((await Effect.runPromise(answer)).text) // => In 1743.
 * ```
 */
export const layerLanguageModel = (
  options: LanguageModelOptions
): Layer.Layer<LanguageModel.LanguageModel, never, Model> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    Effect.flatMap(Model, (model) =>
      LanguageModel.make({ generateText: generateText(model, options), streamText: streamText(model, options) })
    )
  )
