import type { GenerateContentParameters, Models } from "@google/genai/web"
import { Config, Duration, Effect, Layer, Option, Predicate, Redacted, Schema, Stream } from "effect"
import { fromJson, isTooDeep, maxDepth } from "../domain/JsonText.ts"
import { maxAnswerParts } from "../domain/Answer.ts"
import { Part, model } from "../domain/Content.ts"
import type { Usage } from "../domain/Tokens.ts"
import { wireContent } from "../domain/WireContent.ts"
import {
  AnswerTooLargeError,
  AuthenticationError,
  ContentPolicyError,
  ContextLengthError,
  type Grounding,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  Model,
  type ModelAnswer,
  type ModelChunk,
  type ModelDescription,
  ModelError,
  type ModelErrorReason,
  type ModelRequest,
  NetworkError,
  QuotaExhaustedError,
  RateLimitError,
  TimeoutError
} from "../services/Model.ts"
import { bounded, boundedEvents } from "./BoundedResponse.ts"

/**
 * The Gemini API through `@google/genai`. The SDK is used in the build that reads no environment and warns of nothing
 * (`/web`): what is configured here is all it knows. It is loaded at the first call.
 */

const failed = (reason: ModelErrorReason) => new ModelError({ reason })

/**
 * How long to wait. A call that takes longer is aborted at the socket and fails with a `TimeoutError`. Node's `fetch` does
 * so by itself after 300 s without a head or without a piece of a body: more than that has no effect there.
 */
export interface Timeouts {
  /** For a whole answer of `generate`. */
  readonly generate: Duration.Input
  /** For each piece of `stream`: the first since the request, every other since the one before was taken. */
  readonly chunk: Duration.Input
  readonly countTokens: Duration.Input
  /** For what the API says of a model. */
  readonly describe: Duration.Input
}

const defaultTimeouts: Timeouts = {
  generate: "120 seconds",
  chunk: "60 seconds",
  countTokens: "30 seconds",
  describe: "5 seconds"
}

/** Bytes of an answer: more than any model writes, images included. One that never ends is ended there. */
const maxAnswerBytes = 32 * 1024 * 1024
/** Bytes of the body of an error, of which some hundred characters are shown. */
const maxErrorBytes = 1024 * 1024

// Configuration

interface Settings {
  /** Undefined when there is none. */
  readonly key: Redacted.Redacted<string> | undefined
  readonly baseUrl: URL
}

const defaultBaseUrl = "https://generativelanguage.googleapis.com"

/** What is blank counts as not set, as shells and env files leave it. */
const firstFilled = (...values: ReadonlyArray<Option.Option<Redacted.Redacted<string>>>) =>
  values
    .flatMap(Option.toArray)
    .map((value) => Redacted.make(Redacted.value(value).trim()))
    .find((value) => Redacted.value(value) !== "")

/** Without its scheme, `localhost:8080` would be a URL of the scheme `localhost`. */
const Endpoint = Schema.Union([
  Schema.Literal(""),
  Schema.URL.check(Schema.makeFilter(({ protocol }) => /^https?:$/.test(protocol) || "a URL that starts with http"))
])

const settings: Config.Config<Settings> = Config.all({
  gemini: Config.option(Config.Redacted("GEMINI_API_KEY")),
  google: Config.option(Config.Redacted("GOOGLE_API_KEY")),
  endpoint: Config.schema(Endpoint, "GOOGLE_GEMINI_BASE_URL").pipe(Config.withDefault(""))
}).pipe(
  Config.map(({ endpoint, gemini, google }) => ({
    key: firstFilled(gemini, google),
    baseUrl: endpoint === "" ? new URL(defaultBaseUrl) : endpoint
  }))
)

/** What may be sent as a header; anything else would be refused by `fetch`, with the key in the message. */
const isSendable = (key: string): boolean => /^[\x21-\x7e]+$/.test(key)

// Failures

/** What happened to one request beyond what the SDK tells of it. */
interface Exchange {
  sent: boolean
  /** Undefined until the head of the answer is there. */
  status: number | undefined
  retryAfter: Duration.Duration | undefined
  /** Whether it failed because there is no such model. */
  isNoModel: boolean
  /** Why the answer was broken off from here. */
  excess: ModelErrorReason | undefined
}

/** Seconds, or a date: then as long as from the server's own date, whatever our clock says. */
const retryAfter = (headers: Headers): Duration.Duration | undefined => {
  const value = headers.get("retry-after")
  if (value === null) return undefined
  const seconds = /^\d+$/.test(value)
    ? Number(value)
    : (Date.parse(value) - Date.parse(headers.get("date") ?? "")) / 1000
  return Number.isFinite(seconds) ? Duration.seconds(Math.max(0, seconds)) : undefined
}

/**
 * `fetch` that notes what the errors of the SDK leave out, takes only so much of an answer, and follows no redirection: the
 * key is for nobody else.
 */
const noting =
  (exchange: Exchange, isStream: boolean): typeof fetch =>
  (input, init) => {
    exchange.sent = true
    const exceeded = (unit: AnswerTooLargeError["unit"], limit: number): Error => {
      const excess = new AnswerTooLargeError({ unit, limit })
      exchange.excess = excess
      return excess
    }
    const tooManyBytes = () => exceeded("bytes", maxAnswerBytes)
    return fetch(input, { ...init, redirect: "manual" }).then((response) => {
      exchange.status = response.status
      exchange.retryAfter = retryAfter(response.headers)
      // What fails here is told by its status alone.
      if (!response.ok) return bounded(response, maxErrorBytes, () => new Error("the body of the error is too large"))
      if (!isStream) return bounded(response, maxAnswerBytes, tooManyBytes)
      // A piece without a part is no more than one with one.
      return boundedEvents(response, { bytes: maxAnswerBytes, events: maxAnswerParts }, (what) =>
        what === "bytes" ? tooManyBytes() : exceeded("parts", maxAnswerParts)
      )
    })
  }

const Detail = Schema.Struct({
  reason: Schema.optionalKey(Schema.String),
  retryDelay: Schema.optionalKey(Schema.String),
  violations: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ quotaId: Schema.optionalKey(Schema.String), quotaValue: Schema.optionalKey(Schema.String) })
    )
  )
})
type Detail = typeof Detail.Type

/** An error as Google's servers write it. */
interface Complaint {
  readonly message: string
  /** The server's own word: NOT_FOUND, INVALID_ARGUMENT, … */
  readonly status?: string | undefined
  readonly details: ReadonlyArray<Detail>
}

const ErrorBody = fromJson(
  Schema.Struct({
    error: Schema.Struct({
      message: Schema.optionalKey(Schema.String),
      status: Schema.optionalKey(Schema.String),
      details: Schema.optionalKey(Schema.Array(Schema.Unknown))
    })
  })
)
const readErrorBody = Schema.decodeUnknownOption(ErrorBody)
const readDetail = Schema.decodeUnknownOption(Detail)

/** The SDK hands on the body as text: in a stream behind words of its own, and wrapped again when it was not declared as JSON. */
const complaintOf = (text: string): Complaint =>
  Option.match(readErrorBody(text.replace(/^got status: [^{]*/, "")), {
    onNone: () => ({ message: text, details: [] }),
    onSome: ({ error }) =>
      error.details === undefined && error.message?.trimStart().startsWith("{")
        ? complaintOf(error.message.trim())
        : {
            message: error.message ?? "",
            status: error.status,
            details: (error.details ?? []).flatMap((detail) => Option.toArray(readDetail(detail)))
          }
  })

const clip = (text: string): string => (text.length <= 500 ? text : `${text.slice(0, 500)}…`.toWellFormed())

const isKeyRefused = ({ details, message }: Complaint): boolean =>
  details.some(({ reason }) => reason === "API_KEY_INVALID") || /api key (not valid|expired)/i.test(message)

/** What the server says when a request is too large, in tokens or in bytes. */
const contextLength = (message: string): ContextLengthError | undefined => {
  if (/payload size exceeds/i.test(message)) return new ContextLengthError({})
  if (!/token count.*(exceeds|only supports)/is.test(message)) return undefined
  const numbers = [...message.replaceAll(/(?<=\d)[,_](?=\d)/g, "").matchAll(/\d+/g)].map(([digits]) => Number(digits))
  const [tokens, limit] = numbers.length < 2 ? [undefined, numbers[0]] : numbers
  return new ContextLengthError({
    ...(tokens === undefined ? {} : { tokens }),
    ...(limit === undefined ? {} : { limit })
  })
}

/** The quota that no waiting of minutes will refill: one of the day, or one that is zero. */
const exhaustedQuota = ({ details }: Complaint): string | undefined =>
  details
    .flatMap(({ violations }) => violations ?? [])
    .find(({ quotaId, quotaValue }) => /per_?day|daily/i.test(quotaId ?? "") || quotaValue === "0")?.quotaId

const retryDelay = ({ details }: Complaint): Duration.Duration | undefined => {
  const seconds = details
    .map((detail) => /^(\d+(?:\.\d+)?)s$/.exec(detail.retryDelay ?? "")?.[1])
    .find(Predicate.isString)
  return seconds === undefined ? undefined : Duration.seconds(Number(seconds))
}

/** A page where an answer of the API should be: something else answers at that address. */
const isPage = ({ details, message }: Complaint): boolean => details.length === 0 && /^\s*</.test(message)

const badRequest = (complaint: Complaint): ModelErrorReason =>
  isKeyRefused(complaint)
    ? new AuthenticationError({ kind: "InvalidKey" })
    : (contextLength(complaint.message) ?? new InvalidRequestError({ detail: clip(complaint.message) }))

const ofStatus = (status: number, complaint: Complaint, header: Duration.Duration | undefined): ModelErrorReason => {
  const delay = header ?? retryDelay(complaint)
  const waiting = delay === undefined ? {} : { retryAfter: delay }
  if (status < 500 && isPage(complaint)) {
    return new InvalidRequestError({
      detail: `what answers is no Gemini API (HTTP ${status} and a page); check GOOGLE_GEMINI_BASE_URL`
    })
  }
  if (status === 401) return new AuthenticationError({ kind: "InvalidKey" })
  if (status === 403) {
    return new AuthenticationError({ kind: isKeyRefused(complaint) ? "InvalidKey" : "InsufficientPermissions" })
  }
  if (status === 413) return new ContextLengthError({})
  if (status === 429) {
    const quota = exhaustedQuota(complaint)
    return quota === undefined ? new RateLimitError(waiting) : new QuotaExhaustedError({ detail: clip(quota) })
  }
  if (status === 408 || status >= 500) return new InternalProviderError({ status, ...waiting })
  return badRequest(complaint)
}

/** The code of a failed connection, which Node puts somewhere along the causes. */
const codeOf = (error: unknown): string | undefined => {
  if (!Predicate.isObject(error)) return undefined
  if ("code" in error && Predicate.isString(error.code)) return error.code
  return "cause" in error ? codeOf(error.cause) : undefined
}

/** What `fetch` says when the connection ends within a body; the cause need not have a code. */
const isCutOff = (error: unknown): boolean => error instanceof TypeError && error.message === "terminated"

const statusOf = (error: unknown): number | undefined =>
  Predicate.hasProperty(error, "status") && Predicate.isNumber(error.status) ? error.status : undefined

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Whether the API says that it has no such model, or that this can be no model's name. A gateway that does not know the path
 * says nothing about models, and neither does a key that is refused.
 */
const isNoModel = (error: unknown): boolean => {
  const complaint = complaintOf(messageOf(error))
  return statusOf(error) === 404
    ? complaint.status === "NOT_FOUND"
    : statusOf(error) === 400 && complaint.status === "INVALID_ARGUMENT" && !isKeyRefused(complaint)
}

/** Node's own limits for a head and between two pieces. */
const isNodeTimeout = (code: string): boolean => /^UND_ERR_(HEADERS|BODY)_TIMEOUT$/.test(code)

const ofConnection = (code: string, host: string): ModelErrorReason =>
  isNodeTimeout(code) ? new TimeoutError({ seconds: 300 }) : new NetworkError({ detail: `${code}, ${host}` })

/** `message` is the error's, without the key. */
const reasonOf = (error: unknown, message: string, exchange: Exchange, host: string): ModelErrorReason => {
  if (exchange.excess !== undefined) return exchange.excess
  const status = statusOf(error)
  if (status !== undefined) return ofStatus(status, complaintOf(message), exchange.retryAfter)
  if (!exchange.sent) return new InvalidRequestError({ detail: clip(message) })
  const code = codeOf(error) ?? (isCutOff(error) ? "the answer broke off" : undefined)
  if (exchange.status === undefined) return ofConnection(code ?? "no connection", host)
  // The body of an error that could not be read says no more than its status.
  if (exchange.status >= 400) {
    const said = `HTTP ${exchange.status}, and why cannot be read`
    return ofStatus(exchange.status, { message: said, details: [] }, exchange.retryAfter)
  }
  if (exchange.status >= 300) return new InvalidResponseError({ detail: `a redirection (${exchange.status})` })
  return code === undefined ? new InvalidResponseError({ detail: clip(message) }) : ofConnection(code, host)
}

// Answers

const Counts = Schema.Struct({
  promptTokenCount: Schema.optionalKey(Schema.Natural),
  candidatesTokenCount: Schema.optionalKey(Schema.Natural),
  thoughtsTokenCount: Schema.optionalKey(Schema.Natural),
  cachedContentTokenCount: Schema.optionalKey(Schema.Natural)
})

/** Under one key in the documentation, under the other on the wire. */
const Citations = Schema.optionalKey(
  Schema.Array(Schema.Struct({ uri: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Schema.String) }))
)

/** What the search tool of the API found. Places are counted in bytes. */
const GroundingMetadata = Schema.Struct({
  groundingChunks: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        web: Schema.optionalKey(
          Schema.Struct({ uri: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Schema.String) })
        )
      })
    )
  ),
  groundingSupports: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        segment: Schema.optionalKey(Schema.Struct({ endIndex: Schema.optionalKey(Schema.Natural) })),
        groundingChunkIndices: Schema.optionalKey(Schema.Array(Schema.Natural))
      })
    )
  )
})

const GenerateResponse = Schema.Struct({
  candidates: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        content: Schema.optionalKey(Schema.Struct({ parts: Schema.optionalKey(Schema.Array(Part)) })),
        finishReason: Schema.optionalKey(Schema.String),
        citationMetadata: Schema.optionalKey(Schema.Struct({ citations: Citations, citationSources: Citations })),
        groundingMetadata: Schema.optionalKey(Schema.Unknown)
      })
    )
  ),
  promptFeedback: Schema.optionalKey(Schema.Struct({ blockReason: Schema.optionalKey(Schema.String) })),
  usageMetadata: Schema.optionalKey(Counts)
})
const readGenerateResponse = Schema.decodeUnknownEffect(GenerateResponse)

const CountResponse = Schema.Struct({ totalTokens: Schema.Natural })
const readCountResponse = Schema.decodeUnknownEffect(CountResponse)

const ModelResponse = Schema.Struct({
  inputTokenLimit: Schema.optionalKey(Schema.Natural),
  outputTokenLimit: Schema.optionalKey(Schema.Natural)
})
const readModelResponse = Schema.decodeUnknownEffect(ModelResponse)

const usageOf = (counts: typeof Counts.Type): Usage => ({
  prompt: counts.promptTokenCount ?? 0,
  answer: counts.candidatesTokenCount ?? 0,
  thoughts: counts.thoughtsTokenCount ?? 0,
  cached: counts.cachedContentTokenCount ?? 0
})

/** Finish reasons that mean that the provider will not say it. */
const refusals: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION"
])

const unusable = (detail: string) => failed(new InvalidResponseError({ detail: clip(detail) }))

const citationsOf = ({
  citationSources = [],
  citations = []
}: {
  readonly citations?: typeof Citations.schema.Type
  readonly citationSources?: typeof Citations.schema.Type
}): ReadonlyArray<string> =>
  [...citations, ...citationSources].flatMap(({ title, uri }) =>
    uri === undefined ? [] : [title === undefined ? uri : `(${title}) ${uri}`]
  )

const readGrounding = Schema.decodeUnknownOption(GroundingMetadata)

/** What cannot be read of it is no reason to give up the answer. */
const groundingOf = (metadata: unknown): Grounding | undefined => {
  const found = Option.getOrUndefined(readGrounding(metadata))
  if (found === undefined) return undefined
  const { groundingChunks = [], groundingSupports = [] } = found
  return {
    sources: groundingChunks.map(({ web }) => ({ uri: web?.uri ?? "", title: web?.title ?? "" })),
    supports: groundingSupports.flatMap(({ groundingChunkIndices = [], segment }) =>
      segment?.endIndex === undefined ? [] : [{ end: segment.endIndex, sources: groundingChunkIndices }]
    )
  }
}

const readParts = Schema.decodeUnknownOption(
  Schema.Struct({
    candidates: Schema.Tuple([Schema.Struct({ content: Schema.Struct({ parts: Schema.Array(Schema.Unknown) }) })])
  })
)

/** Whether a response has more parts than can be meant: then none of them is looked at. */
const hasTooManyParts = (response: unknown): boolean =>
  Option.exists(readParts(response), ({ candidates: [{ content }] }) => content.parts.length > maxAnswerParts)

/** A response or a piece of one, unless it is a refusal. */
const toChunk = Effect.fnUntraced(function* (
  response: unknown,
  hide: (text: string) => string
): Effect.fn.Return<ModelChunk, ModelError> {
  if (hasTooManyParts(response)) {
    return yield* failed(new AnswerTooLargeError({ unit: "parts", limit: maxAnswerParts }))
  }
  if (isTooDeep(response)) return yield* failed(new AnswerTooLargeError({ unit: "levels", limit: maxDepth }))
  const { candidates, promptFeedback, usageMetadata } = yield* readGenerateResponse(response).pipe(
    Effect.mapError((error) => unusable(hide(error.message)))
  )
  const candidate = candidates?.[0]
  const refusal = promptFeedback?.blockReason ?? candidate?.finishReason
  if (promptFeedback?.blockReason !== undefined || (refusal !== undefined && refusals.has(refusal))) {
    return yield* failed(new ContentPolicyError({ finishReason: clip(hide(refusal ?? "")) }))
  }
  const grounding = groundingOf(candidate?.groundingMetadata)
  return {
    parts: candidate?.content?.parts ?? [],
    ...(candidate?.finishReason === undefined ? {} : { finishReason: candidate.finishReason }),
    ...(usageMetadata === undefined ? {} : { usage: usageOf(usageMetadata) }),
    ...(candidate?.citationMetadata === undefined ? {} : { citations: citationsOf(candidate.citationMetadata) }),
    ...(grounding === undefined ? {} : { grounding })
  }
})

const unfinished = "it ended without a finish reason"

/** A whole answer from its only piece. */
const toAnswer = ({ finishReason, grounding, parts, usage }: ModelChunk): Effect.Effect<ModelAnswer, ModelError> =>
  finishReason === undefined
    ? Effect.fail(unusable(parts.length === 0 ? "it has no candidates" : unfinished))
    : Effect.succeed({
        content: model(...parts),
        finishReason,
        usage: usage ?? null,
        ...(grounding === undefined ? {} : { grounding })
      })

// Requests

/** The body of a request in the wire shape. Passed through the SDK's own shape it would lose the keys the SDK does not know. */
const bodyOf = ({
  contents,
  generation,
  mustCall,
  systemInstruction,
  tools
}: ModelRequest): Record<string, unknown> => ({
  contents: contents.map(wireContent),
  ...(systemInstruction === undefined ? {} : { systemInstruction: { parts: [{ text: systemInstruction }] } }),
  ...(tools === undefined ? {} : { tools }),
  ...(mustCall === true ? { toolConfig: { functionCallingConfig: { mode: "ANY" } } } : {}),
  ...(generation === undefined ? {} : { generationConfig: generationConfig(generation) })
})

const generationConfig = ({ thinkingBudget, ...rest }: NonNullable<ModelRequest["generation"]>) => ({
  ...rest,
  ...(thinkingBudget === undefined ? {} : { thinkingConfig: { thinkingBudget } })
})

/** The SDK wants contents of its own type; `bodyOf` replaces them. */
const placeholder = [{ role: "user", parts: [{ text: "" }] }]

const parameters = (request: ModelRequest, abortSignal: AbortSignal): GenerateContentParameters => ({
  model: request.model,
  contents: placeholder,
  // On by default, continuation makes several requests of one call.
  config: { abortSignal, automaticContinuation: false, httpOptions: { extraBody: bodyOf(request) } }
})

/** One request: the SDK's functions for it, and how to call them. */
interface Call {
  readonly exchange: Readonly<Exchange>
  readonly models: Models
  /** The signal it gives aborts the request until the promise settles, no longer. */
  readonly run: <A>(call: (signal: AbortSignal) => Promise<A>) => Effect.Effect<A, ModelError>
}

const make = Effect.fnUntraced(function* (timeouts: Timeouts): Effect.fn.Return<Model["Service"], Config.ConfigError> {
  const { baseUrl, key } = yield* settings
  const secret = key === undefined ? undefined : Redacted.value(key)
  const hide = (text: string): string => (secret === undefined ? text : text.replaceAll(secret, "<key>"))

  const open = Effect.fnUntraced(function* (isStream: boolean): Effect.fn.Return<Call, ModelError> {
    if (secret === undefined) return yield* failed(new AuthenticationError({ kind: "MissingKey" }))
    if (!isSendable(secret)) return yield* failed(new AuthenticationError({ kind: "InvalidKey" }))
    const { GoogleGenAI } = yield* Effect.promise(() => import("@google/genai/web"))
    const exchange: Exchange = {
      sent: false,
      status: undefined,
      retryAfter: undefined,
      isNoModel: false,
      excess: undefined
    }
    const { models } = new GoogleGenAI({
      apiKey: secret,
      vertexai: false,
      apiVersion: "v1beta",
      httpOptions: { baseUrl: baseUrl.href, fetch: noting(exchange, isStream) }
    })
    return {
      exchange,
      models,
      run: (call) =>
        Effect.tryPromise({
          try: (signal) => call(signal),
          catch: (error) => {
            exchange.isNoModel = isNoModel(error)
            return failed(reasonOf(error, hide(messageOf(error)), exchange, baseUrl.host))
          }
        })
    }
  })

  const within = (duration: Duration.Input) =>
    Effect.timeoutOrElse({
      duration,
      orElse: () => Effect.fail(failed(new TimeoutError({ seconds: Duration.toSeconds(duration) })))
    })

  const generate = Effect.fn("Model.generate")(function* (
    request: ModelRequest
  ): Effect.fn.Return<ModelAnswer, ModelError> {
    yield* Effect.annotateCurrentSpan({ model: request.model, contents: request.contents.length })
    const { models, run } = yield* open(false)
    const response = yield* run((signal) => models.generateContent(parameters(request, signal)))
    return yield* Effect.flatMap(toChunk(response, hide), toAnswer)
  }, within(timeouts.generate))

  const countTokens = Effect.fn("Model.countTokens")(function* (
    request: ModelRequest
  ): Effect.fn.Return<number, ModelError> {
    yield* Effect.annotateCurrentSpan({ model: request.model, contents: request.contents.length })
    const { models, run } = yield* open(false)
    const { contents, model } = request
    const response = yield* run((abortSignal) =>
      models.countTokens({
        model,
        contents: placeholder,
        config: { abortSignal, httpOptions: { extraBody: { contents: contents.map(wireContent) } } }
      })
    )
    const { totalTokens } = yield* readCountResponse(response).pipe(
      Effect.mapError((error) => unusable(hide(error.message)))
    )
    return totalTokens
  }, within(timeouts.countTokens))

  /** What the API said, by name: it does not change while the program runs. Failures are not kept. */
  const described = new Map<string, ModelDescription | undefined>()

  const describe = Effect.fn("Model.describe")(function* (
    model: string
  ): Effect.fn.Return<ModelDescription | undefined, ModelError> {
    yield* Effect.annotateCurrentSpan({ model })
    if (described.has(model)) return described.get(model)
    const { exchange, models, run } = yield* open(false)
    const response = yield* run((abortSignal) => models.get({ model, config: { abortSignal } })).pipe(
      Effect.catch((error) => (exchange.isNoModel ? Effect.undefined : Effect.fail(error)))
    )
    const limits =
      response === undefined
        ? undefined
        : yield* readModelResponse(response).pipe(Effect.mapError((error) => unusable(hide(error.message))))
    if (limits !== undefined && limits.inputTokenLimit === undefined) {
      return yield* unusable("it does not say how large a request may be")
    }
    const description =
      limits?.inputTokenLimit === undefined
        ? undefined
        : { window: limits.inputTokenLimit, output: limits.outputTokenLimit }
    described.set(model, description)
    return description
  }, within(timeouts.describe))

  /** Where a stream stands: how to get its pieces, and whether one of them said that it is finished. */
  interface Progress {
    readonly pieces: Effect.Effect<{ readonly next: Effect.Effect<IteratorResult<unknown>, ModelError> }, ModelError>
    readonly finished: boolean
  }

  const openStream = (request: ModelRequest, signal: AbortSignal): Progress["pieces"] =>
    Effect.gen(function* () {
      const { models, run } = yield* open(true)
      const response = yield* run(() => models.generateContentStream(parameters(request, signal)))
      const pieces = response[Symbol.asyncIterator]()
      return { next: run(() => pieces.next()) }
    })

  const pull = Effect.fnUntraced(function* ({
    finished,
    pieces
  }: Progress): Effect.fn.Return<readonly [ModelChunk, Progress] | undefined, ModelError> {
    const opened = yield* pieces
    const piece = yield* opened.next
    if (piece.done === true) return finished ? undefined : yield* unusable(unfinished)
    const chunk = yield* toChunk(piece.value, hide)
    return [chunk, { pieces: Effect.succeed(opened), finished: finished || chunk.finishReason !== undefined }]
  }, within(timeouts.chunk))

  const stream = (request: ModelRequest): Stream.Stream<ModelChunk, ModelError> =>
    // The request outlives the promise that opens it, so the signal belongs to the scope of the stream.
    Effect.abortSignal.pipe(
      Effect.map((signal) => Stream.unfold({ pieces: openStream(request, signal), finished: false }, pull)),
      Stream.unwrap,
      Stream.withSpan("Model.stream", { attributes: { model: request.model, contents: request.contents.length } })
    )

  return { generate, stream, countTokens, describe }
})

/**
 * The Gemini API. GEMINI_API_KEY, else GOOGLE_API_KEY, is the key; GOOGLE_GEMINI_BASE_URL names another endpoint (http or https). Building
 * it loads nothing and needs no key: without one every call fails with `AuthenticationError`. It fails when the endpoint is
 * no such URL; what is blank counts as not set. Nothing else of the environment is read. The key is in no error, log or span.
 */
export const layerWith = (timeouts: Partial<Timeouts>): Layer.Layer<Model, Config.ConfigError> =>
  Layer.effect(Model, make({ ...defaultTimeouts, ...timeouts }))

/** `layerWith` 120 s for an answer, 60 s for a piece of a stream, 30 s for a count, 5 s for what the API says of a model. */
export const layer: Layer.Layer<Model, Config.ConfigError> = layerWith({})
