import { Effect } from "effect"
import http from "node:http"
import type { Socket } from "node:net"
import { type Duplex, duplexPair } from "node:stream"
import { Agent, type buildConnector } from "undici"

/** Connections between clients and HTTP servers of this process without sockets: each is a pair of streams. */

const servers = new Map<string, http.Server>()
let opened = 0

/** What HTTP asks of a socket besides a stream. `timeout` is the limit that was set last. */
const asSocket = (side: Duplex) => {
  const socket = Object.assign(side, {
    timeout: 0,
    setTimeout: (millis: number) => Object.assign(socket, { timeout: millis }),
    setNoDelay: () => socket,
    setKeepAlive: () => socket,
    ref: () => socket,
    unref: () => socket
  }) as unknown as Socket
  return socket
}

const connect = (hostname: string) => {
  const [client, server] = duplexPair()
  client.once("close", () => void server.destroy())
  server.once("close", () => void client.destroy())
  servers.get(hostname)?.emit("connection", asSocket(server))
  return asSocket(client)
}

/** Connects undici to servers of this process. */
export const connector: buildConnector.connector = ({ hostname }, done) => {
  setImmediate(() => {
    if (servers.has(hostname)) done(null, connect(hostname))
    else done(new Error(`connect ECONNREFUSED ${hostname}`), null)
  })
}

/** The option of `fetch`, whose types are of another version of undici. */
const inMemoryOnly: object = { dispatcher: new Agent({ connect: connector }) }

/** Whether an address is one of a server of this process. */
export const isInMemory = (url: string): boolean => new URL(url).hostname.endsWith(".memory")

/** Gives a server an address until the scope closes, without listening. */
export const serve = Effect.fnUntraced(function* (server: http.Server) {
  opened += 1
  const hostname = `server-${opened}.memory`
  yield* Effect.acquireRelease(
    Effect.sync(() => servers.set(hostname, server)),
    () =>
      Effect.sync(() => {
        servers.delete(hostname)
        server.closeAllConnections()
      })
  )
  return `http://${hostname}`
})

/** Serves a listener like `listening` of `loopback.ts`, without listening. */
export const inMemory = (handler: http.RequestListener) => Effect.suspend(() => serve(http.createServer(handler)))

/** The options with which `node:http` reaches an address, in memory or not. */
export const requestOptions = (url: string): http.RequestOptions =>
  isInMemory(url) ? { createConnection: () => connect(new URL(url).hostname) } : {}

/** Fetches from an address, in memory or not. */
export const fetchFrom = (url: string, init: RequestInit): Promise<Response> =>
  fetch(url, isInMemory(url) ? { ...init, ...inMemoryOnly } : init)
