import { Effect } from "effect"
import { Buffer } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net"
import { type Random, seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"
import { makeGateway, raw } from "../support/GatewayScene.ts"
import { listening } from "../support/loopback.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** Requests that try to become a part of another client's, in front of an ordinary server that keeps connections open. */

const methods = ["GET", "HEAD", "DELETE", "OPTIONS", "POST", "PUT", "PATCH", "TRACE", "SEARCH"]

/** Headers that try to remove a framing, or to add one. Those that Node's server refuses are not here. */
const tricks = [
  "Connection: content-length",
  "Connection: transfer-encoding, content-length, host",
  "Connection: x-api-key, x-id",
  "Connection: close, x-id",
  "Connection: keep-alive, Authorization",
  "Keep-Alive: timeout=99999",
  "Proxy-Connection: content-length",
  "TE: trailers, chunked",
  "Trailer: Content-Length",
  "Upgrade: h2c",
  "Upgrade: other\r\nConnection: Upgrade",
  "X-Content-Length: 0",
  "Content_Length: 0",
  "X-HTTP-Method-Override: DELETE",
  "Expect: 100-continue"
]

/** Requests that are not to arrive at all. */
const refused: ReadonlyArray<(body: string) => string> = [
  (body) => `Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
  (body) => `Content-Length: ${body.length}\r\nContent-Length: 0\r\n\r\n${body}`,
  (body) => `Transfer-Encoding: gzip, chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  (body) => `Transfer-Encoding: chunked, identity\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  (body) => `Transfer-Encoding: xchunked\r\n\r\n${body}`,
  (body) => `Transfer-Encoding : chunked\r\n\r\n${body}`,
  (body) => `Content-Length: +${body.length}\r\n\r\n${body}`,
  (body) => `Content-Length: ${body.length}, ${body.length}\r\n\r\n${body}`,
  (body) => `X: a\r\n Content-Length: 0\r\nBad Name: x\r\n\r\n${body}`,
  (body) => `Transfer-Encoding: chunked\r\n\r\n-1\r\n${body}\r\n0\r\n\r\n`
]

interface Generated {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly body: string
  readonly key: string
  readonly bytes: string
  readonly isRefused: boolean
}

const generated = (random: Random, id: string): Generated => {
  const one = <A>(all: ReadonlyArray<A>): A => all[Math.floor(random() * all.length)] as A
  const method = one(methods)
  const path = `/v1/x/${id}${one(["", "?a=b", "?x=%20y&z"])}`
  const key = `key-${id}`
  const smuggled = `POST /smuggled/${id} HTTP/1.1\r\nHost: x\r\nX-Id: smuggled\r\nContent-Length: 100\r\n\r\n`
  const body = one([
    "",
    "x",
    "\r\n",
    "0\r\n\r\n",
    smuggled,
    `${smuggled}${smuggled}`,
    "a".repeat(Math.floor(random() * 70_000))
  ])
  const target = one([path, path, `http://elsewhere${path}`, path.replace("/v1", "//v1/.")])
  const isRefused = random() < 0.1
  // Node does not answer a damaged request to upgrade: it waits for the rest.
  const usable = isRefused ? tricks.filter((trick) => !trick.includes("Upgrade")) : tricks
  const extra = Array.from({ length: Math.floor(random() * 3) }, () => one(usable))
  const lines = [
    `${method} ${target} HTTP/1.1`,
    "Host: gateway",
    `X-Id: ${id}`,
    `Authorization: Bearer ${key}`,
    ...extra
  ]
  const head = `${lines.join("\r\n")}\r\n`
  if (isRefused) return { id, method, path, body, key, isRefused, bytes: head + one(refused)(body) }
  const chunks = (): string => {
    let text = ""
    for (let at = 0; at < body.length;) {
      const size = Math.min(body.length - at, 1 + Math.floor(random() * 9_000))
      text += `${size.toString(16)}${one(["", ";x=y", ""])}\r\n${body.slice(at, at + size)}\r\n`
      at += size
    }
    return `${text}0\r\n${one(["", "X-Trailer: Content-Length\r\n"])}\r\n`
  }
  const framed = one([
    () => `Transfer-Encoding: chunked\r\n\r\n${chunks()}`,
    () => `tRANSFER-eNCODING: Chunked\r\n\r\n${chunks()}`,
    () => (body === "" ? `\r\n` : `Content-Length: ${body.length}\r\n\r\n${body}`),
    () => `Content-Length: ${body.length}\r\n\r\n${body}`
  ])
  return { id, method, path, body, key, isRefused, bytes: head + framed() }
}

/** Sends a request on a connection, and returns the answer; what came of it where the connection was closed. */
const exchange = (socket: Socket, { bytes, id, method }: Generated) =>
  new Promise<string>((resolve) => {
    let text = ""
    const isDone = () => (method === "HEAD" ? text.includes("\r\n\r\n") : text.includes(`end of ${id};`))
    const done = () => {
      socket.off("data", onData).off("close", done)
      resolve(text)
    }
    const onData = (piece: Buffer) => {
      text += piece.toString("latin1").replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, "")
      if (isDone() || /^HTTP\/1\.1 [45]/.test(text)) done()
    }
    socket.on("data", onData).on("close", done)
    socket.write(bytes, "latin1")
  })

const whole = (request: IncomingMessage) =>
  new Promise<string>((resolve) => {
    const pieces: Array<Buffer> = []
    request.on("data", (piece: Buffer) => void pieces.push(piece))
    request.on("end", () => resolve(Buffer.concat(pieces).toString("latin1")))
  })

describe("2,000 requests of any framing", () => {
  it.live("arrive as the requests that were meant, byte for byte, and nothing else does", function* () {
    const arrived: Array<{
      readonly method: string
      readonly url: string
      readonly key: string
      readonly id: string
      readonly body: string
    }> = []
    const url = yield* listening((request, response) => {
      void whole(request).then((body) => {
        const id = String(request.headers["x-id"])
        arrived.push({
          method: request.method ?? "",
          url: request.url ?? "",
          key: request.headers.authorization ?? "",
          id,
          body
        })
        response.writeHead(200, { "x-id": id, "content-type": "text/plain" }).end(`end of ${id};`)
      })
    })
    const gateway = yield* makeGateway(url)
    const port = Number(new URL(gateway.url).port)
    const random = seededRandom(20_261_127)
    const clients = Array.from({ length: 20 }, (_, client) =>
      Array.from({ length: 100 }, (_, at) => generated(random, `${client}-${at}`))
    )
    const problems: Array<string> = []
    yield* Effect.forEach(
      clients,
      (requests) =>
        Effect.promise(async () => {
          let socket = connect(port, "127.0.0.1")
          for (const request of requests) {
            if (socket.destroyed || random() < 0.1) {
              socket.destroy()
              socket = connect(port, "127.0.0.1")
            }
            const answer = await exchange(socket, request)
            const status = answer.slice(9, 12)
            // Behind a request to upgrade, Node notices what is wrong with the next one after a time only.
            if (/Connection: (?:close|Upgrade)/.test(request.bytes)) socket.destroy()
            if (request.isRefused) {
              if (status === "200") problems.push(JSON.stringify(request.bytes.slice(0, 300)))
              socket.destroy()
            } else if (status !== "200" || !answer.includes(`x-id: ${request.id}\r\n`)) {
              problems.push(`${JSON.stringify(request.bytes.slice(0, 300))}: ${JSON.stringify(answer.slice(0, 200))}`)
            }
          }
          socket.destroy()
        }),
      { concurrency: "unbounded", discard: true }
    )
    assert.deepStrictEqual(problems.slice(0, 3), [])
    const meant = clients
      .flat()
      .filter(({ isRefused }) => !isRefused)
      .map(({ body, id, key, method, path }) => ({ method, url: path, key: `Bearer ${key}`, id, body }))
    const byId = (one: { readonly id: string }, other: { readonly id: string }) => (one.id < other.id ? -1 : 1)
    assert.deepStrictEqual(arrived.toSorted(byId), meant.toSorted(byId))
  })
})

describe("a connection to a provider", () => {
  it.live("on which something arrives while it is idle is not used again", function* () {
    const answer = (text: string) =>
      `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\n\r\n${text}`
    const sockets = new Set<Socket>()
    let asked = 0
    const server = createTcpServer((socket) => {
      sockets.add(socket)
      socket.on("error", () => {})
      socket.on("data", () => {
        asked += 1
        // A second answer, which nobody asked for, behind the first one.
        socket.write(answer(`answer ${asked}`) + answer("of nobody"))
      })
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.sync(() => {
          server.close()
          for (const socket of sockets) socket.destroy()
        })
    )
    const gateway = yield* makeGateway(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    for (let turn = 1; turn <= 5; turn += 1) {
      const { body } = yield* raw(`${gateway.url}/v1/models`, [], "", "GET")
      assert.strictEqual(body, `answer ${turn}`)
    }
    assert.strictEqual(sockets.size, 5)
  })

  it.live.each([
    [
      "101, without being asked",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    ],
    ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["100 Continue, without being asked", "HTTP/1.1 100 Continue\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
    ["headers without an end", `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(100_000)}`]
  ])("that answers %s is status 502", ([, text = ""]) =>
    Effect.gen(function* () {
      const server = createTcpServer((socket) => {
        socket.on("error", () => {})
        socket.on("data", () => socket.write(text))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => void server.close())
      )
      const gateway = yield* makeGateway(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      assert.strictEqual((yield* raw(`${gateway.url}/v1/messages`, ["X-Api-Key", "k"], "{}")).status, 502)
    }).pipe(Effect.scoped)
  )
})
