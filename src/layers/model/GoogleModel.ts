import type { GenerateContentParameters, Models } from "@google/genai/web"
import { Config, Duration, Effect, Layer, Option, Redacted, Schema, Scope, Stream } from "effect"
import { errorText } from "../../domain/text/ErrorText.ts"
import { geminiContent } from "../../domain/wire/gemini/Request.ts"
import type { Target } from "../../domain/wire/ModelState.ts"
import {
  Model,
  type ModelAnswer,
  type ModelChunk,
  type ModelDescription,
  type ModelError,
  type ModelRequest,
  TimeoutError
} from "../../services/model/Model.ts"
import { answerSpan, streamSpan } from "../../services/model/ModelSpans.ts"
import { readCountResponse, readModelResponse, toAnswer, toChunk, unfinished } from "./GoogleAnswer.ts"
import { isUnknownModel, keyError, reasonOf } from "./GoogleErrors.ts"
import { type Exchange, observedFetch } from "./GoogleExchange.ts"
import type { Next } from "./GoogleStream.ts"
import { failed, hideKey, unusable } from "./ModelFailures.ts"
import { naming, type ProviderOptions } from "./ProviderExchange.ts"
import { bodyOf, restOf } from "./RequestBytes.ts"

/**
 * The Gemini API through `@google/genai`. Its build `/web` reads no environment and prints no warnings, so that only this layer
 * configures it. It is loaded at the first call that needs it: streamed answers take a shorter way.
 */

/**
 * Time limits. A call that takes longer is aborted at the socket and fails with a `TimeoutError`. But for streams,
 * Node's `fetch` gives up by itself after 300 s without a head or without a piece of a body: longer limits have no effect there.
 */
export interface Timeouts {
  /** For a whole answer of `generate`. */
  readonly generate: Duration.Input
  /** For each piece of `stream`: the first since the request, every other since the one before was taken. */
  readonly chunk: Duration.Input
  readonly countTokens: Duration.Input
  /** For the description of a model. */
  readonly describe: Duration.Input
}

const defaultTimeouts: Timeouts = {
  generate: "120 seconds",
  chunk: "60 seconds",
  countTokens: "30 seconds",
  describe: "5 seconds"
}

/** Options of the Gemini API. */
export interface Options extends Omit<ProviderOptions, "timeouts"> {
  readonly timeouts?: Partial<Timeouts> | undefined
}

const defaultBaseUrl = "https://generativelanguage.googleapis.com"

/** The first value that is not blank: shells and env files leave blank what is not set. */
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

const optionsConfig: Config.Config<Options> = Config.all({
  gemini: Config.option(Config.Redacted("GEMINI_API_KEY")),
  google: Config.option(Config.Redacted("GOOGLE_API_KEY")),
  endpoint: Config.schema(Endpoint, "GOOGLE_GEMINI_BASE_URL").pipe(Config.withDefault(""))
}).pipe(
  Config.map(({ endpoint, gemini, google }) => ({
    apiKey: firstFilled(gemini, google),
    baseUrl: endpoint === "" ? undefined : endpoint
  }))
)

/** Whether a key can be a header. `fetch` would refuse any other, with the key in its message. */
const isSendable = (key: string): boolean => /^[\x21-\x7e]+$/.test(key)

/** The body of a request in the wire shape. The SDK's own shape would lose keys that the SDK does not know. */
const extraBody = ({ contents, ...rest }: ModelRequest, target: Target): Record<string, unknown> => ({
  contents: contents.map((content) => geminiContent(content, target)),
  ...restOf(rest)
})

/** The SDK requires contents of its own type; `extraBody` replaces them. */
const placeholder = [{ role: "user", parts: [{ text: "" }] }]

const parameters = (request: ModelRequest, target: Target, abortSignal: AbortSignal): GenerateContentParameters => ({
  model: request.model,
  contents: placeholder,
  // On by default, continuation makes several requests of one call.
  config: { abortSignal, automaticContinuation: false, httpOptions: { extraBody: extraBody(request, target) } }
})

/** The configuration of all calls. */
interface Client {
  readonly baseUrl: URL
  readonly key: string | undefined
  readonly timeouts: Timeouts
  /** Descriptions by model: they do not change while the program runs. Failures are not kept. */
  readonly descriptions: Map<string, ModelDescription | undefined>
}

/** One request: the SDK's functions for it, and how to call them. */
interface Call {
  readonly exchange: Readonly<Exchange>
  readonly models: Models
  /** The signal it gives aborts the request until the promise settles, no longer. */
  readonly run: <A>(call: (signal: AbortSignal) => Promise<A>) => Effect.Effect<A, ModelError>
}

/** The model that answers. */
const targetOf = ({ baseUrl }: Client, model: string): Target => ({ dialect: "gemini", server: baseUrl.host, model })

const newExchange = (): Exchange => ({
  sent: false,
  status: undefined,
  retryAfter: undefined,
  isNoModel: false,
  excess: undefined
})

/** The key, if a request can be sent with it. */
const sendableKey = ({ key }: Client): Effect.Effect<string, ModelError> => {
  if (key === undefined) return Effect.fail(failed(keyError("MissingKey")))
  return isSendable(key) ? Effect.succeed(key) : Effect.fail(failed(keyError("InvalidKey")))
}

/** The error of a request. */
const errorOf = (client: Client, exchange: Exchange, error: unknown): ModelError =>
  failed(reasonOf(error, hideKey(client)(errorText(error)), exchange, client.baseUrl.host))

const openCall = Effect.fnUntraced(function* (client: Client): Effect.fn.Return<Call, ModelError> {
  const key = yield* sendableKey(client)
  const { GoogleGenAI } = yield* Effect.promise(() => import("@google/genai/web"))
  const exchange = newExchange()
  const { models } = new GoogleGenAI({
    apiKey: key,
    vertexai: false,
    apiVersion: "v1beta",
    httpOptions: { baseUrl: client.baseUrl.href, fetch: observedFetch(exchange) }
  })
  return {
    exchange,
    models,
    run: (call) =>
      Effect.tryPromise({
        try: (signal) => call(signal),
        catch: (error) => {
          exchange.isNoModel = isUnknownModel(error)
          return errorOf(client, exchange, error)
        }
      })
  }
})

const within = (duration: Duration.Input) =>
  Effect.timeoutOrElse({
    duration,
    orElse: () => Effect.fail(failed(new TimeoutError({ seconds: Duration.toSeconds(duration) })))
  })

const generate = Effect.fnUntraced(
  function* (client: Client, request: ModelRequest): Effect.fn.Return<ModelAnswer, ModelError> {
    const { models, run } = yield* openCall(client)
    const target = targetOf(client, request.model)
    const response = yield* run((signal) => models.generateContent(parameters(request, target, signal)))
    return yield* Effect.flatMap(toChunk(response, { hide: hideKey(client), target }), toAnswer)
  },
  (answer, { timeouts }) => within(timeouts.generate)(answer)
)

const countTokens = Effect.fn("Model.countTokens")(
  function* (client: Client, { contents, model }: ModelRequest): Effect.fn.Return<number, ModelError> {
    yield* Effect.annotateCurrentSpan({ model, contents: contents.length })
    const { models, run } = yield* openCall(client)
    const target = targetOf(client, model)
    const own = contents.map((content) => geminiContent(content, target))
    const response = yield* run((abortSignal) =>
      models.countTokens({
        model,
        contents: placeholder,
        config: { abortSignal, httpOptions: { extraBody: { contents: own } } }
      })
    )
    const { totalTokens } = yield* readCountResponse(response).pipe(
      Effect.mapError((error) => unusable(hideKey(client)(error.message)))
    )
    return totalTokens
  },
  (count, { timeouts }) => within(timeouts.countTokens)(count)
)

const describe = Effect.fn("Model.describe")(
  function* (client: Client, model: string): Effect.fn.Return<ModelDescription | undefined, ModelError> {
    yield* Effect.annotateCurrentSpan({ model })
    const { descriptions } = client
    if (descriptions.has(model)) return descriptions.get(model)
    const { exchange, models, run } = yield* openCall(client)
    const response = yield* run((abortSignal) => models.get({ model, config: { abortSignal } })).pipe(
      Effect.catch((error) => (exchange.isNoModel ? Effect.undefined : Effect.fail(error)))
    )
    const limits =
      response === undefined
        ? undefined
        : yield* readModelResponse(response).pipe(Effect.mapError((error) => unusable(hideKey(client)(error.message))))
    if (limits !== undefined && limits.inputTokenLimit === undefined) {
      return yield* unusable("it does not state the maximum size of a request")
    }
    const description =
      limits?.inputTokenLimit === undefined
        ? undefined
        : { window: limits.inputTokenLimit, output: limits.outputTokenLimit }
    descriptions.set(model, description)
    return description
  },
  (description, { timeouts }) => within(timeouts.describe)(description)
)

/** A stream that was opened, and how to read it. */
interface OpenStream {
  /** Returns what has arrived, without waiting. */
  readonly poll: () => Next | undefined
  readonly next: Effect.Effect<Next>
  readonly exchange: Exchange
}

/** Sends a request. The connection closes with the scope. */
const openStream = Effect.fnUntraced(function* (
  client: Client,
  request: ModelRequest
): Effect.fn.Return<OpenStream, ModelError, Scope.Scope> {
  const key = yield* sendableKey(client)
  const { GoogleStream } = yield* Effect.promise(() => import("./GoogleStream.ts"))
  const { baseUrl } = client
  const exchange = newExchange()
  const body = bodyOf(request, targetOf(client, request.model))
  const answer = yield* Effect.acquireRelease(
    Effect.sync(() => new GoogleStream({ baseUrl, key, model: request.model, body, exchange })),
    (open) => Effect.sync(() => open.close())
  )
  return {
    exchange,
    poll: () => answer.poll(),
    next: Effect.callback((resume) => {
      const stop = answer.take((next) => resume(Effect.succeed(next)))
      return Effect.sync(stop)
    })
  }
})

/** The state of a stream: how to get its pieces, and whether one of them had a finish reason. */
interface Progress {
  readonly pieces: Effect.Effect<OpenStream, ModelError>
  readonly finished: boolean
}

const pull = Effect.fnUntraced(function* (
  client: Client,
  target: Target,
  { finished, pieces }: Progress
): Effect.fn.Return<readonly [ModelChunk, Progress] | undefined, ModelError> {
  const opened = yield* pieces
  const next = opened.poll() ?? (yield* within(client.timeouts.chunk)(opened.next))
  if (next._tag === "Failed") return yield* errorOf(client, opened.exchange, next.error)
  if (next._tag === "End") return finished ? undefined : yield* unusable(unfinished)
  const chunk = yield* toChunk(next.value, { hide: hideKey(client), target })
  return [chunk, { pieces: Effect.succeed(opened), finished: finished || chunk.finishReason !== undefined }]
})

const stream = (client: Client, request: ModelRequest): Stream.Stream<ModelChunk, ModelError> =>
  // The request outlives the effect that opens it, so the connection belongs to the scope of the stream.
  Effect.scope.pipe(
    Effect.map((scope) => {
      const start: Progress = { pieces: Scope.provide(openStream(client, request), scope), finished: false }
      return Stream.unfold(start, (progress) => pull(client, targetOf(client, request.model), progress))
    }),
    Stream.unwrap,
    streamSpan("gcp.gemini", request)
  )

/** The key of these options, without blanks. Undefined: none is set. */
const keyOf = ({ apiKey = "" }: Options): string | undefined => {
  const key = (typeof apiKey === "string" ? apiKey : Redacted.value(apiKey)).trim()
  return key === "" ? undefined : key
}

const make = (options: Options): Model["Service"] => {
  const { baseUrl = defaultBaseUrl, model, timeouts } = options
  const client: Client = {
    baseUrl: new URL(baseUrl),
    key: keyOf(options),
    timeouts: { ...defaultTimeouts, ...timeouts },
    descriptions: new Map()
  }
  const asked = naming(model)
  return {
    ...(model === undefined ? {} : { fixedModel: model }),
    generate: (request) => generate(client, asked(request)).pipe(answerSpan("gcp.gemini", asked(request))),
    stream: (request) => stream(client, asked(request)),
    countTokens: (request) => countTokens(client, asked(request)),
    describe: (name) => describe(client, model ?? name)
  }
}

/**
 * The Gemini API, with your own options. Time limits: 120 s for an answer, 60 s for a piece of a stream, 30 s for a count, 5 s for a description.
 *
 * *Details*: building the layer loads nothing and needs no key: without one every call fails with `AuthenticationError`. The key appears in no error,
 * log or span.
 */
export const layer = (options: Options): Layer.Layer<Model> => Layer.sync(Model, () => make(options))

/**
 * The Gemini API, configured by the environment, with your own time limits.
 *
 * *Details*: the key is GEMINI_API_KEY, else GOOGLE_API_KEY; GOOGLE_GEMINI_BASE_URL names another endpoint (http or https). A blank value counts as not
 * set, and nothing else of the environment is read. The layer fails when the endpoint is not such a URL.
 */
export const layerConfigWith = (timeouts: Partial<Timeouts>): Layer.Layer<Model, Config.ConfigError> =>
  Layer.effect(
    Model,
    Effect.map(optionsConfig, (options) => make({ ...options, timeouts }))
  )

/** The Gemini API. The key is GEMINI_API_KEY, else GOOGLE_API_KEY; GOOGLE_GEMINI_BASE_URL names another endpoint. */
export const layerConfig: Layer.Layer<Model, Config.ConfigError> = layerConfigWith({})
