/** Connects to a remote agent: loads its card, restricts the hosts of its requests, and limits their size and time. */

import type { AgentCard } from "@a2a-js/sdk"
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory
} from "@a2a-js/sdk/client"
import { Duration, Effect, Redacted, Ref, Result, Schema } from "effect"
import type { RemoteAgent } from "../../domain/agent/AgentDefinition.ts"
import { clipped } from "../../domain/text/Bytes.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { AgentFailure } from "../../services/agent/AgentRunner.ts"
import { codeOf } from "../platform/ConnectionCode.ts"
import { type Header, withoutSecret } from "./A2aAuth.ts"

type Bytes = Uint8Array<ArrayBuffer>

/** Fails with the error of `exceeded` once more than `most` bytes have come, counted after decompression. */
const counted = (maxBytes: number, exceeded: () => Error): TransformStream<Bytes, Bytes> => {
  let size = 0
  return new TransformStream({
    transform: (chunk, controller) => {
      size += chunk.length
      if (size > maxBytes) controller.error(exceeded())
      else controller.enqueue(chunk)
    }
  })
}

/** A response that fails if its body is larger than `most` bytes. `signal` ends the body and its socket, whether it is being read or not. */
export const bounded = (
  response: Response,
  maxBytes: number,
  exceeded: () => Error,
  signal?: AbortSignal
): Response => {
  const { body, headers, status, statusText } = response
  return body === null
    ? response
    : new Response(body.pipeThrough(counted(maxBytes, exceeded), signal === undefined ? {} : { signal }), {
        headers,
        status,
        statusText
      })
}

/** A remote agent and its card. */
export interface Endpoint {
  readonly name: string
  /** The location of the card, from the definition. */
  readonly where: RemoteAgent["card"]
  readonly checkAddress: ((url: URL) => Effect.Effect<unknown, { readonly message: string }>) | undefined
  /** The card, once loaded. */
  readonly loadedCard: Ref.Ref<LoadedCard | undefined>
}

/** A loaded card, and the origins that requests may go to. */
export interface LoadedCard {
  readonly card: AgentCard
  readonly origins: ReadonlyArray<string>
}

/** The requests of one exchange, and what happened to them beyond what the SDK reports. Mutable. */
export interface Exchange {
  readonly header: Header | undefined
  status: number | undefined
  /** Why this client aborted the request. */
  refusal: string | undefined
}

/** An exchange before its first request. */
export const makeExchange = (header: Header | undefined): Exchange => ({
  header,
  status: undefined,
  refusal: undefined
})

/** Bytes of one response. The largest single event is 4 MiB, a limit of the SDK. */
const maxResponseBytes = 32 * 1024 * 1024
/** The time limit for loading the card. */
const requestTimeout: Duration.Input = "30 seconds"

/** Makes a failure of an agent. */
export const failed = ({ name }: Pick<Endpoint, "name">, why: string): AgentFailure =>
  new AgentFailure({ message: `agent ${name}: ${why}` })

/** Makes the failure of a request, without the credentials. */
export const failure = (endpoint: Pick<Endpoint, "name">, exchange: Exchange, error: unknown): AgentFailure =>
  failed(endpoint, withoutSecret(failureText(error, exchange), exchange.header))

/** Runs a request of the SDK. */
export const request = <A>(endpoint: Pick<Endpoint, "name">, exchange: Exchange, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (error) => failure(endpoint, exchange, error) })

/** A client whose requests end with the scope. */
export const connect = Effect.fnUntraced(function* (endpoint: Endpoint, exchange: Exchange) {
  const signal = yield* Effect.abortSignal
  const { card, origins } =
    (yield* Ref.get(endpoint.loadedCard)) ?? (yield* loadAndKeepCard(endpoint, exchange, signal))
  yield* Effect.forEach(origins, (origin) => check(endpoint, origin), { discard: true })
  exchange.status = undefined
  const fetchImpl = guarded((origin) => origins.includes(origin), signal, exchange)
  const transport = { fetchImpl, legacyCompat: { enabled: true } }
  return yield* request(endpoint, exchange, () =>
    new ClientFactory({
      transports: [new JsonRpcTransportFactory(transport), new RestTransportFactory(transport)],
      cardResolver: resolver(fetch)
    }).createFromAgentCard(card)
  )
})

const resolver = (fetchImpl: typeof fetch) =>
  new DefaultAgentCardResolver({ fetchImpl, legacyCompat: { enabled: true } })

const check = (endpoint: Endpoint, url: string) =>
  endpoint.checkAddress === undefined
    ? Effect.void
    : endpoint.checkAddress(new URL(url)).pipe(
        Effect.mapError(({ message }) => failed(endpoint, message)),
        Effect.asVoid
      )

/** Reads the card and keeps it. */
const loadAndKeepCard = Effect.fnUntraced(function* (endpoint: Endpoint, exchange: Exchange, signal: AbortSignal) {
  const { loadedCard, where } = endpoint
  const card = yield* loadCard(endpoint, exchange, signal)
  if (!isCard(card)) {
    return yield* failed(
      endpoint,
      `the document at ${clip("url" in where ? where.url : "its card")} is not an agent card`
    )
  }
  const origins = "url" in where ? [where.url] : card.supportedInterfaces.map(({ url }) => url)
  const made: LoadedCard = {
    // Fields missing in a card get the defaults of the protocol.
    card: resolver(fetch).normalizeAgentCard(card),
    origins: origins.flatMap((url) => originOf(url) ?? [])
  }
  yield* Ref.set(loadedCard, made)
  return made
})

const loadCard = Effect.fnUntraced(function* (endpoint: Endpoint, exchange: Exchange, signal: AbortSignal) {
  const { name, where } = endpoint
  const wrong = (message: string) => new AgentFailure({ message })
  if ("json" in where) {
    const json = yield* Effect.mapError(readJson(where.json), () => wrong(`the card of agent ${name} is not JSON`))
    return resolver(fetch).normalizeAgentCard(json)
  }
  const origin = originOf(where.url)
  if (origin === undefined) return yield* wrong(`the address of agent ${name} is invalid: ${clip(where.url)}`)
  const fetchImpl = guarded((other) => other === origin, signal, exchange)
  yield* check(endpoint, where.url)
  const isBare = new URL(where.url).pathname === "/"
  const path = isBare ? undefined : ""
  return yield* request(endpoint, exchange, () => resolver(fetchImpl).resolve(where.url, path)).pipe(
    Effect.timeoutOrElse({
      duration: requestTimeout,
      orElse: () =>
        Effect.fail(
          wrong(
            `agent ${name} did not send its card within ${Duration.format(Duration.fromInputUnsafe(requestTimeout))}`
          )
        )
    })
  )
})

const clip = (text: string): string => clipped(text, 500)

/** A `fetch` for a single host that authenticates, follows no redirection and limits the size of the response. */
const guarded =
  (isAllowed: (origin: string) => boolean, signal: AbortSignal, exchange: Exchange): typeof fetch =>
  (input, init) => {
    const refuse = (why: string) => {
      exchange.refusal = why
      return Promise.reject(new Error(why))
    }
    const { href, host, origin } = new URL(input instanceof Request ? input.url : input)
    if (!isAllowed(origin)) {
      return refuse(
        `its card names the host ${host}, but comes from another one; if that is intended, give the card itself (agent_card_json)`
      )
    }
    const { header } = exchange
    const headers = new Headers(init?.headers)
    if (header !== undefined) headers.set(header.name, Redacted.value(header.value))
    return fetch(href, { ...init, headers, redirect: "manual", signal }).then((response) => {
      exchange.status = response.status
      if (response.status < 300 || response.status >= 400) {
        const exceeded = () => {
          exchange.refusal = `it answered with more than ${maxResponseBytes / 1024 / 1024} MiB`
          return new Error(exchange.refusal)
        }
        return bounded(response, maxResponseBytes, exceeded, signal)
      }
      return refuse(
        `it redirects to ${clip(response.headers.get("location") ?? "another address")}; redirects are not followed`
      )
    })
  }

/** The fields of a card that are needed. The SDK does not validate them. */
const isCard = Schema.is(
  Schema.Struct({
    supportedInterfaces: Schema.Array(Schema.Struct({ url: Schema.String, protocolBinding: Schema.String }))
  })
)

const originOf = (url: string): string | undefined => Result.getOrUndefined(Result.try(() => new URL(url)))?.origin

const readJson = Schema.decodeUnknownEffect(fromJson(Schema.Unknown))

const isOf = (error: unknown, name: string): boolean =>
  error instanceof Error && (error.name === name || (error.cause !== undefined && isOf(error.cause, name)))

/** The error message for the user. */
const failureText = (error: unknown, exchange: Exchange): string => {
  if (exchange.refusal !== undefined) return exchange.refusal
  if (isOf(error, "TaskNotFoundError")) return "it no longer has this task; send the message again to start a new one"
  if (exchange.status === 401 || exchange.status === 403) {
    return exchange.header === undefined
      ? `it requires authentication (HTTP ${exchange.status}); add auth to the agent's definition`
      : `it rejects the credentials (HTTP ${exchange.status}); check the auth in the agent's definition`
  }
  if (exchange.status === 404) return "there is no agent at that address (HTTP 404); check its address"
  if (exchange.status === 429) return "it received too many requests (HTTP 429); try again later"
  if (exchange.status !== undefined && exchange.status >= 500) {
    return `the server failed (HTTP ${exchange.status}); try again later`
  }
  const message = errorText(error)
  const code = codeOf(error)
  if (exchange.status === undefined) return `it cannot be reached (${code ?? clip(message)}); is it running?`
  if (code?.startsWith("UND_ERR") === true || message === "terminated") return "the connection broke off; try again"
  if (/maximum allowed size/.test(message)) return "it answered with an event of more than 4 MiB"
  if (error instanceof SyntaxError || /JSON|SSE|Content-Type/.test(message)) {
    return `its answer is not A2A (${clip(message)})`
  }
  return clip(message)
}
