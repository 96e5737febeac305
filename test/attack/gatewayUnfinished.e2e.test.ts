import { Deferred, Effect, Exit } from "effect"
import { Buffer } from "node:buffer"
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { gzipSync } from "node:zlib"
import { program } from "../cli/program.ts"
import { makeGateway, metricsToken, raw } from "../support/GatewayScene.ts"
import { newFolder } from "../support/paths.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** Clients that never finish a request or never read an answer, and providers that lie. */

const json = `{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`

const head = (lines: ReadonlyArray<string>) => `HTTP/1.1 200 OK\r\n${lines.join("\r\n")}\r\n\r\n`

const stream = head(["Content-Type: text/event-stream", "Transfer-Encoding: chunked"])

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

/** Writes as long as the other side reads, a few kilobytes at a time. */
const endless = (socket: Socket, text: string): void => {
  const piece = text.repeat(Math.ceil(4_000 / text.length))
  const more = (): void => {
    if (socket.destroyed) return
    if (socket.write(piece)) setTimeout(more, 5)
    else socket.once("drain", more)
  }
  more()
}

/** What a provider does in place of answering. */
const lies: ReadonlyArray<(socket: Socket) => void> = [
  () => {},
  (socket) =>
    void socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
  (socket) => endless(socket, "HTTP/1.1 102 Processing\r\n\r\n"),
  (socket) => endless(socket, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
  (socket) => endless(socket, "x".repeat(1_000)),
  (socket) => {
    socket.write("HTTP/1.1 200 OK\r\n")
    endless(socket, `X-Header: ${"y".repeat(1_000)}\r\n`)
  },
  (socket) => void socket.write(head(["Content-Type: application/json", "Content-Length: 99999999999"]) + json),
  (socket) => {
    socket.write(head(["Content-Type: application/json", "Transfer-Encoding: chunked"]))
    endless(socket, chunk(" ".repeat(60_000)))
  },
  (socket) => {
    socket.write(stream)
    endless(socket, chunk(`data: ${"x".repeat(60_000)}`))
  },
  (socket) => {
    socket.write(stream)
    endless(socket, chunk("x"))
  },
  (socket) => {
    socket.write(stream + chunk("data: {}\n\n"))
    endless(socket, `1;${"e".repeat(1_000)}\r\nx\r\n`)
  },
  (socket) => {
    const bomb = gzipSync(Buffer.alloc(4_000_000)).toString("latin1")
    socket.write(head(["Content-Type: application/json", "Content-Encoding: gzip", `Content-Length: ${bomb.length}`]))
    socket.write(bomb, "latin1")
  },
  (socket) => void socket.end(head(["Content-Type: application/json", "Content-Length: 1000"]) + json),
  (socket) => {
    const absurd = json.replace(`"input_tokens":1`, `"input_tokens":1e300`)
    socket.write(head(["Content-Type: application/json", `Content-Length: ${absurd.length}`]) + absurd)
  }
]

/** A provider that lies as the path says: `/v1/messages?lie=3`. */
const lyingProvider = Effect.fnUntraced(function* () {
  const sockets = new Set<Socket>()
  const lying = yield* Deferred.make<void>()
  const lied = yield* Deferred.make<void>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("data", (piece) => {
      if (!piece.includes("HTTP/1.1\r\n")) return
      const [, lie] = /lie=(\d+)/.exec(piece.toString("latin1")) ?? []
      if (lie === undefined) {
        socket.write(head(["Content-Type: application/json", `Content-Length: ${json.length}`]) + json)
        return
      }
      lies[Number(lie) % lies.length]?.(socket)
      Deferred.doneUnsafe(lying, Exit.void)
      socket.once("close", () => Deferred.doneUnsafe(lied, Exit.void))
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
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, lieHasBegun: Deferred.await(lying), lieIsOver: Deferred.await(lied) }
})

const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`

const request = (target: string, length: number) =>
  `POST ${target} HTTP/1.1\r\nHost: x\r\nX-Api-Key: k\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`

/** What a slow client sends: it does no more after it. */
const slow: ReadonlyArray<string> = [
  "",
  "POST /v1/messages HTTP/1.1\r\nHost: x\r\n",
  `${request("/v1/messages", 60_000_000)}${" ".repeat(900_000)}`,
  `${request("/v1/messages", 600_000_000)}${" ".repeat(900_000)}`,
  `${request("/v1/files", 60_000_000)}${" ".repeat(300_000)}`,
  `${request("/v1/messages", 1_000_000).replace("Content-Length: 1000000", "Transfer-Encoding: chunked")}${"1\r\n \r\n".repeat(30_000)}`,
  `${request("/v1/messages?lie=8", body.length)}${body}`,
  `GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n`
]

/** Connects a client that sends this, and never reads. */
const slowClient = (port: number, text: string) =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)))
      socket.on("error", () => {})
      socket.pause()
      socket.write(text)
    }),
    (socket) => Effect.sync(() => void socket.destroy())
  )

const asked = (url: string, target = "/v1/messages") =>
  raw(`${url}${target}`, ["X-Api-Key", "k", "Content-Length", String(body.length)], body)

/** Starts the built gateway, in a process of its own. */
const started = Effect.fnUntraced(function* (upstream: string) {
  const { bundle } = yield* program
  const home = newFolder("gateway-")
  return yield* Effect.acquireRelease(
    Effect.callback<{ readonly pid: number; readonly url: string; readonly end: () => void }>((resume) => {
      const child = spawn(
        process.execPath,
        [
          bundle,
          "gateway",
          "--port",
          "0",
          "--json",
          "--upstream",
          `anthropic=${upstream}`,
          "--upstream",
          `openai=${upstream}`
        ],
        { env: { ...process.env, PALIMPSEST_HOME: home }, stdio: ["ignore", "pipe", "ignore"] }
      )
      child.stdout.once("data", (piece: Buffer) => {
        const { url } = JSON.parse(piece.toString()) as { readonly url: string }
        resume(Effect.succeed({ pid: child.pid ?? 0, url, end: () => void child.kill("SIGKILL") }))
      })
    }),
    ({ end }) => Effect.sync(end)
  )
})

const peakMegabytes = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024

describe.skipIf(!existsSync("/proc/self/status"))("200 slow clients and 28 lying providers at once", () => {
  it.live("take little memory, and the others are served", function* () {
    const { url } = yield* lyingProvider()
    const gateway = yield* started(url)
    const port = Number(new URL(gateway.url).port)
    yield* Effect.forEach(
      Array.from({ length: 200 }, (_, at) => slow[at % slow.length] ?? ""),
      (text) => slowClient(port, text),
      { concurrency: 20 }
    )
    yield* Effect.forEach(
      Array.from({ length: 28 }, (_, at) => at),
      (lie) => Effect.forkScoped(Effect.ignore(asked(gateway.url, `/v1/messages?lie=${lie}`)))
    )
    const large = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"${"word ".repeat(200_000)}"}]}`
    for (let turn = 0; turn < 8; turn += 1) {
      assert.strictEqual((yield* asked(gateway.url)).status, 200)
      const headers = ["X-Api-Key", "other", "Content-Length", String(large.length)]
      assert.strictEqual((yield* raw(`${gateway.url}/v1/messages`, headers, large)).status, 200)
    }
    // 230 MB on a quiet machine; on a busy one V8 collects later.
    assert.isBelow(peakMegabytes(gateway.pid), 400)
  })
})

it.live.each(slow.map((text, at) => ({ at, text, what: text.slice(0, 60) })))(
  "a client that stops is disconnected: $at $what",
  ({ text }) =>
    Effect.gen(function* () {
      const { lieIsOver, url } = yield* lyingProvider()
      const gateway = yield* makeGateway(url, {
        clientSeconds: 0.3,
        headersSeconds: 0.3,
        maxBodyBytes: 1_000_000_000
      })
      const socket = yield* slowClient(Number(new URL(gateway.url).port), text)
      // A client that does not read notices nothing.
      if (text.includes("lie=")) yield* lieIsOver
      else yield* Effect.callback<void>((resume) => void socket.once("close", () => resume(Effect.void)).resume())
      assert.strictEqual((yield* asked(gateway.url)).status, 200)
    }).pipe(Effect.scoped)
)

it.live.each([
  ["nothing", json.replace(/,"usage".*$/, "}"), 2],
  ["an absurd number of tokens", json.replace(`"input_tokens":1`, `"input_tokens":1e300`), 2],
  ["as it should", json.replace(`"input_tokens":1`, `"input_tokens":900`), 1]
] as const)("a provider that counts %s leaves the budget usable, and used", ([, answer, requests]) =>
  Effect.gen(function* () {
    const server = createServer((socket) => {
      socket.on("error", () => {})
      socket.on("data", () => {
        socket.write(head(["Content-Type: application/json", `Content-Length: ${answer.length}`]) + answer)
      })
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () => Effect.sync(() => void server.close())
    )
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    // A request and its answer are about fifty tokens by their size.
    const gateway = yield* makeGateway(url, {}, new Map(), { tokens: 60 })
    for (let turn = 0; turn < requests; turn += 1) assert.strictEqual((yield* asked(gateway.url)).status, 200)
    assert.strictEqual((yield* asked(gateway.url)).status, 429)
  }).pipe(Effect.scoped)
)

const metrics = ({ url }: { readonly url: string }, headers: ReadonlyArray<string>) =>
  raw(`${url}/metrics`, headers, "", "GET")

const operator = ["Authorization", `Bearer ${metricsToken.text}`]

/** The tokens that the gateways of this process have charged. */
const charged = (gateway: { readonly url: string }) =>
  Effect.map(metrics(gateway, operator), ({ body: text }) =>
    [...text.matchAll(/^palimpsest_gateway_tokens_total\S* (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
  )

it.live("a client that leaves before the end of an answer has used what it asked for", function* () {
  const { url, lieHasBegun } = yield* lyingProvider()
  const gateway = yield* makeGateway(url, {}, new Map(), { tokens: 20 })
  const port = Number(new URL(gateway.url).port)
  for (const lie of [0, 6]) {
    const before = yield* charged(gateway)
    const socket = yield* slowClient(port, request(`/v1/messages?lie=${lie}`, body.length) + body)
    if (lie === 6)
      yield* Effect.callback<void>((resume) => void socket.once("data", () => resume(Effect.void)).resume())
    else yield* lieHasBegun
    socket.destroy()
    yield* Effect.repeat(charged(gateway), { until: (now) => now > before })
  }
  assert.strictEqual((yield* asked(gateway.url)).status, 429)
})

it.live("the metrics are for the operator alone", function* () {
  const gateway = yield* makeGateway("http://127.0.0.1:9")
  assert.strictEqual((yield* metrics(gateway, [])).status, 401)
  assert.strictEqual((yield* metrics(gateway, ["Authorization", "Bearer other"])).status, 401)
  assert.strictEqual((yield* metrics(gateway, ["X-Api-Key", metricsToken.text])).status, 401)
  assert.strictEqual((yield* metrics(gateway, operator)).status, 200)
})
