import { Effect, Exit, Fiber, Layer } from "effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Gateway } from "../../services/gateway/Gateway.ts"
import { GatewayServer } from "../../services/gateway/GatewayServer.ts"
import { type ListenError, listenError } from "../../services/platform/ListenError.ts"
import type { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { type GatewayHandlerOptions, handle } from "./GatewayHandler.ts"
import { sendJson } from "./ProxiedRequest.ts"

/**
 * The gateway as a server of its own. It uses Node's server and client directly: a request that fits is forwarded byte for byte, with its
 * headers as written, and its answer is piped. A framework would decode both.
 */

/** Options of the server. */
export interface GatewayHttpOptions extends GatewayHandlerOptions {
  readonly host: string
  readonly port: number
  /** Seconds that running requests get when the server stops. */
  readonly drainSeconds: number
  readonly page: { readonly html: string; readonly policy: string }
}

/** Answers requests to the gateway itself. Returns undefined for a request to a provider. */
const answerOwn = (
  { page }: GatewayHttpOptions,
  { method, url }: IncomingMessage,
  response: ServerResponse
): Effect.Effect<void> | undefined => {
  if (method !== "GET") return undefined
  switch (url?.split("?")[0]) {
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
      return Effect.map(PrometheusMetrics.format(), (text) => {
        response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" })
        response.end(text)
      })
    default:
      return undefined
  }
}

const listen = (server: Server, options: GatewayHttpOptions) =>
  Effect.callback<number, ListenError>((resume) => {
    server.once("error", (error) => resume(Effect.fail(listenError(options, error))))
    server.listen(options.port, options.host, () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : options.port))
    })
  })

/** The server, until the layer ends. It then takes no more connections, and lets running requests end. */
export const layer = (options: GatewayHttpOptions): Layer.Layer<GatewayServer, ListenError, Gateway | TenantLimiter> =>
  Layer.effect(
    GatewayServer,
    Effect.gen(function* () {
      const context = yield* Effect.context<Gateway | TenantLimiter>()
      const running = new Set<Fiber.Fiber<void>>()
      const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 0 }, (request, response) => {
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
      const port = yield* listen(server, options)
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
      return { port }
    })
  )
