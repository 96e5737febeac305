/**
 * The gateway as a server of its own. It uses Node's server directly: the body of a request that fits is forwarded byte for byte, its headers
 * as written, and its answer as it comes. A framework would decode them.
 */

import { Effect, Exit, Fiber, Layer, Redacted, type Scope } from "effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { localTenant } from "../../domain/serve/ServeSettings.ts"
import type { Gateway } from "../../services/gateway/Gateway.ts"
import { GatewayServer } from "../../services/gateway/GatewayServer.ts"
import { type ListenError, listenError } from "../../services/platform/ListenError.ts"
import { ApiTokens } from "../../services/serve/ApiTokens.ts"
import type { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { keepAliveTimeout } from "../platform/BoundedServer.ts"
import { type GatewayHandlerOptions, handle } from "./GatewayHandler.ts"
import { sendJson } from "./ProxiedRequest.ts"
import type { Upstream } from "./Upstream.ts"

/** Options of the server. */
export interface GatewayHttpOptions extends GatewayHandlerOptions {
  readonly host: string
  readonly port: number
  /** Seconds for the headers of a request, and for the rest of one that is answered already. Default: 15. */
  readonly headersSeconds?: number | undefined
  /** Seconds that running requests get when the server stops. */
  readonly drainSeconds: number
  readonly page: { readonly html: string; readonly policy: string }
}

const bearer = /^bearer\s+(\S+)$/i

/** The metrics, for the operator: they name tenants and what each used. */
const metrics = Effect.fnUntraced(function* ({ headers }: IncomingMessage, response: ServerResponse) {
  const { tenantOf } = yield* ApiTokens
  const token = bearer.exec(headers.authorization ?? "")?.[1] ?? ""
  if ((yield* tenantOf(Redacted.make(token))) !== localTenant) {
    const message = `the header Authorization must be Bearer and a token of the tenant ${localTenant}`
    const body = JSON.stringify({ _tag: "Unauthorized", message })
    return sendJson(response, 401, body, { "www-authenticate": "Bearer" })
  }
  const text = yield* PrometheusMetrics.format()
  response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" })
  response.end(text)
})

/** Answers requests to the gateway itself. Returns undefined for a request to a provider. */
const answerOwn = ({ page }: GatewayHttpOptions, request: IncomingMessage, response: ServerResponse) => {
  if (request.method !== "GET") return undefined
  switch (request.url?.split("?")[0]) {
    case "/":
      return Effect.sync(() => {
        response.writeHead(200, {
          "content-type": "text/html; charset=utf-8",
          "content-security-policy": page.policy
        })
        response.end(page.html)
      })
    case "/health":
      return Effect.sync(() => sendJson(response, 200, '{"status":"ok"}'))
    case "/metrics":
      return metrics(request, response)
    default:
      return undefined
  }
}

const defaultHeadersSeconds = 15

/** Connections at a time. One more is closed at once. */
const maxConnections = 4_096

/** Closes the connection of a request that is answered before it has arrived, if the rest of it does not follow. */
const dropRest = (request: IncomingMessage, response: ServerResponse, millis: number): void => {
  response.once("finish", () => {
    if (request.complete) return
    const timer = setTimeout(() => request.destroy(), millis)
    request.once("close", () => clearTimeout(timer)).once("end", () => clearTimeout(timer))
    request.resume()
  })
}

const listen = (server: Server, options: GatewayHttpOptions) =>
  Effect.callback<number, ListenError>((resume) => {
    server.once("error", (error) => resume(Effect.fail(listenError(options, error))))
    server.listen(options.port, options.host, () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : options.port))
    })
  })

type Services = ApiTokens | Gateway | TenantLimiter | Upstream

/** Makes the server, which does not listen yet. When the scope closes, it takes no more connections, and lets running requests end. */
export const makeServer = Effect.fnUntraced(function* (
  options: GatewayHttpOptions
): Effect.fn.Return<Server, never, Services | Scope.Scope> {
  const context = yield* Effect.context<Services>()
  const running = new Set<Fiber.Fiber<void>>()
  // The handler watches how bodies arrive.
  const headersTimeout = (options.headersSeconds ?? defaultHeadersSeconds) * 1_000
  const timeouts = {
    keepAliveTimeout,
    headersTimeout,
    requestTimeout: 0,
    connectionsCheckingInterval: headersTimeout
  }
  const server = createServer(timeouts, (request, response) => {
    dropRest(request, response, headersTimeout)
    const fiber = Effect.runForkWith(context)(
      answerOwn(options, request, response) ?? handle(options, request, response)
    )
    running.add(fiber)
    // A client that disconnects is noticed by "close".
    request.on("error", () => {})
    response.on("error", () => {})
    response.once("close", () => {
      // The client disconnected: abort the provider's answer.
      if (!response.writableFinished) fiber.interruptUnsafe()
    })
    fiber.addObserver((exit) => {
      running.delete(fiber)
      if (Exit.isFailure(exit) && !response.writableEnded) response.destroy()
    })
  })
  server.maxConnections = maxConnections
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      server.close()
      server.closeIdleConnections()
      yield* Effect.forEach([...running], (fiber) => Fiber.await(fiber), { concurrency: "unbounded" }).pipe(
        Effect.timeoutOption(`${options.drainSeconds} seconds`)
      )
      server.closeAllConnections()
    })
  )
  return server
})

/** The server, until the layer ends. */
export const layer = (options: GatewayHttpOptions): Layer.Layer<GatewayServer, ListenError, Services> =>
  Layer.effect(
    GatewayServer,
    Effect.gen(function* () {
      const server = yield* makeServer(options)
      return { port: yield* listen(server, options) }
    })
  )
