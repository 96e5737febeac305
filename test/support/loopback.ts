import { Effect } from "effect"
import http from "node:http"
import type { AddressInfo } from "node:net"

/** Serves HTTP on loopback until the scope closes. Returns the port. */
export const portOf = Effect.fnUntraced(function* (handler: http.RequestListener) {
  const server = http.createServer(handler)
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => void server.close().closeAllConnections())
  )
  return (server.address() as AddressInfo).port
})

/** Serves HTTP on loopback until the scope closes. Returns the address. */
export const listening = (handler: http.RequestListener) =>
  Effect.map(portOf(handler), (port) => `http://127.0.0.1:${port}`)
