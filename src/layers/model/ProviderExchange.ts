import { Config, type Context, Duration, Effect, Layer, Option, Redacted, Result, Schema, Scope, Stream } from "effect"
import * as Sse from "effect/encoding/Sse"
import type { Part } from "../../domain/content/Content.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import { parseJson, wellFormedJson } from "../../domain/text/JsonText.ts"
import {
  type AnswerProblem,
  type AnswerReader,
  maxAnswerParts,
  type ReadEvent
} from "../../domain/wire/AnswerReader.ts"
import { faultOf, type ProviderFault } from "../../domain/wire/ProviderFault.ts"
import { toolDeclarations, toolNames } from "../../domain/wire/ToolDeclarations.ts"
import {
  AnswerTooLargeError,
  ContentPolicyError,
  InvalidRequestError,
  InvalidResponseError,
  Model,
  type ModelAnswer,
  type ModelChunk,
  type ModelError,
  type ModelRequest,
  TimeoutError
} from "../../services/model/Model.ts"
import { type ProviderRequest, type Reply, send, type Send } from "./HttpSend.ts"
import { clip, failed, hideKey, unusable } from "./ModelFailures.ts"
import {
  keyError,
  type ProviderNames,
  reasonOfConnection,
  reasonOfEvent,
  reasonOfStatus,
  retryAfter
} from "./ProviderErrors.ts"

/**
 * One exchange with a provider of any dialect: sends a JSON body, receives JSON or server-sent events, within bounds of bytes, parts and time. A
 * socket closes when its caller is interrupted.
 */

/** Bytes of an answer, images included. An endless answer is ended there. */
const maxAnswerBytes = 32 * 1024 * 1024
/** Bytes of the body of an error, of which a few hundred characters are shown. */
const maxErrorBytes = 1024 * 1024

/** Time limits. A call that takes longer is aborted at the socket and fails with a `TimeoutError`. */
export interface Timeouts {
  /** For each piece of an answer: the first since the request, every other since the one before was taken. */
  readonly chunk: Duration.Input
  /** For a count of tokens. */
  readonly countTokens: Duration.Input
}

/** The default limits: models that think, and servers that load a model first, send nothing for a while. */
const defaultTimeouts: Timeouts = { chunk: "120 seconds", countTokens: "30 seconds" }

/** Options of a provider. */
export interface ProviderOptions {
  /** The key. Default: none, for servers that need none. */
  readonly apiKey?: Redacted.Redacted<string> | string | undefined
  /** The address. Default: the provider's own. */
  readonly baseUrl?: URL | string | undefined
  /** The model that answers all requests. Default: the model that each request names. */
  readonly model?: string | undefined
  readonly timeouts?: Partial<Timeouts> | undefined
}

/** A configured provider. */
export interface Provider {
  readonly names: ProviderNames
  readonly key: string | undefined
  readonly baseUrl: URL
  readonly model: string | undefined
  readonly timeouts: Timeouts
  /** The headers of every request. */
  readonly headers: (key: string | undefined) => Readonly<Record<string, string>>
  /** Whether every call needs a key. */
  readonly needsKey: boolean
  readonly send: Send
}

/** Names the one model that answers all requests, if there is one. */
export const naming =
  (model: string | undefined) =>
  (request: ModelRequest): ModelRequest =>
    model === undefined ? request : { ...request, model }

/** Returns the parts of a request that all dialects share, and the names of its tools. Fails for tools that are not declared functions. */
export const opened = (
  { baseUrl }: Provider,
  { contents, generation = {}, model, mustCall, systemInstruction, tools }: ModelRequest
) =>
  Effect.fromResult(
    Result.mapBoth(toolDeclarations(tools), {
      onFailure: (detail) => failed(new InvalidRequestError({ detail })),
      onSuccess: (declared) => {
        const { maxOutputTokens, temperature, thinkingBudget, topK, topP } = generation
        const basic = { model, server: baseUrl.host, contents, systemInstruction, tools: declared, mustCall }
        const shared = { ...basic, maxOutputTokens, temperature, topP, thinkingBudget }
        return { shared, topK, tools: toolNames(declared) }
      }
    })
  )

/** Returns the parts of a provider that its options determine. */
export const providerOf = (
  { apiKey, baseUrl, model, timeouts }: ProviderOptions,
  defaultBaseUrl: string,
  send: Send
): Pick<Provider, "baseUrl" | "key" | "model" | "send" | "timeouts"> => {
  const key = (apiKey === undefined || typeof apiKey === "string" ? (apiKey ?? "") : Redacted.value(apiKey)).trim()
  const url = new URL(baseUrl ?? defaultBaseUrl)
  // A relative path would replace the last folder of a base without a slash.
  if (!url.pathname.endsWith("/")) url.pathname += "/"
  return {
    key: key === "" ? undefined : key,
    baseUrl: url,
    model,
    send,
    timeouts: { ...defaultTimeouts, ...timeouts }
  }
}

/** Without its scheme, `localhost:8080` would be a URL of the scheme `localhost`. */
const Endpoint = Schema.Union([
  Schema.Literal(""),
  Schema.URL.check(Schema.makeFilter(({ protocol }) => /^https?:$/.test(protocol) || "a URL that starts with http"))
])

/** The first value that is not blank: shells and env files leave blank what is not set. */
const firstFilled = (values: ReadonlyArray<Option.Option<Redacted.Redacted<string>>>) =>
  values.flatMap(Option.toArray).find((value) => Redacted.value(value).trim() !== "")

/** The options in variables: that of the key, else the others, and that of the address. A blank value counts as not set. */
export const optionsConfig = (
  names: ProviderNames,
  ...otherKeys: ReadonlyArray<string>
): Config.Config<ProviderOptions> =>
  Config.all({
    keys: Config.all([names.key, ...otherKeys].map((name) => Config.option(Config.Redacted(name)))),
    endpoint: Config.schema(Endpoint, names.baseUrl).pipe(Config.withDefault(""))
  }).pipe(
    Config.map(({ endpoint, keys }) => ({
      apiKey: firstFilled(keys),
      baseUrl: endpoint === "" ? undefined : endpoint
    }))
  )

/** A layer of a provider, with options of its own or from the environment. Building it connects to nothing. */
export const modelLayer = <E>(
  options: Effect.Effect<ProviderOptions, E>,
  make: (options: ProviderOptions, send: Send) => Model["Service"]
): Layer.Layer<Model, E> => Layer.effect(Model, Effect.zipWith(options, send, make))

/** Whether a key can be a header. HTTP clients refuse any other; `fetch` says so with the key in its message. */
const isSendable = (key: string): boolean => /^[\x21-\x7e]+$/.test(key)

/** Fails with a `TimeoutError` after this time. */
export const within = (duration: Duration.Input) =>
  Effect.timeoutOrElse({
    duration,
    orElse: () => Effect.fail(failed(new TimeoutError({ seconds: Duration.toSeconds(duration) })))
  })

const tooLarge = (unit: "bytes" | "parts", limit: number) => failed(new AnswerTooLargeError({ unit, limit }))

/** The next bytes of an answer; undefined at its end. */
const nextBytes = ({ baseUrl }: Provider, { next }: Reply) =>
  Effect.mapError(next, (error) => failed(reasonOfConnection(error, true, baseUrl.host)))

/** The text of a whole body. */
const textOf = Effect.fnUntraced(function* (
  provider: Provider,
  reply: Reply,
  maxBytes: number
): Effect.fn.Return<string, ModelError> {
  const decoder = new TextDecoder()
  let text = ""
  let size = 0
  for (;;) {
    const bytes = yield* nextBytes(provider, reply)
    if (bytes === undefined) return text + decoder.decode()
    size += bytes.length
    if (size > maxBytes) return yield* tooLarge("bytes", maxBytes)
    text += decoder.decode(bytes, { stream: true })
  }
})

/** The key, if a request can be sent with it. */
export const keyOf = ({ key, names, needsKey }: Provider): Effect.Effect<string | undefined, ModelError> => {
  if (key === undefined) return needsKey ? Effect.fail(failed(keyError("MissingKey", names))) : Effect.undefined
  return isSendable(key) ? Effect.succeed(key) : Effect.fail(failed(keyError("InvalidKey", names)))
}

/** An answer with the status of an error. */
export interface Refusal {
  readonly status: number
  readonly fault: ProviderFault
}

/**
 * Sends a request. Fails if the answer has the status of an error, and notes it with `refused`; follows no redirection, because the key is for this
 * server alone.
 */
const exchanged = Effect.fnUntraced(function* (
  provider: Provider,
  request: ProviderRequest,
  refused?: (refusal: Refusal) => void
): Effect.fn.Return<Reply, ModelError, Scope.Scope> {
  const { baseUrl, names } = provider
  const reply = yield* provider
    .send(request)
    .pipe(Effect.mapError((error) => failed(reasonOfConnection(error, false, baseUrl.host))))
  const { header, status } = reply
  if (status >= 200 && status < 300) {
    if (header("content-type")?.startsWith("text/html") !== true) return reply
    const detail = `${baseUrl.host} answers with a web page, where its API was expected; check ${names.baseUrl}`
    return yield* failed(new InvalidRequestError({ detail }))
  }
  const fault = yield* textOf(provider, reply, maxErrorBytes).pipe(
    Effect.map((text) => faultOf(hideKey(provider)(text))),
    // The status alone is enough where the body cannot be read.
    Effect.orElseSucceed((): ProviderFault => ({ message: `HTTP ${status}, and its body cannot be read`, kind: "" }))
  )
  refused?.({ status, fault })
  return yield* failed(reasonOfStatus(status, fault, retryAfter(header), names))
})

/** The bytes of a JSON body. */
const bytesOf = (body: unknown): ReadonlyArray<Uint8Array> => [Buffer.from(wellFormedJson(JSON.stringify(body)))]

/** Sends bytes of JSON to a path of the API. */
const open = Effect.fnUntraced(function* (provider: Provider, path: string, body: ReadonlyArray<Uint8Array>) {
  const key = yield* keyOf(provider)
  const headers = { "content-type": "application/json", ...provider.headers(key) }
  return yield* exchanged(provider, { url: new URL(path, provider.baseUrl), method: "POST", headers, body })
})

/** Asks for JSON. */
export const call = (provider: Provider, path: string, body: unknown): Effect.Effect<unknown, ModelError> =>
  Effect.gen(function* () {
    const reply = yield* open(provider, path, bytesOf(body))
    const text = yield* textOf(provider, reply, maxAnswerBytes)
    return yield* Effect.fromResult(Result.mapError(parseJson(text), () => unusable("it is not JSON")))
  }).pipe(Effect.scoped, within(provider.timeouts.countTokens))

/** Returns the data of the next event of an answer; undefined at its end. */
const eventsIn = (provider: Provider, reply: Reply): Effect.Effect<string | undefined, ModelError> => {
  const arrived: Array<string> = []
  const decoder = new TextDecoder()
  const parser = Sse.makeParser((event) => void (event._tag === "Event" && arrived.push(event.data)), {
    maxEventSize: maxAnswerBytes
  })
  let [size, count] = [0, 0]
  let isOver = false
  return Effect.gen(function* () {
    while (arrived.length === 0 && !isOver) {
      const bytes = yield* nextBytes(provider, reply)
      isOver = bytes === undefined
      size += bytes?.length ?? 0
      if (size > maxAnswerBytes) return yield* tooLarge("bytes", maxAnswerBytes)
      // Some servers leave out the blank line after the last event.
      parser.feed(isOver ? `${decoder.decode()}\n\n` : decoder.decode(bytes, { stream: true }))
    }
    if (arrived.length > 0) count += 1
    return count > maxAnswerParts ? yield* tooLarge("parts", maxAnswerParts) : arrived.shift()
  })
}

const isBytes = (body: object): body is ReadonlyArray<Uint8Array> => Array.isArray(body)

/** Asks for server-sent events, each with JSON. `body` is a value, or its bytes. The socket closes with the stream's scope. */
export const events = (
  provider: Provider,
  path: string,
  body: ReadonlyArray<Uint8Array> | Readonly<Record<string, unknown>>
): Stream.Stream<unknown, ModelError> =>
  Effect.map(Effect.scope, (scope) => {
    const start = open(provider, path, isBytes(body) ? body : bytesOf(body)).pipe(
      Effect.map((reply) => eventsIn(provider, reply)),
      Scope.provide(scope)
    )
    const next = Effect.fnUntraced(function* (opening: typeof start) {
      const read = yield* opening
      const data = yield* read
      if (data === undefined || data === "[DONE]") return undefined
      const event = parseJson(data)
      if (Result.isSuccess(event)) return [event.success, Effect.succeed(read)] as const
      const { _tag, message } = event.failure
      return yield* unusable(_tag === "TooDeep" ? message : "it contains an event that is not JSON")
    }, within(provider.timeouts.chunk))
    return Stream.unfold(start, next)
  }).pipe(Stream.unwrap)

/** What came of the requests of one call of a vendor's SDK, which would wrap its failures. Mutable. */
export interface SdkCall {
  isSent: boolean
  failure?: ModelError
  refusal?: Refusal
}

/** The `fetch` of a vendor's SDK, over the same exchange, as a part of the fiber with this context. */
export const sdkFetch =
  (provider: Provider, sdkCall: SdkCall, context: Context.Context<never>): typeof fetch =>
  (input, init) => {
    sdkCall.isSent = true
    const request: ProviderRequest = {
      url: new URL(input instanceof Request ? input.url : input),
      method: init?.method === "GET" ? "GET" : "POST",
      headers: Object.fromEntries(new Headers(init?.headers)),
      body: typeof init?.body === "string" ? [Buffer.from(wellFormedJson(init.body))] : []
    }
    return exchanged(provider, request, (refusal) => (sdkCall.refusal = refusal)).pipe(
      Effect.flatMap((reply) => textOf(provider, reply, maxAnswerBytes)),
      Effect.map((text) => new Response(text, { headers: { "content-type": "application/json" } })),
      Effect.tapError((error) => Effect.sync(() => (sdkCall.failure = error))),
      Effect.scoped,
      (exchange) => Effect.runPromiseWith(context)(exchange, { signal: init?.signal ?? undefined })
    )
  }

/** Calls a vendor's SDK. The signal that it gives aborts the request until the promise settles, no longer. */
export const callSdk = <A>(
  provider: Provider,
  sdkCall: SdkCall,
  use: (signal: AbortSignal) => Promise<A>
): Effect.Effect<A, ModelError> =>
  Effect.tryPromise({
    try: (signal) => use(signal),
    catch: (error) => {
      if (sdkCall.failure !== undefined) return sdkCall.failure
      const detail = clip(hideKey(provider)(errorText(error)))
      return failed(sdkCall.isSent ? new InvalidResponseError({ detail }) : new InvalidRequestError({ detail }))
    }
  })

/** The detail of an answer that did not end properly. */
export const unfinished = "it ended without a finish reason"

const errorOf = (provider: Provider, problem: AnswerProblem): ModelError => {
  const hide = hideKey(provider)
  switch (problem._tag) {
    case "Refusal":
      return failed(new ContentPolicyError({ finishReason: clip(hide(problem.reason)) }))
    case "Fault": {
      const { exhaustedQuota, kind, message } = problem.fault
      const fault = { ...problem.fault, kind: hide(kind), message: hide(message) }
      const quota = exhaustedQuota === undefined ? {} : { exhaustedQuota: hide(exhaustedQuota) }
      return failed(reasonOfEvent({ ...fault, ...quota }, provider.names))
    }
    case "Invalid":
      return unusable(hide(problem.detail))
    case "TooLarge":
      return failed(new AnswerTooLargeError({ unit: problem.unit, limit: problem.limit }))
  }
}

/** A chunk without the key: a finish reason that is not known is the server's own text. */
const withoutKey = (provider: Provider, chunk: ModelChunk | undefined): ModelChunk | undefined =>
  chunk?.finishReason === undefined ? chunk : { ...chunk, finishReason: clip(hideKey(provider)(chunk.finishReason)) }

/** The chunk that an event completes; undefined: none. */
export const chunkOf = (provider: Provider, read: ReadEvent): Effect.Effect<ModelChunk | undefined, ModelError> =>
  Effect.fromResult(
    Result.mapBoth(read, {
      onFailure: (problem) => errorOf(provider, problem),
      onSuccess: (chunk) => withoutKey(provider, chunk)
    })
  )

/** The chunks of an answer. Fails at its end if no finish reason came. */
export const chunks = (
  provider: Provider,
  answer: Stream.Stream<unknown, ModelError>,
  makeReader: () => AnswerReader
): Stream.Stream<ModelChunk, ModelError> =>
  Stream.suspend(() => {
    const reader = makeReader()
    let isFinished = false
    return answer.pipe(
      Stream.mapEffect((event) => chunkOf(provider, reader.read(event))),
      Stream.concat(Stream.suspend(() => Stream.succeed(withoutKey(provider, reader.end())))),
      Stream.filter((chunk) => chunk !== undefined),
      Stream.tap(({ finishReason }) => Effect.sync(() => (isFinished ||= finishReason !== undefined))),
      Stream.concat(Stream.suspend(() => (isFinished ? Stream.empty : Stream.fail(unusable(unfinished)))))
    )
  })

/** Whether a part has nothing but a text, of the same kind as the part before. */
const continues = (before: Part | undefined, part: Part): before is Part =>
  before?.text !== undefined &&
  part.text !== undefined &&
  before.thought === part.thought &&
  [before, part].every((each) => Object.keys(each).every((key) => key === "text" || key === "thought"))

/** The whole answer of a stream. Pieces of text in a row become one part. */
export const collect = (answer: Stream.Stream<ModelChunk, ModelError>): Effect.Effect<ModelAnswer, ModelError> =>
  Effect.map(Stream.runCollect(answer), (all) => {
    const parts: Array<Part> = []
    for (const part of all.flatMap((chunk) => chunk.parts)) {
      const last = parts.at(-1)
      if (continues(last, part)) parts[parts.length - 1] = { ...last, text: `${last.text}${part.text}` }
      else parts.push(part)
    }
    return {
      content: { role: "model", parts },
      finishReason: all.findLast(({ finishReason }) => finishReason !== undefined)?.finishReason ?? "",
      usage: all.findLast(({ usage }) => usage !== undefined)?.usage ?? null
    }
  })
