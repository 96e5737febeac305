import { Effect, Exit, Scope } from "effect"
import { connect } from "node:net"
import { untilThere } from "../../support/processGroups.ts"
import { newHome, startServer, tokens } from "../../support/server.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Clients that begin and do not go on: they hold up nobody else, and not the end of the server. */

const head = (method: string, path: string, ...headers: ReadonlyArray<string>) =>
  [`${method} ${path} HTTP/1.1`, "Host: x", `Authorization: Bearer ${tokens.acme}`, ...headers, "", ""].join("\r\n")

/** A connection that sends these bytes, reads what comes unless it is `deaf`, and never closes by itself. */
const client = (url: string, bytes: string, { isDeaf = false } = {}) => {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true })
  const seen = { text: "", isOver: false }
  socket.on("error", () => {})
  for (const event of ["end", "close"]) socket.on(event, () => (seen.isOver = true))
  if (isDeaf) socket.pause()
  else socket.on("data", (data) => (seen.text += String(data)))
  socket.write(bytes)
  return { seen, leave: () => socket.destroy(), when: (look: () => boolean) => untilThere(Effect.sync(look)) }
}

const posted = (...headers: ReadonlyArray<string>) =>
  head("POST", "/v1/sessions", "Content-Type: application/json", ...headers)

const clients: Readonly<Record<string, { readonly bytes: string; readonly isDeaf?: boolean }>> = {
  "sends nothing": { bytes: "" },
  "sends half a head": { bytes: "GET /health HTTP/1.1\r\nHost: x\r\nX-" },
  "sends half a body": { bytes: `${posted("Content-Length: 100000")}{"title":` },
  "sends half a body in chunks": { bytes: `${posted("Transfer-Encoding: chunked")}5\r\n{"tit` },
  "does not read an event stream": { bytes: head("GET", "/v1/sessions/one/events"), isDeaf: true },
  "asks for an upgrade, and for events": {
    bytes: head("GET", "/v1/sessions/one/events", "Connection: upgrade", "Upgrade: websocket")
  },
  "has its answer, and keeps the connection": { bytes: head("GET", "/health") }
}

const stores = { files: { _tag: "Files" }, sqlite: { _tag: "Sqlite" } } as const

describe("a client that does not go on", () => {
  it.live.each(Object.entries(stores))(
    "delays neither the others nor the end of the server (%s)",
    function* ([, store]) {
      const scope = yield* Scope.make()
      const settings = { limits: { streams: 300, requests: 10_000 } }
      const server = yield* startServer({ home: newHome(), settings, store }).pipe(Scope.provide(scope))
      yield* Effect.promise(() => server.ask("POST", "/v1/sessions", { body: { id: "one" } }))
      const open = Object.values(clients).flatMap(({ bytes, isDeaf = false }) =>
        Array.from({ length: isDeaf ? 200 : 10 }, () => ({ isDeaf, ...client(server.url, bytes, { isDeaf }) }))
      )
      const answered = yield* Effect.promise(() => server.ask("GET", "/v1/sessions"))
      assert.strictEqual(answered.status, 200)
      assert.strictEqual(answered.headers.get("keep-alive"), "timeout=65")
      yield* Scope.close(scope, Exit.void)
      yield* untilThere(Effect.sync(() => open.every(({ isDeaf, seen }) => isDeaf || seen.isOver)))
      // The server closed them when it ended, not when their time was over.
      assert.isFalse(open.some(({ seen }) => seen.text.includes(" 408 ")))
      for (const { leave } of open) leave()
    }
  )

  it.live("cannot upgrade its connection", function* () {
    const { url } = yield* startServer({ home: newHome() })
    for (const protocol of ["websocket", "h2c", "x"]) {
      const { seen, when } = client(url, head("GET", "/health", "Connection: upgrade", `Upgrade: ${protocol}`))
      yield* when(() => seen.text.includes("\r\n\r\n"))
      assert.match(seen.text, /^HTTP\/1\.1 200 OK\r\n/)
    }
  })

  it.live("lets a bounded number of its tenant's bodies wait, and those of no other tenant", function* () {
    const { ask, url } = yield* startServer({ home: newHome(), settings: { limits: { requests: 10_000 } } })
    // The server asks for a body when it begins to read it.
    const waiting = Array.from({ length: 20 }, () =>
      client(url, posted("Content-Length: 100000", "Expect: 100-continue"))
    )
    const asked = () => waiting.filter(({ seen }) => seen.text.includes(" 100 Continue"))
    const status = (token: string) =>
      Effect.promise(async () => (await ask("POST", "/v1/sessions", { token, body: {} })).status)
    yield* untilThere(Effect.sync(() => asked().length === 16))
    assert.strictEqual(yield* status(tokens.zeta), 201)
    assert.strictEqual(asked().length, 16)
    for (const { leave } of asked().slice(0, 6)) leave()
    yield* untilThere(Effect.sync(() => asked().length === 20))
    assert.strictEqual(yield* status(tokens.acme), 201)
    for (const { leave } of waiting) leave()
  })
})
