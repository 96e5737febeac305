import { Effect, Exit, Fiber, Scope } from "effect"
import { createHash } from "node:crypto"
import type http from "node:http"
import { dialects } from "../../../src/domain/wire/Dialect.ts"
import { maxAnswerBytes } from "../../../src/layers/gateway/Upstream.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import {
  compressedClient,
  type Fault,
  makeClient,
  makeGateway,
  makeProvider,
  noted,
  raw,
  small
} from "../../support/GatewayScene.ts"
import { listening } from "../../support/loopback.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What a gateway bears: providers and clients that are silent, slow, many, large or broken. After each it works as before. */

const healthy = Effect.fnUntraced(function* (url: string) {
  const health = yield* raw(`${url}/health`, [], "", "GET")
  assert.strictEqual(health.status, 200)
})

/** A provider that answers until `fault` is set. */
const faultyProvider = Effect.fnUntraced(function* () {
  const state: { fault: Fault | undefined } = { fault: undefined }
  const provider = yield* makeProvider((request, at) => state.fault ?? noted(request, at))
  return { ...provider, state }
})

/** Writes a stream of `bytes` as fast as its reader takes it, and counts what was written. */
const stream = (response: http.ServerResponse, bytes: number, event: string, written: { bytes: number }) => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  const more = (): void => {
    while (written.bytes < bytes) {
      written.bytes += event.length
      if (!response.write(event)) return void response.once("drain", more)
    }
    response.end()
  }
  more()
}

// They wait more than they compute.
describe.concurrent.each(dialects)("a provider that sends nothing (%s)", (dialect) => {
  const silent: Fault = { write: () => {} }
  const silentAfterHeaders: Fault = {
    write: (response) => void response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
  }

  it.live("is status 504", function* () {
    const { state, url } = yield* faultyProvider()
    state.fault = silent
    const gateway = yield* makeGateway(url, { silentSeconds: 0.05 })
    const body = JSON.stringify(codecs[dialect].body(codecs[dialect].user("hello"), true))
    const answer = yield* raw(`${gateway.url}${codecs[dialect].path(true)}`, [], body)
    assert.strictEqual(answer.status, 504)
    assert.include(JSON.parse(answer.body).error.message, "nothing came for 0.05 s")
    yield* healthy(gateway.url)
  })

  it.live("after its headers breaks the client's connection, compressed or not", function* () {
    const { state, url } = yield* faultyProvider()
    const patient = yield* makeGateway(url, small)
    const { history } = yield* compressedClient(dialect, patient.url)
    state.fault = silentAfterHeaders
    const gateway = yield* makeGateway(url, { ...small, silentSeconds: 0.05 }, patient.held)
    const client = makeClient(dialect, gateway.url, true)
    client.history.push(...history)
    yield* Effect.flip(Effect.tryPromise(() => client.say("and now?", () => "")))
    const other = makeClient(dialect, gateway.url, true)
    yield* Effect.flip(Effect.tryPromise(() => other.say("hello", () => "")))
    yield* healthy(gateway.url)
  })
})

describe("an answer without an end", () => {
  const piece = "x".repeat(1_048_576)
  const endless = (type: string): Fault => ({
    write: (response) => {
      response.writeHead(200, { "content-type": type })
      const more = (): void => {
        while (!response.destroyed) if (!response.write(piece)) return void response.once("drain", more)
      }
      more()
    }
  })

  it.live.each([
    ["text/event-stream", true],
    ["application/json", false]
  ] as const)("is broken off at 64 MiB, where it has to be read (%s)", function* ([type, isStream]) {
    assert.strictEqual(maxAnswerBytes, 64 * piece.length)
    const { state, url } = yield* faultyProvider()
    const gateway = yield* makeGateway(url, small)
    const client = yield* compressedClient("anthropic", gateway.url, isStream)
    state.fault = endless(type)
    const error = yield* Effect.flip(Effect.tryPromise(() => client.say("and now?", () => "")))
    if (!isStream) assert.include(String(error.cause), "502")
    state.fault = undefined
    client.history.pop()
    yield* Effect.promise(() => client.say("and now?", () => ""))
  })
})

describe("a client that reads slowly", () => {
  it.live.each([false, true])("slows the provider down (compressed: %s)", function* (isCompressed) {
    const { state, url } = yield* faultyProvider()
    const gateway = yield* makeGateway(url, small)
    const client = isCompressed
      ? yield* compressedClient("anthropic", gateway.url)
      : makeClient("anthropic", gateway.url, true)
    const total = 64 * 1_048_576
    const written = { bytes: 0 }
    state.fault = { write: (response) => stream(response, total, `: ${"x".repeat(65_532)}\n\n`, written) }
    const history = [...client.history, ...codecs.anthropic.user("and now?")]
    const response = yield* Effect.promise(() =>
      fetch(`${gateway.url}/v1/messages`, {
        method: "POST",
        headers: { authorization: "Bearer secret-key" },
        body: JSON.stringify(codecs.anthropic.body(history, true))
      })
    )
    const reader = response.body?.getReader()
    let read = 0
    let ahead = 0
    for (;;) {
      const next = yield* Effect.promise(async () => reader?.read())
      if (next?.value === undefined) break
      read += next.value.length
      // Others have their turn before the next piece is read.
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      ahead = Math.max(ahead, written.bytes - read)
    }
    assert.strictEqual(read, written.bytes)
    // What the sockets of the system hold.
    assert.isBelow(ahead, total / 2)
  })
})

it.live("a body of 100 MB reaches the provider byte for byte", function* () {
  const url = yield* listening((request, response) => {
    const hash = createHash("sha256")
    request.on("data", (piece: Buffer) => void hash.update(piece))
    request.on("end", () => response.end(hash.digest("hex")))
  })
  const gateway = yield* makeGateway(url)
  const body = `{"messages":[{"role":"user","content":"${"0123456789".repeat(10_000_000)}"}]}`
  const answer = yield* raw(`${gateway.url}/v1/messages`, ["Transfer-Encoding", "chunked"], body)
  assert.strictEqual(answer.body, createHash("sha256").update(body).digest("hex"))
})

describe("two clients in one conversation", () => {
  it.live.each(dialects)("get their own answers, and send the same beginning (%s)", function* (dialect) {
    const provider = yield* makeProvider(({ text }) => [
      { kind: "text", text: text.includes("from the other") ? "To the other." : "To the first." }
    ])
    const gateway = yield* makeGateway(provider.url, small)
    const client = yield* compressedClient(dialect, gateway.url)
    const other = makeClient(dialect, gateway.url, true)
    other.history.push(...client.history)
    const [one, two] = yield* Effect.all(
      [
        Effect.promise(() => client.say("from the first", () => "")),
        Effect.promise(() => other.say("from the other", () => ""))
      ],
      { concurrency: 2 }
    )
    assert.deepStrictEqual([one.words, two.words], ["To the first.", "To the other."])
    const [a = [], b = []] = provider.requests.slice(-2).map(({ text }) => codecs[dialect].messages(text))
    assert.deepStrictEqual(a.slice(0, -1), b.slice(0, -1))
    assert.isBelow(a.length, client.history.length)
  })
})

it.live("a gateway that stops lets a running answer end", function* () {
  let finish: () => void = () => {}
  const url = yield* listening((request, response) => {
    request.resume()
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write("data: first\n\n")
    finish = () => void response.end("data: last\n\n")
  })
  const scope = yield* Scope.make()
  const gateway = yield* Scope.provide(makeGateway(url), scope)
  const response = yield* Effect.promise(() => fetch(`${gateway.url}/v1/messages`, { method: "POST", body: "{}" }))
  const stopping = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
  // New connections are refused.
  yield* Effect.flip(Effect.tryPromise(() => fetch(`${gateway.url}/health`))).pipe(Effect.retry({ times: 1_000 }))
  finish()
  assert.strictEqual(yield* Effect.promise(() => response.text()), "data: first\n\ndata: last\n\n")
  yield* Fiber.join(stopping)
})
