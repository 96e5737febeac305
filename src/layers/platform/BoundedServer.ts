/** An HTTP server of Node in which nothing unfinished lives for ever, and which ends in a stated time. */

import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer } from "effect"
import { createServer } from "node:http"
import type { Socket } from "node:net"
import { listenError } from "../../services/platform/ListenError.ts"

/** Connections at the same time, whoever opened them. More are closed at once. */
const maxConnections = 4_096
/** Time for the head of a request. */
const headMillis = 15_000
/** Time for a whole request, its body included. */
const requestMillis = 60_000
/** An idle connection is kept longer than the minute of common proxies: they fail a request on a connection that the server closes first. */
export const keepAliveTimeout = 65_000
/** How often these times are checked. */
const checkMillis = 5_000

/** Options of a server. */
interface BoundedServerOptions {
  readonly host: string
  /** 0 chooses a free one. */
  readonly port: number
  /** Time without a byte in either direction after which a connection is closed. */
  readonly silentMillis: number
  /** Time that answers get when the server stops. What is open then is cut off. */
  readonly closeMillis: number
}

/**
 * The server, until the layer ends. It upgrades no connection: a request to do so is answered as if it had not asked, because an
 * upgraded connection has no bounds.
 */
export const layer = ({ closeMillis, host, port, silentMillis }: BoundedServerOptions) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const server = createServer({
        keepAliveTimeout,
        headersTimeout: headMillis,
        requestTimeout: requestMillis,
        connectionsCheckingInterval: checkMillis
      })
      server.timeout = silentMillis
      server.maxConnections = maxConnections
      // Without a listener Node ignores the wish. The platform adds one.
      server.on("newListener", (event, listener) => {
        if (event === "upgrade") queueMicrotask(() => server.off("upgrade", listener))
      })
      const sockets = new Set<Socket>()
      server.on("connection", (socket) => {
        sockets.add(socket)
        socket.once("close", () => sockets.delete(socket))
      })
      const context = yield* Layer.build(
        NodeHttpServer.layer(() => server, { host, port, gracefulShutdownTimeout: closeMillis })
      ).pipe(Effect.mapError(({ cause }) => listenError({ host, port }, cause)))
      // Runs before the platform waits for the last connection to close.
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          for (const socket of sockets) socket.destroy()
        })
      )
      return context
    })
  )
