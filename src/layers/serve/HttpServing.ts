/** Serves the API and the page over HTTP with Node. */

import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { ByteSize, Cause, Clock, Effect, Layer, Option, Schema } from "effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { fromJson } from "../../domain/text/JsonText.ts"
import { newId } from "../../services/platform/NewId.ts"
import { versioned } from "../../services/serve/ServeApi.ts"
import { ServedSessions } from "../../services/serve/ServedSessions.ts"
import * as ServeHandlers from "../../services/serve/ServeHandlers.ts"
import * as BoundedServer from "../platform/BoundedServer.ts"

// Logs requests: one line for each, when its answer has been sent or its client has gone.

/** The status in the log of a request whose client left before the answer. */
const clientClosed = 499

/** An id that a client or a proxy gave a request. */
const isId = (id: string | undefined): id is string => id !== undefined && /^[\w.-]{1,64}$/.test(id)

/** Handles a request under an id, which its answer has in `x-request-id`. `isLogged`: whether the log gets a line. */
const logged = <E, R>(work: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>, isLogged: boolean) =>
  Effect.gen(function* () {
    const received = yield* HttpServerRequest.HttpServerRequest
    const began = yield* Clock.currentTimeMillis
    const given = received.headers["x-request-id"]
    const id = isId(given) ? given : yield* newId
    const record: ServeHandlers.RequestRecord = { tenant: null, route: null }
    if (isLogged) {
      const response = NodeHttpServerRequest.toServerResponse(received)
      const closed = Effect.callback<void>((resume) => void response.once("close", () => resume(Effect.void)))
      const line = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.annotateLogs(Effect.logInfo("request"), {
          request: id,
          method: received.method,
          ...record,
          status: response.headersSent ? response.statusCode : clientClosed,
          duration: now - began
        })
      )
      yield* Effect.forkDetach(Effect.andThen(closed, line), { startImmediately: true })
    }
    const answer = yield* Effect.provideService(work, ServeHandlers.RequestRecord, record)
    return HttpServerResponse.setHeader(answer, "x-request-id", id)
  })

/** A page, and the content security policy of its answer. */
interface Page {
  readonly html: string
  readonly policy: string
}

/** Options of the server. */
export interface HttpServingOptions {
  readonly host: string
  /** 0 chooses a free one. */
  readonly port: number
  /** Maximum bytes of a request's body. */
  readonly bodyBytes: number
  readonly version: string
  /** Whether the log gets a line for each request. Default: no. */
  readonly logRequests?: boolean | undefined
  readonly page: Page
  /** Makes the page of the reference from the OpenAPI document. */
  readonly reference: (spec: OpenApi.OpenAPISpec) => Effect.Effect<Page>
}

/** A client that is silent for this long while it sends, or does not read for this long, is cut off. A stream that is read sends something every 15 seconds. */
const silentMillis = 60_000
/** Time that the last answers get when the server stops. */
const closeMillis = 2_000

const reasons: Readonly<Record<number, readonly [tag: string, message: string]>> = {
  400: ["BadRequest", "the request cannot be read"],
  404: ["NotFound", "there is nothing at this address; GET /openapi.json lists all"],
  405: ["BadRequest", "this address has no such method; GET /openapi.json lists all"],
  413: ["TooLarge", "the body is too large"],
  415: ["UnsupportedBody", "the body must be JSON, with content-type: application/json"],
  499: ["BadRequest", "the client closed the connection"],
  503: ["Unavailable", "the server is stopping; try again in a moment"]
}

/** Replaces an empty or plain answer with an explanation as JSON, with the same status. */
const explained = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
  const isJson = response.headers["content-type"]?.includes("json") === true
  if (response.status < 400 || isJson) return response
  const [tag, message] = reasons[response.status] ?? ["Failed", "the server failed; see its log"]
  return HttpServerResponse.jsonUnsafe(
    { _tag: tag, message },
    { status: response.status, headers: response.status === 413 ? { connection: "close" } : {} }
  )
}

const Waiting = fromJson(Schema.Struct({ retryAfter: Schema.Natural }))

/** Seconds after which a client tries again what the server cannot do at the moment. */
const unavailableSeconds = 5

/** The header that tells a client, and the proxies before it, how many seconds to wait: what the body of a refusal says. */
const waiting = ({ body, status }: HttpServerResponse.HttpServerResponse): { readonly "retry-after"?: string } => {
  if (status === 503) return { "retry-after": String(unavailableSeconds) }
  if (status !== 429 || body._tag !== "Uint8Array") return {}
  const decoded = Schema.decodeUnknownOption(Waiting)(new TextDecoder().decode(body.body))
  return Option.isNone(decoded) ? {} : { "retry-after": String(decoded.value.retryAfter) }
}

const secured = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
  const own = response.headers
  return HttpServerResponse.setHeaders(response, {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": own["cache-control"] ?? "no-store",
    ...waiting(response),
    ...(response.status === 401 ? { "www-authenticate": "Bearer" } : {})
  })
}

/** Makes every error a JSON object with an explanation. Internal errors are written to the log only. */
const answers = ({ bodyBytes, logRequests = false }: HttpServingOptions) =>
  HttpRouter.middleware(
    (work) =>
      work.pipe(
        Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bodyBytes)),
        Effect.catchCause((cause) =>
          Cause.hasInterruptsOnly(cause)
            ? Effect.failCause(cause)
            : Effect.flatMap(HttpServerError.causeResponse(cause), ([response]) =>
                response.status >= 500 && response.status !== 503
                  ? Effect.as(Effect.logError("serve: a request failed", cause), response)
                  : Effect.succeed(response)
              )
        ),
        Effect.map((response) => secured(explained(response))),
        (answered) => logged(answered, logRequests)
      ),
    { global: true }
  )

const shown = ({ html, policy }: Page) =>
  HttpServerResponse.setHeader(HttpServerResponse.html(html), "content-security-policy", policy)

/** The page with the API reference, made at its first request. */
const reference = ({ reference: render, version }: HttpServingOptions) =>
  Layer.unwrap(
    Effect.map(Effect.cached(Effect.suspend(() => render(OpenApi.fromApi(versioned(version))))), (made) =>
      HttpRouter.add("GET", "/docs", Effect.map(made, shown))
    )
  )

/**
 * The server, until the layer ends. It first takes no more turns, and lets the running ones end (`ServedSessions.drain`). `more` are
 * routes beside those of the API.
 */
export const layer = <E = never, R = never>(options: HttpServingOptions, more: Layer.Layer<never, E, R>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { drain } = yield* ServedSessions
      yield* Effect.addFinalizer(() => drain)
    })
  ).pipe(
    Layer.provideMerge(
      HttpRouter.serve(
        Layer.mergeAll(
          ServeHandlers.routes(options.version),
          HttpRouter.add("GET", "/", Effect.succeed(shown(options.page))),
          reference(options),
          more
        ).pipe(Layer.provide(answers(options))),
        { disableLogger: true, disableListenLog: true }
      )
    ),
    Layer.provideMerge(BoundedServer.layer({ host: options.host, port: options.port, silentMillis, closeMillis }))
  )
