import { Context, Duration, Effect, Layer, Random, Schedule, Schema, Stream } from "effect"
import { Content, Part } from "../domain/Content.ts"
import { Usage } from "../domain/Tokens.ts"

/**
 * A language model: whoever answers for it. Reasons are named as `effect/ai` names those of its `AiError`.
 */

/** The connection could not be made or broke: no network, no such host, refused, TLS, a body that ended too early. */
export class NetworkError extends Schema.TaggedError<NetworkError>()("NetworkError", { detail: Schema.String }) {
  override get message() {
    return `the model could not be reached (${this.detail}); check the network and the endpoint`
  }
}

/** No answer within our own time limit. */
export class TimeoutError extends Schema.TaggedError<TimeoutError>()("TimeoutError", { seconds: Schema.Finite }) {
  override get message() {
    return `the model did not answer within ${this.seconds} s; try again, or allow more time`
  }
}

/** Too many requests for now. */
export class RateLimitError extends Schema.TaggedError<RateLimitError>()("RateLimitError", {
  /** When the server says one may try again. */
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

/** No key, or one that is not accepted for this. */
export class AuthenticationError extends Schema.TaggedError<AuthenticationError>()("AuthenticationError", {
  kind: Schema.Literals(["MissingKey", "InvalidKey", "InsufficientPermissions"])
}) {
  override get message() {
    return this.kind === "MissingKey"
      ? "there is no key; set GEMINI_API_KEY (https://aistudio.google.com/apikey), or work without a model: --summarizer extractive"
      : this.kind === "InvalidKey"
        ? "the key is not accepted; check GEMINI_API_KEY"
        : "the key may not use this model; check its permissions, or name another model"
  }
}

/** The provider will not answer this: safety, recitation, a blocked prompt. */
export class ContentPolicyError extends Schema.TaggedError<ContentPolicyError>()("ContentPolicyError", {
  /** The provider's own word: SAFETY, RECITATION, … */
  finishReason: Schema.String
}) {
  override get message() {
    return `the model refused to answer (${this.finishReason}); rephrase, or use another model`
  }
}

/** The request is wrong and stays wrong. */
export class InvalidRequestError extends Schema.TaggedError<InvalidRequestError>()("InvalidRequestError", {
  detail: Schema.String
}) {
  override get message() {
    return `the model does not accept the request: ${this.detail}`
  }
}

/** The request is larger than the model's window. */
export class ContextLengthError extends Schema.TaggedError<ContextLengthError>()("ContextLengthError", {
  /** Tokens, where the server says them. */
  tokens: Schema.optionalKey(Schema.Natural),
  limit: Schema.optionalKey(Schema.Natural)
}) {
  override get message() {
    return `the request is larger than the model's window${this.tokens === undefined ? "" : ` (${this.tokens} of ${this.limit ?? "?"} tokens)`}`
  }
}

/** The provider failed on its side. */
export class InternalProviderError extends Schema.TaggedError<InternalProviderError>()("InternalProviderError", {
  status: Schema.Natural,
  /** When the server says one may try again. */
  retryAfter: Schema.optionalKey(Schema.Duration)
}) {
  override get message() {
    return `the model's server failed (${this.status}); try again`
  }
}

/** An answer came that is none: no candidates, no finish reason, not what the protocol says. */
export class InvalidResponseError extends Schema.TaggedError<InvalidResponseError>()("InvalidResponseError", {
  detail: Schema.String
}) {
  override get message() {
    return `the model's answer cannot be used: ${this.detail}; try again`
  }
}

/** What is wrong with an answer, by what is counted of it. */
const excesses = {
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

/** An answer that grows beyond what any model means to say. It was ended, and nothing of it is used. */
export class AnswerTooLargeError extends Schema.TaggedError<AnswerTooLargeError>()("AnswerTooLargeError", {
  unit: Schema.Literals(["bytes", "parts", "calls", "tokens", "extras", "media", "levels", "name"]),
  limit: Schema.Natural
}) {
  override get message() {
    return `the model's answer was ended and thrown away: it has ${excesses[this.unit](this.limit)}; try again, or use another model`
  }
}

/** Why a call failed. Each is an error of its own, with a message that says what a person can do. */
export const ModelErrorReason = Schema.Union([
  NetworkError,
  TimeoutError,
  RateLimitError,
  QuotaExhaustedError,
  AuthenticationError,
  ContentPolicyError,
  InvalidRequestError,
  ContextLengthError,
  InternalProviderError,
  InvalidResponseError,
  AnswerTooLargeError
])
export type ModelErrorReason = typeof ModelErrorReason.Type

/** A model call failed. The message says what a person can do. */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", { reason: ModelErrorReason }) {
  override get message() {
    return this.reason.message
  }
}

/** Whether trying the same again may help. */
export const isRetryable = ({ reason }: ModelError): boolean =>
  reason._tag === "NetworkError" || reason._tag === "RateLimitError" || reason._tag === "InternalProviderError"

/** What is asked of a model. */
export interface ModelRequest {
  readonly model: string
  readonly contents: ReadonlyArray<Content>
  readonly systemInstruction?: string | undefined
  /** Tool declarations in the wire shape of the Gemini API. */
  readonly tools?: ReadonlyArray<Readonly<Record<string, unknown>>> | undefined
  /** Whether it has to call one of the tools; absent: as it likes. */
  readonly mustCall?: boolean | undefined
  readonly generation?: Generation | undefined
}

/** How it is to answer; what is absent is the provider's choice. Never derived from token counts (users' pain #7784). */
export const Generation = Schema.Struct({
  temperature: Schema.optionalKey(Schema.Finite),
  topP: Schema.optionalKey(Schema.Finite),
  topK: Schema.optionalKey(Schema.Finite),
  maxOutputTokens: Schema.optionalKey(Schema.Natural),
  thinkingBudget: Schema.optionalKey(Schema.Int)
})
export type Generation = typeof Generation.Type

/** What a provider's own search found: pages, and after which byte of the answer's text (UTF-8) which of them are meant. */
export const Grounding = Schema.Struct({
  sources: Schema.Array(Schema.Struct({ uri: Schema.String, title: Schema.String })),
  supports: Schema.Array(Schema.Struct({ end: Schema.Natural, sources: Schema.Array(Schema.Natural) }))
})
export type Grounding = typeof Grounding.Type

/** What a provider says of one of its models. Tokens. */
export interface ModelDescription {
  /** The largest request. */
  readonly window: number
  /** The longest answer; undefined where the provider does not say. */
  readonly output: number | undefined
}

/** A piece of an answer as it arrives. */
export const ModelChunk = Schema.Struct({
  parts: Schema.Array(Part),
  finishReason: Schema.optionalKey(Schema.String),
  usage: Schema.optionalKey(Usage),
  /** Addresses that the answer quotes, with their titles. */
  citations: Schema.optionalKey(Schema.Array(Schema.String)),
  grounding: Schema.optionalKey(Grounding)
})
export type ModelChunk = typeof ModelChunk.Type

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
 * A language model. Every call is interruptible: the request is aborted at the socket. None retries by itself; whoever
 * calls decides with `Effect.retry` and `isRetryable`.
 */
export class Model extends Context.Service<
  Model,
  {
    /** The whole answer. One that ended without a finish reason is an `InvalidResponseError`. */
    readonly generate: (request: ModelRequest) => Effect.Effect<ModelAnswer, ModelError>
    /** The answer in pieces. The request is aborted when the stream's scope closes. */
    readonly stream: (request: ModelRequest) => Stream.Stream<ModelChunk, ModelError>
    /** Tokens of the request's contents as the provider counts them. */
    readonly countTokens: (request: ModelRequest) => Effect.Effect<number, ModelError>
    /**
     * What the provider says of a model; undefined: it has none of this name. Answers are kept, so that each model is asked
     * about once. Absent where the provider cannot be asked.
     */
    readonly describe?: (model: string) => Effect.Effect<ModelDescription | undefined, ModelError>
  }
>()("palimpsest/services/Model") {
  /** No model is configured: every call says so. */
  static readonly layerUnavailable = Layer.suspend(() => Layer.succeed(Model, unavailable))
}

/** What answers where no model is configured. */
export const unavailable: Model["Service"] = {
  generate: () => Effect.fail(missing()),
  stream: () => Stream.fail(missing()),
  countTokens: () => Effect.fail(missing())
}

const missing = () => new ModelError({ reason: new AuthenticationError({ kind: "MissingKey" }) })

/** How often and how patiently a call is tried again. Durations in milliseconds. */
export interface Patience {
  /** Calls in all. */
  readonly attempts: number
  /** The pause before the second; it doubles each time, with jitter. */
  readonly first: number
  /** No pause of ours is longer. */
  readonly most: number
  /** A longer pause that a server asks for is not waited for: the error that asked for it is the answer. */
  readonly asked: number
}

/** For calls that somebody waits for and that are worth little. */
export const shortPatience: Patience = { attempts: 3, first: 1_000, most: 15_000, asked: 15_000 }

/** Doubling pauses with jitter between so many attempts. */
export const doubling = ({ attempts, first, most }: Omit<Patience, "asked">): Schedule.Schedule<unknown> =>
  Schedule.exponential(first).pipe(
    Schedule.modifyDelay(({ duration }) =>
      Effect.map(Random.next, (random) =>
        Duration.millis(Math.min(Duration.toMillis(duration) * (0.75 + random * 0.5), most))
      )
    ),
    Schedule.while(({ attempt }) => attempt < attempts)
  )

/**
 * Tries again what may succeed later (`isRetryable`): doubling pauses with jitter, or as long as the server asks for. To be
 * given to `Effect.retry`; every pause is interruptible.
 */
export const retries = (patience: Patience): Schedule.Schedule<unknown, ModelError> =>
  doubling(patience).pipe(
    Schedule.setInputType<ModelError>(),
    Schedule.modifyDelay(({ duration, input: { reason } }) =>
      Effect.succeed("retryAfter" in reason ? (reason.retryAfter ?? duration) : duration)
    ),
    Schedule.while(
      ({ duration, input }) =>
        isRetryable(input) && Duration.toMillis(duration) <= Math.max(patience.asked, patience.most)
    )
  )
