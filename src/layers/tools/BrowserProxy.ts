/**
 * A proxy on the loopback interface for all connections of a browser. It resolves each host through `targets` and connects to that
 * exact address, so neither a redirect nor a changed DNS answer leads elsewhere.
 */

import { Effect, FiberSet, Result } from "effect"
import type { Buffer } from "node:buffer"
import { createServer, type IncomingMessage, request as httpRequest, type Server, type ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { BrowserFailure, type Targets } from "../../services/tools/Browser.ts"

const fail = (message: string) => new BrowserFailure({ message })

/** The header that marks our own refusals. */
const refusal = "x-palimpsest-refusal"

/** Returns why the proxy refused a request, from the headers of its answer. */
export const refusalIn = (headers: Readonly<Record<string, string>>): string | undefined => {
  const why = headers[refusal]
  return why === undefined ? undefined : decodeURIComponent(why)
}

/** Returns the address that a connection may go to, or why it is refused. */
type CheckTarget = (url: URL) => Promise<Result.Result<string, string>>

const refuse = (response: ServerResponse, why: string): void => {
  response.writeHead(403, { "content-type": "text/plain; charset=utf-8", [refusal]: encodeURIComponent(why) })
  response.end(why)
}

/** Passes a request without encryption on to an address, and its answer back. */
const forward = (request: IncomingMessage, response: ServerResponse, url: URL, address: string): void => {
  const { host: _host, "proxy-connection": _proxy, ...headers } = request.headers
  const outgoing = httpRequest(
    {
      host: address,
      port: url.port === "" ? 80 : Number(url.port),
      method: request.method,
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, host: url.host }
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    }
  )
  outgoing.on("error", ({ message }) => (response.headersSent ? response.destroy() : refuse(response, message)))
  response.on("close", () => outgoing.destroy())
  request.pipe(outgoing)
}

const onRequest =
  (checkTarget: CheckTarget) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    const url = URL.parse(request.url ?? "")
    if (url === null || url.protocol !== "http:") return refuse(response, "only http and https are supported")
    void checkTarget(url).then((result) => {
      if (Result.isFailure(result)) refuse(response, result.failure)
      else forward(request, response, url, result.success)
    })
  }

/** Joins the browser's connection with one to an address. */
const tunnel = (client: Socket, head: Buffer, url: URL, address: string): void => {
  const server = connect(url.port === "" ? 443 : Number(url.port), address, () => {
    client.write("HTTP/1.1 200 Connection Established\r\n\r\n")
    server.write(head)
    server.pipe(client)
    client.pipe(server)
  })
  server.on("error", () => client.destroy())
  client.on("close", () => server.destroy())
  server.on("close", () => client.destroy())
}

const onConnect =
  (checkTarget: CheckTarget) =>
  (request: IncomingMessage, client: Socket, head: Buffer): void => {
    client.on("error", () => client.destroy())
    const url = URL.parse(`https://${request.url ?? ""}`)
    if (url === null) {
      client.end("HTTP/1.1 400 Bad Request\r\n\r\n")
      return
    }
    void checkTarget(url).then((result) => {
      if (Result.isFailure(result)) client.end("HTTP/1.1 403 Forbidden\r\n\r\n")
      else tunnel(client, head, url, result.success)
    })
  }

/** Listens on the loopback interface while the scope is open, and returns the port. */
const listening = Effect.fnUntraced(function* (server: Server) {
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
  })
  yield* Effect.acquireRelease(
    Effect.callback<void, BrowserFailure>((resume) => {
      server.once("error", ({ message }) => resume(fail(`no browser can be started here: ${message}`)))
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        for (const socket of sockets) socket.destroy()
        server.close()
      })
  )
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
})

/** A proxy that is running. */
export interface BrowserProxy {
  readonly port: number
  /** Returns why the last connection was refused, and clears the reason. */
  readonly takeReason: () => string
}

/** Starts a proxy, which ends with the scope. */
export const start = Effect.fnUntraced(function* (targets: Targets) {
  let reason = ""
  const run = yield* FiberSet.makeRuntimePromise<never, Result.Result<string, string>>()
  const checkTarget: CheckTarget = (url) =>
    run(
      targets(url).pipe(
        Effect.flatMap(([first]) =>
          first === undefined ? fail(`${url.host} could not be found`) : Effect.succeed(first)
        ),
        Effect.mapError(({ message }) => message),
        Effect.result,
        Effect.tap((result) =>
          Effect.sync(() => {
            if (Result.isFailure(result)) reason = result.failure
          })
        )
      )
    )
  const port = yield* listening(createServer(onRequest(checkTarget)).on("connect", onConnect(checkTarget)))
  return {
    port,
    takeReason: () => {
      const last = reason
      reason = ""
      return last
    }
  }
})
