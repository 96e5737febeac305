/** Serves an MCP server over HTTP to programs on this machine that have its token. */

import { ByteSize, Effect, Layer, Redacted } from "effect"
import { McpServer } from "effect/ai"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { refusalOf } from "../../domain/tools/LoopbackRequest.ts"
import type { ServeMcp } from "../../services/transcripts/McpHttp.ts"
import * as BoundedServer from "../platform/BoundedServer.ts"

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
/** A search of many sessions answers late, and says nothing before. */
const silentMillis = 600_000
const closeMillis = 1_000

/** Serves until it is interrupted. */
export const serveMcp: ServeMcp = ({ port, token, ...options }, registrations, started) => {
  const server = McpServer.layerHttp({ ...options, path: "/mcp", registrations })
  const served = HttpRouter.serve(Layer.provide(server, guarded(Redacted.value(token))), {
    disableLogger: true,
    disableListenLog: true
  })
  const listening = BoundedServer.layer({ host, port, silentMillis, closeMillis })
  return Effect.gen(function* () {
    const { address } = yield* HttpServer.HttpServer
    yield* started(`http://${host}:${"port" in address ? address.port : port}/mcp`)
    return yield* Effect.never
  }).pipe(
    Effect.provide(Layer.provideMerge(served, listening)),
    Effect.catchTag("IllegalArgumentError", (error) => Effect.die(error))
  )
}
