import { Config, Duration, Effect, Option, Redacted, Result, Schema, Stream } from "effect"
import { maxAnswerParts } from "../../domain/chat/Answer.ts"
import type { Part } from "../../domain/content/Content.ts"
import { parseJson, wellFormedJson } from "../../domain/text/JsonText.ts"
import type { Target } from "../../domain/wire/ModelState.ts"
import { faultOf } from "../../domain/wire/ProviderFault.ts"
import { toolDeclarations, type ToolNames, toolNames } from "../../domain/wire/ToolDeclarations.ts"
import {
  AnswerTooLargeError,
  type ModelAnswer,
  type ModelChunk,
  type ModelError,
  type ModelErrorReason,
  type ModelRequest,
  InvalidRequestError,
  TimeoutError
} from "../../services/model/Model.ts"
import { bounded } from "./BoundedResponse.ts"
import { failed, hideKey, unusable } from "./ModelFailures.ts"
import { keyError, type ProviderNames, reasonOfConnection, reasonOfStatus, retryAfter } from "./ProviderErrors.ts"
import { ServerEvents } from "./ServerEvents.ts"

/**
 * One HTTP exchange with a provider: sends a JSON body, receives JSON or server-sent events. It uses the platform's `fetch`: the signal of a fiber closes
 * its socket at once, and the whole exchange is this file. The vendors' SDKs weigh megabytes and retry by themselves; Effect's HTTP client is built
 * on the same `fetch` and bounds nothing that a server sends.
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
  defaultBaseUrl: string
): Pick<Provider, "baseUrl" | "key" | "model" | "timeouts"> => {
  const key = (apiKey === undefined || typeof apiKey === "string" ? (apiKey ?? "") : Redacted.value(apiKey)).trim()
  const url = new URL(baseUrl ?? defaultBaseUrl)
  // A relative path would replace the last folder of a base without a slash.
  if (!url.pathname.endsWith("/")) url.pathname += "/"
  return { key: key === "" ? undefined : key, baseUrl: url, model, timeouts: { ...defaultTimeouts, ...timeouts } }
}

/** Without its scheme, `localhost:8080` would be a URL of the scheme `localhost`. */
const Endpoint = Schema.Union([
  Schema.Literal(""),
  Schema.URL.check(Schema.makeFilter(({ protocol }) => /^https?:$/.test(protocol) || "a URL that starts with http"))
])

/** The options in two variables. A blank value counts as not set. */
export const optionsConfig = (names: ProviderNames): Config.Config<ProviderOptions> =>
  Config.all({
    key: Config.option(Config.Redacted(names.key)),
    endpoint: Config.schema(Endpoint, names.baseUrl).pipe(Config.withDefault(""))
  }).pipe(
    Config.map(({ endpoint, key }) => ({
      apiKey: Option.getOrUndefined(key),
      baseUrl: endpoint === "" ? undefined : endpoint
    }))
  )

/** Whether a key can be a header. `fetch` would refuse any other, with the key in its message. */
const isSendable = (key: string): boolean => /^[\x21-\x7e]+$/.test(key)

/** The state of an exchange, for its error. Mutable. */
interface Exchange {
  isBegun: boolean
  excess: ModelErrorReason | undefined
}

const within = (duration: Duration.Input) =>
  Effect.timeoutOrElse({
    duration,
    orElse: () => Effect.fail(failed(new TimeoutError({ seconds: Duration.toSeconds(duration) })))
  })

/** Reads a promise of the exchange, whose failures are those of the connection. */
const run = <A>(provider: Provider, exchange: Exchange, promise: () => Promise<A>): Effect.Effect<A, ModelError> =>
  Effect.tryPromise({
    try: promise,
    catch: (error) => failed(exchange.excess ?? reasonOfConnection(error, exchange.isBegun, provider.baseUrl.host))
  })

const exceeded =
  (exchange: Exchange) =>
  (what: "bytes" | "events"): Error => {
    exchange.excess =
      what === "bytes"
        ? new AnswerTooLargeError({ unit: "bytes", limit: maxAnswerBytes })
        : new AnswerTooLargeError({ unit: "parts", limit: maxAnswerParts })
    return exchange.excess
  }

/** Sends a request. Fails if the answer has the status of an error; follows no redirection, because the key is for this server alone. */
const open = Effect.fnUntraced(function* (
  provider: Provider,
  exchange: Exchange,
  path: string,
  body: unknown,
  signal: AbortSignal
): Effect.fn.Return<Response, ModelError> {
  const { baseUrl, headers, key, names, needsKey } = provider
  if (key === undefined && needsKey) return yield* failed(keyError("MissingKey", names))
  if (key !== undefined && !isSendable(key)) return yield* failed(keyError("InvalidKey", names))
  const response = yield* run(provider, exchange, () =>
    fetch(new URL(path, baseUrl), {
      method: "POST",
      headers: { "content-type": "application/json", ...headers(key) },
      body: wellFormedJson(JSON.stringify(body)),
      redirect: "manual",
      signal
    })
  )
  exchange.isBegun = true
  const { headers: answered, status } = response
  if (response.ok && answered.get("content-type")?.startsWith("text/html") === true) {
    const detail = `${baseUrl.host} answers with a web page, where its API was expected; check ${names.baseUrl}`
    return yield* failed(new InvalidRequestError({ detail }))
  }
  if (response.ok) return response
  // The status alone is enough where the body cannot be read.
  const text = yield* Effect.promise(() =>
    bounded(response, maxErrorBytes, () => new Error("the body of the error is too large"), signal)
      .text()
      .catch(() => "")
  )
  return yield* failed(reasonOfStatus(status, faultOf(hideKey(provider)(text)), retryAfter(answered), names))
})

/** Asks for JSON. */
export const call = (provider: Provider, path: string, body: unknown): Effect.Effect<unknown, ModelError> =>
  Effect.gen(function* () {
    const exchange: Exchange = { isBegun: false, excess: undefined }
    const signal = yield* Effect.abortSignal
    const response = yield* open(provider, exchange, path, body, signal)
    const text = yield* run(provider, exchange, () =>
      bounded(response, maxAnswerBytes, () => exceeded(exchange)("bytes"), signal).text()
    )
    return yield* Effect.fromResult(Result.mapError(parseJson(text), () => unusable("it is not JSON")))
  }).pipe(Effect.scoped, within(provider.timeouts.countTokens))

/** The data of a server-sent event; empty if it has none. */
const dataOf = (event: string): string =>
  event
    .split(/\r\n|\r|\n/)
    .flatMap((line) => (line.startsWith("data:") ? [line.slice(line.startsWith("data: ") ? 6 : 5)] : []))
    .join("\n")

/** The events of a body, read piece by piece. */
const eventsIn = (exchange: Exchange, { body }: Response) => {
  const arrived: Array<string> = []
  const decoder = new TextDecoder()
  const take = (event: Uint8Array) => void arrived.push(dataOf(decoder.decode(event)).trim())
  const bounds = { bytes: maxAnswerBytes, events: maxAnswerParts }
  const split = new ServerEvents(bounds, take, exceeded(exchange))
  const reader = body?.getReader()
  let isOver = reader === undefined
  /** Returns the data of the next event; undefined at the end. */
  return async (): Promise<string | undefined> => {
    while (arrived.length === 0 && !isOver) {
      const { value } = (await reader?.read()) ?? {}
      if (value !== undefined) split.push(value)
      else {
        isOver = true
        const rest = split.end()
        if (rest !== undefined) take(rest)
      }
    }
    return arrived.shift()
  }
}

/** Asks for server-sent events, each with JSON. The socket closes with the stream's scope. */
export const events = (provider: Provider, path: string, body: unknown): Stream.Stream<unknown, ModelError> =>
  Effect.map(Effect.abortSignal, (signal) => {
    const exchange: Exchange = { isBegun: false, excess: undefined }
    const start = Effect.map(open(provider, exchange, path, body, signal), (response) => eventsIn(exchange, response))
    const next = Effect.fnUntraced(function* (opening: typeof start) {
      const read = yield* opening
      for (;;) {
        const data = yield* run(provider, exchange, read)
        if (data === undefined || data === "[DONE]") return undefined
        if (data === "") continue
        const event = parseJson(data)
        if (Result.isFailure(event)) return yield* unusable("it contains an event that is not JSON")
        return [event.success, Effect.succeed(read)] as const
      }
    }, within(provider.timeouts.chunk))
    return Stream.unfold(start, next)
  }).pipe(Stream.unwrap)

/** What the events of an answer are read with. */
export interface Reading {
  readonly tools: ToolNames
  readonly names: ProviderNames
  /** Removes the key from a text. */
  readonly hide: (text: string) => string
  /** The model that answers. */
  readonly target: Target
}

/** Reads the events of one answer. It keeps the state that they depend on. */
export interface EventReader {
  /** The chunk that an event completes; undefined: none. */
  readonly read: (event: unknown) => Effect.Effect<ModelChunk | undefined, ModelError>
  /** The chunk that the end of the answer completes. Fails if it ended too early. */
  readonly end: () => Effect.Effect<ModelChunk | undefined, ModelError>
}

const unfinished = "it ended without a finish reason"

/** The chunks of an answer. Fails at its end if no finish reason came. */
export const chunks = (
  answer: Stream.Stream<unknown, ModelError>,
  makeReader: () => EventReader
): Stream.Stream<ModelChunk, ModelError> =>
  Stream.suspend(() => {
    const reader = makeReader()
    let isFinished = false
    const pieces = answer.pipe(
      Stream.mapEffect(reader.read),
      Stream.concat(Stream.fromEffect(Effect.suspend(reader.end))),
      Stream.filter((chunk) => chunk !== undefined),
      Stream.tap(({ finishReason }) =>
        Effect.sync(() => {
          isFinished ||= finishReason !== undefined
        })
      )
    )
    return Stream.concat(
      pieces,
      Stream.suspend(() => (isFinished ? Stream.empty : Stream.fail(unusable(unfinished))))
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
