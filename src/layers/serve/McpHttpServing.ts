import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { ByteSize, Effect, Layer, Redacted } from "effect"
import { McpServer } from "effect/ai"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { createServer } from "node:http"
import { refusalOf } from "../../domain/tools/LoopbackRequest.ts"
import { listenError } from "../../services/platform/ListenError.ts"
import type { ServeMcp } from "../../services/transcripts/McpHttp.ts"

/** Serves an MCP server over HTTP to programs on this machine that have its token. */

/** The largest body of a request. */
const bodyBytes = 1_000_000

const guarded = (token: string) =>
  HttpRouter.middleware(
    (work) =>
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const { authorization, host, origin } = headers
        const refusal = refusalOf({ authorization, host, origin }, token)
        if (refusal === undefined) {
          return yield* Effect.provideService(work, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bodyBytes))
        }
        const { message, status } = refusal
        return HttpServerResponse.jsonUnsafe(
          { error: message },
          { status, headers: status === 401 ? { "www-authenticate": "Bearer" } : {} }
        )
      }),
    { global: true }
  )

const host = "127.0.0.1"

/** Serves until it is interrupted. */
export const serveMcp: ServeMcp = ({ port, token, ...options }, registrations, started) => {
  const server = McpServer.layerHttp({ ...options, path: "/mcp", registrations })
  const served = HttpRouter.serve(Layer.provide(server, guarded(Redacted.value(token))), {
    disableLogger: true,
    disableListenLog: true
  })
  const listening = NodeHttpServer.layer(() => createServer({ headersTimeout: 15_000 }), {
    host,
    port,
    gracefulShutdownTimeout: "1 second"
  }).pipe(
    Layer.build,
    Effect.mapError(({ cause }) => listenError({ host, port }, cause)),
    Layer.effectContext
  )
  return Effect.gen(function* () {
    const { address } = yield* HttpServer.HttpServer
    yield* started(`http://${host}:${"port" in address ? address.port : port}/mcp`)
    return yield* Effect.never
  }).pipe(
    Effect.provide(Layer.provideMerge(served, listening)),
    Effect.catchTag("IllegalArgumentError", (error) => Effect.die(error))
  )
}
