/** Serves the gateway as routes of another HTTP server. */

import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { IncomingMessage, ServerResponse } from "node:http"
import type { Gateway } from "../../services/gateway/Gateway.ts"
import type { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { type GatewayHandlerOptions, handle } from "./GatewayHandler.ts"
import type { Upstream } from "./Upstream.ts"

/** The path before those of the providers. */
const prefix = "/gateway"

/** The gateway within another server: its routes are under `/gateway`, and bytes pass as in a standalone gateway. */
export const routes = Effect.fnUntraced(function* (options: GatewayHandlerOptions) {
  const context = yield* Effect.context<Gateway | TenantLimiter | Upstream>()
  return HttpRouter.add(
    "*",
    `${prefix}/*`,
    Effect.gen(function* () {
      const received = yield* HttpServerRequest.HttpServerRequest
      const request = NodeHttpServerRequest.toIncomingMessage(received)
      const response = NodeHttpServerRequest.toServerResponse(received)
      if (!(request instanceof IncomingMessage) || !(response instanceof ServerResponse)) {
        return HttpServerResponse.jsonUnsafe({ error: { message: "HTTP/1.1 is needed" } }, { status: 505 })
      }
      // A model may be silent for longer than a client of this server. The handler watches the client itself.
      const { socket } = request
      const silentMillis = socket.timeout ?? 0
      socket.setTimeout(0)
      yield* Effect.ensuring(
        Effect.provideContext(handle(options, request, response, prefix), context),
        Effect.sync(() => void socket.setTimeout(silentMillis))
      )
      // The answer was written, or the client disconnected.
      return response.writableEnded ? HttpServerResponse.empty() : yield* Effect.interrupt
    })
  )
})
