/** The contract of a language model. `Retry` beside it decides which calls are made again. Error reasons have the names of `effect/ai`'s `AiError`. */

import { Context, Duration, Effect, Layer, Schema, Stream } from "effect"
import { Content } from "../../domain/content/Content.ts"
import type { ModelAccess } from "../../domain/model/ModelRoute.ts"
import { Usage } from "../../domain/tokens/Tokens.ts"
import { Grounding, ModelChunk } from "../../domain/wire/AnswerReader.ts"
import { Generation } from "../../domain/wire/Dialogue.ts"

/** The connection failed or broke: no network, unknown host, refused, TLS, a body that ended too early. */
export class NetworkError extends Schema.TaggedError<NetworkError>()("NetworkError", {
  detail: Schema.String,
  /** Whether a part of the answer had arrived. */
  isBegun: Schema.optionalKey(Schema.Boolean)
}) {
  override get message() {
    if (this.isBegun === true) return `the connection was lost in the middle of the answer (${this.detail}); try again`
    return `the model could not be reached (${this.detail}); check the network and the endpoint`
  }
}

/** No answer within this program's time limit. */
export class TimeoutError extends Schema.TaggedError<TimeoutError>()("TimeoutError", { seconds: Schema.Finite }) {
  override get message() {
    return `the model did not answer within ${this.seconds} s; try again, or allow more time`
  }
}

/** Too many requests for now. */
export class RateLimitError extends Schema.TaggedError<RateLimitError>()("RateLimitError", {
  /** When the server allows another attempt. */
  retryAfter: Schema.optionalKey(Schema.Duration)
}) {
  override get message() {
    const when = this.retryAfter === undefined ? "in a while" : `in ${Duration.format(this.retryAfter)}`
    return `the model refuses more requests for now; try again ${when}`
  }
}

/** A quota is used up, and waiting a little will not help. */
export class QuotaExhaustedError extends Schema.TaggedError<QuotaExhaustedError>()("QuotaExhaustedError", {
  detail: Schema.String
}) {
  override get message() {
    return `the quota of the key is used up (${this.detail}); wait for the next day, or use another key or model`
  }
}

/** The key is missing or not accepted for this. */
export class AuthenticationError extends Schema.TaggedError<AuthenticationError>()("AuthenticationError", {
  kind: Schema.Literals(["MissingKey", "InvalidKey", "InsufficientPermissions"]),
  /** The environment variable from which the provider's layer reads the key. */
  variable: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    switch (this.kind) {
      case "MissingKey":
        return this.variable === undefined
          ? "no model is configured, or it has no key"
          : `there is no key; set ${this.variable}`
      case "InvalidKey":
        return `the key is not accepted${this.variable === undefined ? "" : `; check ${this.variable}`}`
      case "InsufficientPermissions":
        return "the key may not use this model; check its permissions, or name another model"
    }
  }
}

/** The provider refuses to answer: safety, recitation, a blocked prompt. */
export class ContentPolicyError extends Schema.TaggedError<ContentPolicyError>()("ContentPolicyError", {
  /** The provider's own word: SAFETY, RECITATION, … */
  finishReason: Schema.String
}) {
  override get message() {
    return `the model refused to answer (${this.finishReason}); rephrase, or use another model`
  }
}

/** The request is invalid, and a retry does not help. */
export class InvalidRequestError extends Schema.TaggedError<InvalidRequestError>()("InvalidRequestError", {
  detail: Schema.String,
  /** The content that was refused, where the provider names it: without it, the request is accepted. */
  refused: Schema.optionalKey(Schema.Literals(["image", "file", "signature", "tool"])),
  /** The tool whose declaration was refused: its place among those of the request, the list and the place in it, or its name there. */
  tool: Schema.optionalKey(
    Schema.Union([Schema.Natural, Schema.String, Schema.Tuple([Schema.Natural, Schema.Natural])])
  )
}) {
  override get message() {
    return `the model does not accept the request: ${this.detail}`
  }
}

/** The request is larger than the model's window. */
export class ContextLengthError extends Schema.TaggedError<ContextLengthError>()("ContextLengthError", {
  /** Tokens, if the server states them. */
  tokens: Schema.optionalKey(Schema.Natural),
  limit: Schema.optionalKey(Schema.Natural)
}) {
  override get message() {
    return `the request is larger than the model's window${this.tokens === undefined ? "" : ` (${this.tokens} of ${this.limit ?? "?"} tokens)`}`
  }
}

/** The request has more bytes than the server takes. */
export class RequestBytesError extends Schema.TaggedError<RequestBytesError>()("RequestBytesError", {}) {
  override get message() {
    return "the request has more bytes than the server takes; send a smaller image or file, or compress the conversation"
  }
}

/** The provider failed on its side. */
export class InternalProviderError extends Schema.TaggedError<InternalProviderError>()("InternalProviderError", {
  status: Schema.Natural,
  /** What the server says of it. */
  detail: Schema.optionalKey(Schema.String),
  /** When the server allows another attempt. */
  retryAfter: Schema.optionalKey(Schema.Duration)
}) {
  override get message() {
    return `the model's server failed (${this.status}${this.detail === undefined ? "" : `: ${this.detail}`}); try again`
  }
}

/** An invalid answer: no candidates, no finish reason, or a violation of the protocol. */
export class InvalidResponseError extends Schema.TaggedError<InvalidResponseError>()("InvalidResponseError", {
  detail: Schema.String
}) {
  override get message() {
    return `the model's answer cannot be used: ${this.detail}; try again`
  }
}

/** The message for each kind of excess. */
const excessText = {
  bytes: (limit: number) => `more than ${limit / 1024 / 1024} MiB`,
  parts: (limit: number) => `more than ${limit.toLocaleString("en-US")} parts`,
  calls: (limit: number) => `more than ${limit} calls of tools, none of which was carried out`,
  tokens: (limit: number) =>
    `calls of tools of more than ${limit.toLocaleString("en-US")} tokens, which the model's own window has no room for`,
  levels: (limit: number) => `arguments nested deeper than ${limit.toLocaleString("en-US")} levels`,
  extras: (limit: number) => `more than ${limit / 1024 / 1024} MiB beside its words and calls`,
  media: (limit: number) => `more than ${limit / 1024 / 1024} MiB of images and other media`,
  name: (limit: number) => `a call with a name or an id of more than ${limit.toLocaleString("en-US")} characters`
}

/** An answer larger than any model intends. It was aborted, and none of it is used. */
export class AnswerTooLargeError extends Schema.TaggedError<AnswerTooLargeError>()("AnswerTooLargeError", {
  unit: Schema.Literals(["bytes", "parts", "calls", "tokens", "extras", "media", "levels", "name"]),
  limit: Schema.Natural
}) {
  override get message() {
    return `the model's answer was ended and thrown away: it has ${excessText[this.unit](this.limit)}; try again, or use another model`
  }
}

/** Why a call failed. The message of each says what to do. */
export const ModelErrorReason = Schema.Union([
  NetworkError,
  TimeoutError,
  RateLimitError,
  QuotaExhaustedError,
  AuthenticationError,
  ContentPolicyError,
  InvalidRequestError,
  ContextLengthError,
  RequestBytesError,
  InternalProviderError,
  InvalidResponseError,
  AnswerTooLargeError
])
export type ModelErrorReason = typeof ModelErrorReason.Type

/** A model call failed. The message says what to do. */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", { reason: ModelErrorReason }) {
  override get message() {
    return this.reason.message
  }
}

/** A request to a model. */
export interface ModelRequest {
  readonly model: string
  readonly contents: ReadonlyArray<Content>
  readonly systemInstruction?: string | undefined
  /** Tool declarations in the wire shape of the Gemini API. */
  readonly tools?: ReadonlyArray<Readonly<Record<string, unknown>>> | undefined
  /** Whether the model must call a tool. Default: it may. */
  readonly mustCall?: boolean | undefined
  readonly generation?: Generation | undefined
}

/** A provider's description of a model. Tokens. */
export interface ModelDescription {
  /** The largest request. */
  readonly window: number
  /** The longest answer. Undefined if the provider does not state it. */
  readonly output: number | undefined
}

export { Generation, ModelChunk }

/** A whole answer. It ended properly: an answer without a finish reason is an error. */
export const ModelAnswer = Schema.Struct({
  content: Content,
  /** `STOP`, `MAX_TOKENS`, … as the provider names it. */
  finishReason: Schema.String,
  usage: Schema.NullOr(Usage),
  grounding: Schema.optionalKey(Grounding)
})
export type ModelAnswer = typeof ModelAnswer.Type

/**
 * A language model. Every call is interruptible: the request is aborted at the socket. No call retries by itself; the caller decides with
 * `Effect.retry` and `isRetryable`.
 */
export class Model extends Context.Service<
  Model,
  {
    /** The model that answers every request, whichever one it names. Absent: the model that the request names. */
    readonly fixedModel?: string
    /** The whole answer. One that ended without a finish reason is an `InvalidResponseError`. */
    readonly generate: (request: ModelRequest) => Effect.Effect<ModelAnswer, ModelError>
    /** The answer in pieces. The request is aborted when the stream's scope closes. */
    readonly stream: (request: ModelRequest) => Stream.Stream<ModelChunk, ModelError>
    /** Tokens of the request's contents as the provider counts them. */
    readonly countTokens: (request: ModelRequest) => Effect.Effect<number, ModelError>
    /**
     * The provider's description of a model; undefined: it has no such model. Descriptions are cached. Absent where the provider
     * cannot be asked.
     */
    readonly describe?: (model: string) => Effect.Effect<ModelDescription | undefined, ModelError>
    /** Which models can be asked, as far as it is known without a request. Absent: it is not known. */
    readonly access?: ModelAccess
  }
>()("palimpsest/services/model/Model") {
  /** The layer without a configured model: every call fails with a message that says so. */
  static readonly layerUnavailable = Layer.suspend(() => Layer.succeed(Model, unavailableModel))
}

/** A model whose every call fails for this reason. */
export const failingModel = (reason: () => ModelErrorReason): Model["Service"] => {
  const failure = Effect.suspend(() => Effect.fail(new ModelError({ reason: reason() })))
  return { generate: () => failure, stream: () => Stream.fromEffect(failure), countTokens: () => failure }
}

/** The model where none is configured: every call fails with `AuthenticationError`. */
export const unavailableModel = failingModel(() => new AuthenticationError({ kind: "MissingKey" }))
