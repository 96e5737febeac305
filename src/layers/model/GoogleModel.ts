/**
 * The Gemini API through `@google/genai`. Its build `/web` reads no environment and prints no warnings, so that only this layer
 * configures it. It is loaded at the first call that needs it: streamed answers take a shorter way.
 */

import type { GenerateContentParameters, Models } from "@google/genai/web"
import { type Config, type Duration, Effect, type Layer, Schema, Stream } from "effect"
import { model } from "../../domain/content/Content.ts"
import { keyVariables } from "../../domain/model/ModelRoute.ts"
import { naturalAt } from "../../domain/wire/AnswerUsage.ts"
import { geminiAnswerReader, readGemini } from "../../domain/wire/gemini/Answer.ts"
import { geminiContent, takesSchema } from "../../domain/wire/gemini/Request.ts"
import type { Target } from "../../domain/wire/ModelState.ts"
import { instructionWith } from "../../domain/wire/ResponseSchema.ts"
import { unfinished } from "../../services/model/CollectedAnswer.ts"
import {
  InvalidRequestError,
  type Model,
  type ModelAnswer,
  type ModelChunk,
  type ModelDescription,
  type ModelError,
  type ModelRequest
} from "../../services/model/Model.ts"
import { countSpan } from "../../services/model/ModelSpans.ts"
import { chunkOf, chunks, modelOf } from "./AnswerChunks.ts"
import type { Send } from "./HttpSend.ts"
import {
  keyOf,
  modelLayer,
  optionsConfig,
  type Provider,
  type ProviderOptions,
  providerOf,
  type Timeouts as ProviderTimeouts
} from "./Provider.ts"
import { failed, hideKey, type ProviderNames, unusable } from "./ProviderErrors.ts"
import { events, failAfter, type Refusal } from "./ProviderExchange.ts"
import { bodyOf, restOf } from "./RequestBytes.ts"
import { callSdk, type SdkCall, sdkFetch } from "./SdkCall.ts"

/** Time limits. A call that takes longer is aborted at the socket and fails with a `TimeoutError`. */
export interface Timeouts extends ProviderTimeouts {
  /** For a whole answer of `generate`. */
  readonly generate: Duration.Input
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

const names: ProviderNames = { keys: keyVariables.google, baseUrl: "GOOGLE_GEMINI_BASE_URL", api: "Gemini" }
const defaultBaseUrl = "https://generativelanguage.googleapis.com"

const ModelResponse = Schema.Struct({
  inputTokenLimit: Schema.optionalKey(Schema.Natural),
  outputTokenLimit: Schema.optionalKey(Schema.Natural)
})
/** Decodes the description of a model. */
const readModelResponse = Schema.decodeUnknownEffect(ModelResponse)

/** The body of a request in the wire shape. The SDK's own shape would lose keys that the SDK does not know. */
const extraBody = ({ contents, ...rest }: ModelRequest, target: Target): Record<string, unknown> => ({
  contents: contents.map((content) => geminiContent(content, target)),
  ...restOf(rest)
})

/** The request with its schema in words, for a model that takes none beside tools. */
const withToldSchema = (request: ModelRequest): ModelRequest => {
  const { generation: { responseSchema, ...generation } = {}, model: name, systemInstruction, tools = [] } = request
  if (responseSchema === undefined || takesSchema(name, tools.length > 0)) return request
  return { ...request, generation, systemInstruction: instructionWith(systemInstruction, responseSchema) }
}

/** The SDK requires contents of its own type; `extraBody` replaces them. */
const placeholder = [{ role: "user", parts: [{ text: "" }] }]

const parameters = (request: ModelRequest, target: Target, abortSignal: AbortSignal): GenerateContentParameters => ({
  model: request.model,
  contents: placeholder,
  // On by default, continuation makes several requests of one call.
  config: { abortSignal, automaticContinuation: false, httpOptions: { extraBody: extraBody(request, target) } }
})

/** The configuration of all calls. */
interface Client extends Provider {
  readonly timeouts: Timeouts
  /** Descriptions by model: they do not change while the program runs. Failures are not kept. */
  readonly descriptions: Map<string, ModelDescription | undefined>
}

/** The model that answers. */
const targetOf = ({ baseUrl }: Client, model: string): Target => ({ dialect: "gemini", server: baseUrl.host, model })

/** One call of the SDK. `sdkCall` tells what came of its request. */
const openCall = Effect.fnUntraced(function* (client: Client) {
  const apiKey = yield* keyOf(client)
  const { GoogleGenAI } = yield* Effect.promise(() => import("@google/genai/web"))
  const context = yield* Effect.context<never>()
  const sdkCall: SdkCall = { isSent: false }
  const { models } = new GoogleGenAI({
    apiKey: apiKey ?? "",
    vertexai: false,
    apiVersion: "v1beta",
    httpOptions: { baseUrl: client.baseUrl.href, fetch: sdkFetch(client, sdkCall, context) }
  })
  const run = <A>(use: (models: Models, signal: AbortSignal) => Promise<A>) =>
    callSdk(client, sdkCall, (signal) => use(models, signal))
  return { run, sdkCall }
})

const generate = (client: Client, request: ModelRequest): Effect.Effect<ModelAnswer, ModelError> =>
  Effect.gen(function* () {
    const { run } = yield* openCall(client)
    const target = targetOf(client, request.model)
    const response = yield* run((models, signal) => models.generateContent(parameters(request, target, signal)))
    const chunk = yield* chunkOf(client, readGemini(response, target))
    const { finishReason, grounding, parts = [], usage = null } = chunk ?? {}
    if (finishReason === undefined) return yield* parts.length === 0 ? unusable("it has no candidates") : unfinished
    return { content: model(...parts), finishReason, usage, ...(grounding === undefined ? {} : { grounding }) }
  }).pipe(failAfter(client.timeouts.generate))

const countTokens = Effect.fnUntraced(
  function* (client: Client, { contents, model }: ModelRequest): Effect.fn.Return<number, ModelError> {
    const { run } = yield* openCall(client)
    const target = targetOf(client, model)
    const own = contents.map((content) => geminiContent(content, target))
    const response = yield* run((models, abortSignal) =>
      models.countTokens({
        model,
        contents: placeholder,
        config: { abortSignal, httpOptions: { extraBody: { contents: own } } }
      })
    )
    return naturalAt(response, "totalTokens") ?? (yield* unusable("it contains no token count"))
  },
  (count, { timeouts }) => failAfter(timeouts.countTokens)(count)
)

/** Whether the API has no such model, or does not accept the text as a model name. An unknown path at a gateway or a rejected key does not count. */
const isUnknownModel = ({ fault: { isKeyRefused = false, kind }, status }: Refusal): boolean =>
  status === 404 ? /NOT_FOUND/.test(kind) : status === 400 && /INVALID_ARGUMENT/.test(kind) && !isKeyRefused

const describe = Effect.fn("Model.describe")(
  function* (client: Client, model: string): Effect.fn.Return<ModelDescription | undefined, ModelError> {
    yield* Effect.annotateCurrentSpan({ model })
    const { descriptions } = client
    if (descriptions.has(model)) return descriptions.get(model)
    const { run, sdkCall } = yield* openCall(client)
    const response = yield* run((models, abortSignal) => models.get({ model, config: { abortSignal } })).pipe(
      Effect.catch((error) =>
        sdkCall.refusal !== undefined && isUnknownModel(sdkCall.refusal) ? Effect.undefined : Effect.fail(error)
      )
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
  (description, { timeouts }) => failAfter(timeouts.describe)(description)
)

/** The path of a model, as the SDK has it; undefined for a name that would lead to another resource. */
const modelPath = (name: string): string | undefined =>
  name === "" || /\.\.|[?&]/.test(name) ? undefined : /^(?:models|tunedModels)\//.test(name) ? name : `models/${name}`

/**
 * Streams take no SDK: it serialises and encodes all of a request, parses it again to add fields that it does not know, and makes two objects for each
 * piece of an answer, a third of a turn with tools. Here the body is bytes already.
 */
const stream = (client: Client, request: ModelRequest): Stream.Stream<ModelChunk, ModelError> =>
  Stream.suspend(() => {
    const path = modelPath(request.model)
    if (path === undefined) return Stream.fail(failed(new InvalidRequestError({ detail: "invalid model parameter" })))
    const target = targetOf(client, request.model)
    const answer = events(client, `v1beta/${path}:streamGenerateContent?alt=sse`, bodyOf(request, target))
    return chunks(client, answer, () => geminiAnswerReader({ target }))
  })

const make = (options: Options, send: Send): Model["Service"] => {
  const client: Client = {
    ...providerOf({ ...options, timeouts: undefined }, defaultBaseUrl, send),
    names,
    needsKey: true,
    headers: (key): Readonly<Record<string, string>> => (key === undefined ? {} : { "x-goog-api-key": key }),
    timeouts: { ...defaultTimeouts, ...options.timeouts },
    descriptions: new Map()
  }
  return modelOf(client, "gcp.gemini", {
    generate: (request) => generate(client, withToldSchema(request)),
    stream: (request) => stream(client, withToldSchema(request)),
    countTokens: (request) => countTokens(client, request).pipe(countSpan("gcp.gemini", request)),
    describe: (name) => describe(client, name)
  })
}

/**
 * The Gemini API, with your own options. Time limits: 120 s for an answer, 60 s for a piece of a stream, 30 s for a count, 5 s for a description.
 *
 * *Details*: building the layer loads nothing and needs no key: without one every call fails with `AuthenticationError`. The key appears in no error,
 * log or span. Requests go through the `HttpClient` that is provided to this layer, if there is one.
 */
export const layer = (options: Options): Layer.Layer<Model> => modelLayer(Effect.succeed(options), make)

/**
 * The Gemini API, configured by the environment, with your own time limits.
 *
 * *Details*: the key is GEMINI_API_KEY, else GOOGLE_API_KEY; GOOGLE_GEMINI_BASE_URL names another endpoint (http or https). A blank value counts as not
 * set, and nothing else of the environment is read. The layer fails when the endpoint is not such a URL.
 */
export const layerConfigWith = (timeouts: Partial<Timeouts>): Layer.Layer<Model, Config.ConfigError> =>
  modelLayer(optionsConfig(names), (options, send) => make({ ...options, timeouts }, send))

/** The Gemini API. The key is GEMINI_API_KEY, else GOOGLE_API_KEY; GOOGLE_GEMINI_BASE_URL names another endpoint. */
export const layerConfig: Layer.Layer<Model, Config.ConfigError> = layerConfigWith({})
