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
import { countSpan, streamSpan } from "../../services/model/ModelSpans.ts"
import { chunkOf, chunks, modelOf } from "./AnswerChunks.ts"
import type { Send } from "./HttpSend.ts"
import {
  modelLayer,
  optionsConfig,
  type Provider,
  type ProviderOptions,
  providerOf,
  type Timeouts as ProviderTimeouts
} from "./Provider.ts"
import { failed, hideKey, unusable, type ProviderNames } from "./ProviderErrors.ts"
import { call, events, type Refusal } from "./ProviderExchange.ts"
import { bodyOf } from "./RequestBytes.ts"

/** The Gemini API. */

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

/** The request with its schema in words, for a model that takes none beside tools. */
const withToldSchema = (request: ModelRequest): ModelRequest => {
  const { generation: { responseSchema, ...generation } = {}, model: name, systemInstruction, tools = [] } = request
  if (responseSchema === undefined || takesSchema(name, tools.length > 0)) return request
  return { ...request, generation, systemInstruction: instructionWith(systemInstruction, responseSchema) }
}

/** The configuration of all calls. */
interface Client extends Provider {
  readonly timeouts: Timeouts
  /** Descriptions by model: they do not change while the program runs. Failures are not kept. */
  readonly descriptions: Map<string, ModelDescription | undefined>
}

/** The model that answers. */
const targetOf = ({ baseUrl }: Client, model: string): Target => ({ dialect: "gemini", server: baseUrl.host, model })

/** The path of a model. Fails for a name that would lead to another resource. */
const pathOf = (name: string): Effect.Effect<string, ModelError> =>
  name === "" || /\.\.|[?&]/.test(name)
    ? Effect.fail(failed(new InvalidRequestError({ detail: "invalid model parameter" })))
    : Effect.succeed(`v1beta/${/^(?:models|tunedModels)\//.test(name) ? name : `models/${name}`}`)

const generate = Effect.fnUntraced(function* (
  client: Client,
  request: ModelRequest
): Effect.fn.Return<ModelAnswer, ModelError> {
  const target = targetOf(client, request.model)
  const path = `${yield* pathOf(request.model)}:generateContent`
  const response = yield* call(client, path, client.timeouts.generate, bodyOf(request, target))
  const chunk = yield* chunkOf(client, readGemini(response, target))
  const { finishReason, grounding, parts = [], usage = null } = chunk ?? {}
  if (finishReason === undefined) return yield* parts.length === 0 ? unusable("it has no candidates") : unfinished
  return { content: model(...parts), finishReason, usage, ...(grounding === undefined ? {} : { grounding }) }
})

const countTokens = Effect.fnUntraced(function* (
  client: Client,
  { contents, model }: ModelRequest
): Effect.fn.Return<number, ModelError> {
  const target = targetOf(client, model)
  const body = { contents: contents.map((content) => geminiContent(content, target)) }
  const response = yield* call(client, `${yield* pathOf(model)}:countTokens`, client.timeouts.countTokens, body)
  return naturalAt(response, "totalTokens") ?? (yield* unusable("it contains no token count"))
})

/** Whether the API has no such model, or does not accept the text as a model name. An unknown path at a gateway or a rejected key does not count. */
const isUnknownModel = ({ fault: { isKeyRefused = false, kind }, status }: Refusal): boolean =>
  status === 404 ? /NOT_FOUND/.test(kind) : status === 400 && /INVALID_ARGUMENT/.test(kind) && !isKeyRefused

const describe = Effect.fn("Model.describe")(function* (
  client: Client,
  model: string
): Effect.fn.Return<ModelDescription | undefined, ModelError> {
  yield* Effect.annotateCurrentSpan({ model })
  const { descriptions, timeouts } = client
  if (descriptions.has(model)) return descriptions.get(model)
  let isUnknown = false
  const refused = (refusal: Refusal) => void (isUnknown = isUnknownModel(refusal))
  const response = yield* call(client, yield* pathOf(model), timeouts.describe, undefined, refused).pipe(
    Effect.catch((error) => (isUnknown ? Effect.undefined : Effect.fail(error)))
  )
  const { inputTokenLimit: window, outputTokenLimit: output } = isUnknown
    ? {}
    : yield* readModelResponse(response).pipe(Effect.mapError((error) => unusable(hideKey(client)(error.message))))
  if (!isUnknown && window === undefined) return yield* unusable("it does not state the maximum size of a request")
  const description = window === undefined ? undefined : { window, output }
  descriptions.set(model, description)
  return description
})

const stream = (client: Client, request: ModelRequest): Stream.Stream<ModelChunk, ModelError> =>
  Effect.map(pathOf(request.model), (path) => {
    const target = targetOf(client, request.model)
    const answer = events(client, `${path}:streamGenerateContent?alt=sse`, bodyOf(request, target))
    return chunks(client, answer, () => geminiAnswerReader({ target }))
  }).pipe(Stream.unwrap, streamSpan("gcp.gemini", request))

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
 * *Details*: building the layer needs no key: without one every call fails with `AuthenticationError`. The key appears in no error,
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
