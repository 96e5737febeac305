import { Effect, Schedule, Scope } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { connect } from "node:net"
import { join } from "node:path"
import type { ServeSettings } from "../../../src/domain/serve/ServeSettings.ts"
import { untilThere } from "../../support/processGroups.ts"
import { eventsOf, newHome, startServer, tokens } from "../../support/server.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** One server, and everything that a client can do wrong. */

/** The JSON of an answer. */
const json = <A>(asking: () => Promise<Response>): Effect.Effect<A> =>
  Effect.promise(async (): Promise<A> => JSON.parse(await (await asking()).text()))

const home = newHome()
const one = "/v1/sessions/one"

const started = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const server = yield* startServer({
        home,
        settings: {
          limits: { streams: 6 },
          tenants: { zeta: { limits: { sessions: 1, tokens: 1 } } },
          bodyBytes: 100_000
        },
        answers: (asked) => (JSON.stringify(asked.contents).includes("hang") ? { _tag: "Hang" } : "the answer of acme")
      })
      const { ask } = server
      yield* Effect.promise(async () => {
        await ask("POST", "/v1/sessions", { body: { id: "one", title: "Acme's plans" } })
        await (
          await ask("POST", "/v1/sessions/one/messages", { body: { id: "m1", text: "the secret of acme" } })
        ).text()
        await ask("POST", "/v1/sessions", { body: { id: "busy" } })
        await ask("POST", "/v1/sessions", { body: { id: "zetas" }, token: tokens.zeta })
      })
      const busy = yield* Effect.promise(() =>
        ask("POST", "/v1/sessions/busy/messages", { body: { id: "long", text: "hang" } })
      )
      yield* Effect.promise(() => busy.body?.cancel() ?? Promise.resolve())
      const ledger = yield* json<{ readonly entries: ReadonlyArray<{ readonly handles: ReadonlyArray<string> }> }>(() =>
        ask("GET", "/v1/sessions/one/ledger")
      )
      return { ...server, handle: ledger.entries[1]?.handles[0] ?? "" }
    }).pipe(Effect.provideService(Scope.Scope, Effect.runSync(Scope.make())))
  )
)

interface Case {
  readonly name: string
  readonly method?: string
  readonly place: string | ((handle: string) => string)
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly token?: string
  readonly status: number
  readonly tag: string
  /** Words that the message has. */
  readonly says?: string
}

const post = (place: string, body: unknown = {}) => ({ method: "POST", place, body })
const send = { method: "POST", place: `${one}/messages` }
const closed = { status: 401, tag: "Unauthorized" }
const busy = { status: 409, tag: "Conflict" }
const none = { status: 404, tag: "NotFound" }
const bad = { status: 400, tag: "BadRequest" }
const deep = `{"text":${"[".repeat(20_000)}${"]".repeat(20_000)}}`

const cases: ReadonlyArray<Case> = [
  // Tokens.
  { name: "no token", place: one, token: "", ...closed },
  { name: "a wrong token", place: one, token: "wrong", ...closed },
  { name: "the beginning of a token", place: one, token: "token-of-acm", ...closed },
  { name: "a longer token", place: one, token: "token-of-acmee", ...closed },
  { name: "another scheme", place: one, token: "", headers: { authorization: `Basic ${tokens.acme}` }, ...closed },
  { name: "a scheme without a token", place: one, token: "", headers: { authorization: "Bearer" }, ...closed },
  { name: "a token in the query", place: `${one}?token=${tokens.acme}`, token: "", ...closed },
  { name: "a hash in the place of its token", place: one, token: "sha256:00", ...closed },
  { name: "no token, for a session that nobody has", place: "/v1/sessions/none", token: "", ...closed },
  { name: "no token, for a message", ...send, body: { text: "x" }, token: "", ...closed },
  { name: "no token, for the metrics", place: "/metrics", token: "", ...closed },
  { name: "another tenant's metrics", place: "/metrics", ...none },

  // Other tenants.
  { name: "another tenant's session", place: one, token: tokens.zeta, ...none },
  { name: "the user's view of a tenant's session", place: one, token: tokens.local, ...none },
  { name: "another tenant's ledger", place: `${one}/ledger`, token: tokens.zeta, ...none },
  { name: "another tenant's export", place: `${one}/export`, token: tokens.zeta, ...none },
  { name: "another tenant's events", place: `${one}/events`, token: tokens.zeta, ...none },
  { name: "the events of another tenant's message", place: `${one}/messages/m1/events`, token: tokens.zeta, ...none },
  { name: "a message to another tenant's session", ...send, body: { text: "x" }, token: tokens.zeta, ...none },
  { name: "a fork of another tenant's session", ...post(`${one}/fork`), token: tokens.local, ...none },
  {
    name: "a cancel of another tenant's turn",
    method: "POST",
    place: "/v1/sessions/busy/cancel",
    token: tokens.zeta,
    ...none
  },
  { name: "a compression of another tenant's session", ...post(`${one}/compress`), token: tokens.zeta, ...none },
  { name: "a delete of another tenant's session", method: "DELETE", place: one, token: tokens.zeta, ...none },
  {
    name: "another tenant's handle, in its session",
    place: (handle) => `${one}/recall/${handle}`,
    token: tokens.zeta,
    ...none
  },
  {
    name: "another tenant's handle, in an own session",
    place: (handle) => `/v1/sessions/zetas/recall/${handle}`,
    token: tokens.zeta,
    ...none
  },

  // Names.
  { name: "a session that nobody has", place: "/v1/sessions/none", ...none },
  { name: "a handle that nobody has", place: `${one}/recall/h_aaaaaaaaaa`, ...none },
  { name: "a handle that is none", place: `${one}/recall/nonsense`, ...bad },
  { name: "a message that nobody sent", place: `${one}/messages/m9/events`, ...none },
  { name: "an entry that the session does not have", ...post(`${one}/fork`, { at: "e99" }), ...none },
  { name: "a path in an id", place: "/v1/sessions/..%2F..%2Fetc%2Fpasswd", ...bad },
  { name: "a path in an id with backslashes", place: "/v1/sessions/..%5C..%5Cetc", ...bad },
  {
    name: "a path of a tenant in an id",
    place: "/v1/sessions/..%2F..%2Ftenants%2Facme%2Fsessions%2Fone",
    token: tokens.local,
    ...bad
  },
  { name: "a null in an id", place: "/v1/sessions/one%00", ...bad },
  { name: "an id that is too long", place: `/v1/sessions/${"a".repeat(65)}`, ...bad },
  { name: "a space in an id", place: "/v1/sessions/acme%20one", token: tokens.zeta, ...bad },
  { name: "a broken percent sign", place: "/v1/sessions/%E0%A4%A", status: 404, tag: "NotFound" },
  { name: "a path in a new session's id", ...post("/v1/sessions", { id: "../x" }), ...bad },
  { name: "a path in a message's id", ...send, body: { id: "../x", text: "x" }, ...bad },
  { name: "a session that exists already", ...post("/v1/sessions", { id: "one" }), ...busy },
  { name: "an address that does not exist", place: "/v2", ...none },
  { name: "a file of the server", place: "/settings.json", ...none },
  { name: "a method that does not exist", method: "PUT", place: one, body: {}, ...none },

  // Bodies.
  { name: "no body", ...send, ...bad },
  { name: "malformed JSON", ...send, body: `{"text": "x"`, ...bad, says: "JSON" },
  { name: "a body that is a list", ...send, body: [], ...bad },
  { name: "a body that is null", ...send, body: "null", ...bad },
  { name: "a message without text", ...send, body: { id: "m2" }, ...bad, says: "text" },
  { name: "an empty message", ...send, body: { text: "" }, ...bad },
  { name: "a text that is a number", ...send, body: { text: 7 }, ...bad },
  { name: "JSON that is nested deeply", ...send, body: deep, ...bad },
  {
    name: "a body of another type",
    ...send,
    body: "<a/>",
    headers: { "content-type": "text/xml" },
    status: 415,
    tag: "UnsupportedBody",
    says: "JSON"
  },
  { name: "a body that is too large", ...send, body: { text: "x".repeat(200_000) }, status: 413, tag: "TooLarge" },
  { name: "a word for a number", place: "/v1/sessions?limit=many", ...bad, says: "limit" },
  { name: "a negative number", place: `${one}?messages=-1`, ...bad },
  { name: "a format that does not exist", place: `${one}/export?format=exe`, ...bad },
  { name: "lines that are none", place: (handle) => `${one}/recall/${handle}?lines=a-b`, ...bad },
  { name: "a pattern that is none", place: (handle) => `${one}/recall/${handle}?grep=(`, ...bad, says: "grep" },
  {
    name: "a pattern that is not supported",
    place: (handle) => `${one}/recall/${handle}?grep=${encodeURIComponent("(?=a)b")}`,
    ...bad
  },
  { name: "a search without a pattern", place: `${one}/recall`, ...bad, says: "pattern" },

  // State and limits.
  {
    name: "a message to a session that answers another",
    ...post("/v1/sessions/busy/messages", { text: "x" }),
    ...busy,
    says: "long"
  },
  {
    name: "other words with the id of a message that runs",
    ...post("/v1/sessions/busy/messages", { id: "long", text: "x" }),
    ...busy,
    says: "other words"
  },
  { name: "a compression while a turn runs", ...post("/v1/sessions/busy/compress"), ...busy },
  { name: "a delete while a turn runs", method: "DELETE", place: "/v1/sessions/busy", ...busy },
  {
    name: "a session too many",
    ...post("/v1/sessions"),
    token: tokens.zeta,
    status: 429,
    tag: "TooMany",
    says: "1 stored sessions"
  },
  { name: "a model that does not fit", ...post("/v1/sessions", { model: "x".repeat(300) }), ...bad }
]

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object } | undefined>>>>
}
const openApi = Effect.runSync(
  Effect.cached(Effect.flatMap(started, ({ ask }) => json<OpenApi>(() => ask("GET", "/openapi.json"))))
)

/** The statuses that the OpenAPI document has for a request; undefined for an address that it does not have. */
const documentedAt = Effect.fnUntraced(function* (method: string, place: string) {
  const { paths } = yield* openApi
  const [, operations] =
    Object.entries(paths).find(([template]) =>
      new RegExp(`^${template.replace(/\/$/, "/?").replace(/\{\w+\}/g, "[^/]+")}$`).test(place)
    ) ?? []
  const operation = operations?.[method.toLowerCase()]
  return operation === undefined ? undefined : Object.keys(operation.responses)
})

describe("bad input", () => {
  for (const { body, headers, method = "GET", name, place, says, status, tag, token } of cases) {
    it.live(name, function* () {
      const { ask, handle } = yield* started
      const response = yield* Effect.promise(() =>
        ask(method, typeof place === "string" ? place : place(handle), {
          body,
          ...(headers === undefined ? {} : { headers }),
          ...(token === undefined ? {} : { token })
        })
      )
      const text = yield* Effect.promise(() => response.text())
      assert.strictEqual(response.status, status, text)
      const answer: Record<string, unknown> = JSON.parse(text)
      assert.strictEqual(answer["_tag"], tag)
      assert.isString(answer["message"])
      if (says !== undefined) assert.include(text, says)
      assert.notInclude(text, home)
      assert.notInclude(text, "node:")
      if (token !== undefined)
        for (const secret of ["secret", "plans", "answer of acme"]) assert.notInclude(text, secret)
      assert.strictEqual(response.headers.get("x-content-type-options"), "nosniff")
      const documented = yield* documentedAt(method, new URL(response.url).pathname)
      if (documented !== undefined) assert.include(documented, String(status))
    })
  }

  it.live("a tenant that has spent its tokens is told when it may go on", function* () {
    const { ask } = yield* started
    const send = (token: string, place: string) =>
      Effect.promise(async () => {
        const response = await ask("POST", `${place}/messages`, { token, body: { text: "Hello" } })
        const wait = response.headers.get("retry-after")
        return { status: response.status, text: await response.text(), wait }
      })
    assert.strictEqual((yield* send(tokens.zeta, "/v1/sessions/zetas")).status, 200)
    const refused = yield* send(tokens.zeta, "/v1/sessions/zetas")
    assert.strictEqual(refused.status, 429, refused.text)
    assert.include(refused.text, "tokens")
    assert.isAbove(Number(JSON.parse(refused.text).retryAfter), 0)
    assert.strictEqual(refused.wait, String(JSON.parse(refused.text).retryAfter))
  })

  it.live("a tenant's requests in a minute are bounded, the other tenants' are not", function* () {
    const settings = { tenants: { zeta: { limits: { requests: 3 } } } }
    const { ask } = yield* startServer({ home: newHome(), settings })
    const statuses = (token: string) =>
      Effect.promise(async () => {
        const made: Array<number> = []
        for (let asked = 0; asked < 5; asked += 1) made.push((await ask("GET", "/v1/sessions", { token })).status)
        return made
      })
    assert.deepStrictEqual(yield* statuses(tokens.zeta), [200, 200, 200, 429, 429])
    assert.deepStrictEqual(yield* statuses(tokens.acme), [200, 200, 200, 200, 200])
  })

  it.live("a list shows the tenant's sessions alone", function* () {
    const { ask } = yield* started
    const idsOf = (token: string) =>
      Effect.map(
        json<{ readonly sessions: ReadonlyArray<{ readonly id: string }> }>(() =>
          ask("GET", "/v1/sessions?totals=true", { token })
        ),
        ({ sessions }) => sessions.map(({ id }) => id).sort()
      )
    assert.deepStrictEqual(yield* idsOf(tokens.acme), ["busy", "one"])
    assert.deepStrictEqual(yield* idsOf(tokens.zeta), ["zetas"])
    assert.deepStrictEqual(yield* idsOf(tokens.local), [])
  })

  it.live("a list comes in pages, and is searched by title, words and metadata", function* () {
    const { ask } = yield* started
    for (const id of ["p1", "p2", "p3"]) {
      yield* Effect.promise(() =>
        ask("POST", "/v1/sessions", { body: { id, title: `Page ${id}` }, token: tokens.local })
      )
    }
    const renamed = yield* json<{ readonly title: string }>(() =>
      ask("PATCH", "/v1/sessions/p2", { body: { title: "Invoices of May" }, token: tokens.local })
    )
    assert.strictEqual(renamed.title, "Invoices of May")
    type Page = {
      readonly sessions: ReadonlyArray<{ readonly id: string }>
      readonly more: number
      readonly next: string
    }
    const page = (query: string) => json<Page>(() => ask("GET", `/v1/sessions?${query}`, { token: tokens.local }))
    const first = yield* page("limit=2")
    const second = yield* page(`limit=2&cursor=${encodeURIComponent(first.next)}`)
    assert.deepStrictEqual([first.more, second.more, second.next], [1, 0, null])
    assert.deepStrictEqual([...first.sessions, ...second.sessions].map(({ id }) => id).sort(), ["p1", "p2", "p3"])
    assert.deepStrictEqual(
      (yield* page("search=may%20INVOICES")).sessions.map(({ id }) => id),
      ["p2"]
    )
    yield* Effect.promise(() =>
      ask("PATCH", "/v1/sessions/p3", { body: { metadata: { customer: "Wilma" } }, token: tokens.local })
    )
    assert.deepStrictEqual(
      (yield* page("search=wilma%20page")).sessions.map(({ id }) => id),
      ["p3"]
    )
    const made = yield* Effect.promise(() => ask("GET", "/v1/sessions?cursor=made-up", { token: tokens.local }))
    assert.strictEqual(made.status, 400)
    assert.strictEqual(
      (yield* Effect.promise(() => ask("PATCH", "/v1/sessions/p2", { body: { title: "x" } }))).status,
      404
    )
    for (const id of ["p1", "p2", "p3"]) {
      yield* Effect.promise(() => ask("DELETE", `/v1/sessions/${id}`, { token: tokens.local }))
    }
  })

  it.live("a body of 100 MB is refused before it is read", function* () {
    const { url } = yield* started
    for (const length of ["content-length", "chunked"] as const) {
      const { status, sent } = yield* Effect.promise(
        () =>
          new Promise<{ status: number | undefined; sent: number }>((resolve) => {
            const piece = Buffer.alloc(65_536, 32)
            let sent = 0
            const asking = request(`${url}/v1/sessions/one/messages`, {
              method: "POST",
              headers: {
                authorization: `Bearer ${tokens.acme}`,
                "content-type": "application/json",
                ...(length === "chunked" ? {} : { "content-length": 100_000_000 })
              }
            })
            asking.on("response", (response) => {
              asking.destroy()
              resolve({ status: response.statusCode, sent })
            })
            asking.on("error", () => resolve({ status: undefined, sent }))
            const write = (): void => {
              if (asking.destroyed || sent > 100_000_000) return
              sent += piece.length
              asking.write(piece, () => setImmediate(write))
            }
            write()
          })
      )
      assert.strictEqual(status, 413)
      assert.isBelow(sent, 50_000_000)
    }
  })

  it.live("a request that is not HTTP is closed", function* () {
    const { url } = yield* started
    const answer = yield* Effect.promise(
      () =>
        new Promise<string>((resolve) => {
          let text = ""
          const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write("NONSENSE\r\n\r\n"))
          socket.on("data", (data) => (text += String(data))).on("close", () => resolve(text))
        })
    )
    assert.match(answer, /^HTTP\/1\.1 400 /)
  })
})

describe("the refusals of each endpoint", () => {
  interface Operation {
    readonly method: string
    readonly place: string
    readonly statuses: ReadonlyArray<string>
    readonly hasBody: boolean
    readonly isOpen: boolean
  }
  const operations = Effect.map(
    json<{ readonly paths: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, object>>>>>> }>(
      async () => (await Effect.runPromise(started)).ask("GET", "/openapi.json")
    ),
    ({ paths }) =>
      Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { requestBody, responses = {}, security }]): Operation => ({
          method: method.toUpperCase(),
          place: path.replace("{message}", "m1").replace("{handle}", "h_aaaaaaaaaaaa"),
          statuses: Object.keys(responses),
          hasBody: requestBody !== undefined,
          isOpen: JSON.stringify(security) === "[]"
        }))
      )
  )

  /** Asks, and checks the form of the refusal and that it is documented. */
  const refused = Effect.fnUntraced(function* (
    { method, place, statuses }: Operation,
    status: number,
    server: Effect.Success<ReturnType<typeof startServer>>,
    { id = "none", ...options }: Parameters<typeof server.ask>[2] & { readonly id?: string } = {}
  ) {
    const name = `${method} ${place}: ${status}`
    const response = yield* Effect.promise(() => server.ask(method, place.replace("{id}", id), options))
    const text = yield* Effect.promise(() => response.text())
    assert.strictEqual(response.status, status, `${name}, ${text}`)
    const { _tag, message }: Record<string, unknown> = JSON.parse(text)
    assert.isString(_tag, name)
    assert.isString(message, name)
    assert.include(statuses, String(status), name)
    if (status === 429 || status === 503) assert.isAbove(Number(response.headers.get("retry-after")), 0, name)
  })

  const bodies: Readonly<Record<string, object>> = { messages: { text: "x" }, fork: {}, compress: {} }
  const bodyOf = ({ hasBody, method, place }: Operation): { readonly body?: object } =>
    hasBody
      ? {
          body:
            method === "PATCH"
              ? { title: "x" }
              : place.includes("/calls/")
                ? { result: "x" }
                : (bodies[place.split("/").at(-1) ?? ""] ?? {})
        }
      : {}
  const withQuery = (one: Operation) =>
    one.place.endsWith("/recall") ? { ...one, place: `${one.place}?pattern=x` } : one

  it.live("have the form and the status of the document", function* () {
    const server = yield* started
    for (const one of yield* operations) {
      if (one.isOpen) continue
      yield* refused(one, 401, server, { ...bodyOf(one), token: "wrong" })
      if (one.place === "/metrics") yield* refused(one, 404, server)
      if (one.place.includes("{id}")) {
        yield* refused(one, 400, server, { ...bodyOf(one), id: "a%20b" })
        yield* refused(withQuery(one), 404, server, bodyOf(one))
      }
      if (one.hasBody) {
        yield* refused(one, 400, server, { body: "[" })
        yield* refused(one, 413, server, { body: { text: "x".repeat(200_000) } })
        yield* refused(one, 415, server, { body: "<a/>", headers: { "content-type": "text/xml" } })
      }
    }
  })

  it.live("above a limit, and where the store fails, too", function* () {
    const limited = yield* startServer({ home: newHome(), settings: { limits: { requests: 1 } } })
    yield* Effect.promise(() => limited.ask("GET", "/v1/sessions"))
    yield* Effect.promise(() => limited.ask("GET", "/v1/sessions", { token: tokens.local }))
    const broken = newHome()
    const failing = yield* startServer({ home: broken })
    // A file in the place of the folder of the tenants.
    writeFileSync(join(broken, "tenants"), "")
    for (const one of yield* operations) {
      if (one.isOpen) continue
      yield* refused(one, 429, limited, bodyOf(one))
      if (one.place !== "/metrics") yield* refused(withQuery(one), 502, failing, bodyOf(one))
    }
  })
})

describe("streams", () => {
  it.live("a client that disconnects finds its turn again, from the event after the last one", function* () {
    const { ask } = yield* started
    const events = eventsOf(
      yield* Effect.promise(async () => (await ask("GET", "/v1/sessions/one/messages/m1/events")).text())
    )
    assert.deepStrictEqual(
      events.map(({ event }) => event._tag),
      ["TurnStarted", "ModelInfo", "Content", "Finished", "TurnEnded"]
    )
    const rest = yield* Effect.promise(async () =>
      (
        await ask("GET", "/v1/sessions/one/messages/m1/events", { headers: { "last-event-id": events[2]?.id ?? "" } })
      ).text()
    )
    assert.deepStrictEqual(eventsOf(rest), events.slice(3))
  })

  it.live("the same message is answered once", function* () {
    const { ask } = yield* started
    const again = yield* Effect.promise(async () =>
      (await ask("POST", "/v1/sessions/one/messages", { body: { id: "m1", text: "the secret of acme" } })).text()
    )
    assert.strictEqual(eventsOf(again).at(-1)?.event._tag, "TurnEnded")
    const view = yield* json<{ readonly totals: { readonly messages: number } }>(() => ask("GET", one))
    assert.strictEqual(view.totals.messages, 2)
  })

  it.live("a message may bring media, whose kind and bytes are checked", function* () {
    const { ask } = yield* started
    const status = (media: object) =>
      Effect.promise(async () => {
        const answer = await ask("POST", `${one}/messages`, { body: { text: "What is this?", media: [media] } })
        await answer.text()
        return answer.status
      })
    assert.strictEqual(yield* status({ mimeType: "application/zip", data: "AAAA" }), 400)
    assert.strictEqual(yield* status({ mimeType: "image/png", data: "no base64" }), 400)
  })

  it.live("a message with the id of another one is refused", function* () {
    const { ask } = yield* started
    const other = yield* Effect.promise(() =>
      ask("POST", `${one}/messages`, { body: { id: "m1", text: "the secret" } })
    )
    assert.strictEqual(other.status, 409)
  })

  it.live("readers that do not read delay no other client, and are limited in number", function* () {
    const { ask } = yield* started
    const abort = new AbortController()
    const statuses: Array<number> = []
    for (let index = 0; index < 7; index += 1) {
      const response = yield* Effect.promise(() => ask("GET", `${one}/events`, { signal: abort.signal }))
      statuses.push(response.status)
    }
    const answered = yield* Effect.promise(() => ask("GET", "/v1/sessions"))
    abort.abort()
    assert.deepStrictEqual(statuses, [200, 200, 200, 200, 200, 200, 429])
    assert.strictEqual(answered.status, 200)
    // The server notices after a moment that they have gone, and accepts others.
    yield* Effect.promise(async () => {
      const next = new AbortController()
      const { status } = await ask("GET", `${one}/events`, { signal: next.signal })
      next.abort()
      return status
    }).pipe(Effect.repeat({ until: (status) => status === 200, schedule: Schedule.spaced(20) }))
  })

  it.live("a turn is cancelled when its client disconnects, if the client asked for that", function* () {
    const { ask } = yield* started
    yield* Effect.promise(() => ask("POST", "/v1/sessions", { body: { id: "left" } }))
    const abort = new AbortController()
    yield* Effect.promise(() =>
      ask("POST", "/v1/sessions/left/messages", {
        body: { id: "m1", text: "hang", onDisconnect: "cancel" },
        signal: abort.signal
      })
    )
    abort.abort()
    const events = eventsOf(
      yield* Effect.promise(async () => (await ask("GET", "/v1/sessions/left/messages/m1/events")).text())
    )
    assert.include(JSON.stringify(events.at(-1)), `"status":"cancelled"`)
  })

  it.live("a running turn is cancelled, and the session deleted with its streams", function* () {
    const { ask } = yield* started
    const watching = yield* Effect.promise(() => ask("GET", "/v1/sessions/busy/events"))
    const cancelled = yield* Effect.promise(async () => (await ask("POST", "/v1/sessions/busy/cancel")).json())
    assert.deepStrictEqual(cancelled, { cancelled: true })
    assert.strictEqual((yield* Effect.promise(() => ask("DELETE", "/v1/sessions/busy"))).status, 204)
    yield* Effect.promise(() => watching.text().catch(() => ""))
    assert.strictEqual((yield* Effect.promise(() => ask("GET", "/v1/sessions/busy"))).status, 404)
  })
})

it.live("a server whose user has windows and prices of models counts sessions with them", function* () {
  const own = newHome()
  const price = { input: 1_000_000, output: 1_000_000 }
  writeFileSync(
    join(own, "settings.json"),
    JSON.stringify({ models: { "gemini-2.5-flash": { window: 50_000, price } } })
  )
  const { ask } = yield* startServer({ home: own })
  const metrics = Effect.promise(async () => (await ask("GET", "/metrics", { token: tokens.local })).text())
  const counters = Effect.map(
    metrics,
    (text) => (name: string) => Number(new RegExp(`^palimpsest_${name}[^\\n]* ([\\d.]+)$`, "m").exec(text)?.[1] ?? 0)
  )
  const before = yield* counters
  yield* Effect.promise(async () => {
    await ask("POST", "/v1/sessions", { body: { id: "one" } })
    await (await ask("POST", "/v1/sessions/one/messages", { body: { id: "m1", text: "hello" } })).text()
  })
  const after = yield* counters
  for (const [, name = ""] of (yield* metrics).matchAll(/^# TYPE (\S+) counter$/gm)) assert.match(name, /_total$/)
  // Those of other tests may end meanwhile.
  for (const name of ["running_turns", "open_streams"])
    yield* untilThere(Effect.map(counters, (now) => now(name) <= before(name)))
  assert.strictEqual(after(`turns_total\\{status="answered"\\}`), before(`turns_total\\{status="answered"\\}`) + 1)
  interface Read {
    readonly totals: { readonly window: number; readonly cost: { readonly total: number } }
  }
  const { totals } = yield* json<Read>(() => ask("GET", "/v1/sessions/one"))
  const ledger = yield* json<Read>(() => ask("GET", "/v1/sessions/one/ledger"))
  assert.strictEqual(totals.window, 50_000)
  // One token of the message and two of the answer, at a dollar each.
  assert.strictEqual(totals.cost.total, 3)
  assert.deepStrictEqual(ledger.totals, totals)
  const listed = Effect.map(
    json<{ readonly sessions: ReadonlyArray<Read> }>(() => ask("GET", "/v1/sessions?totals=true")),
    ({ sessions }) => sessions[0]?.totals.cost.total
  )
  assert.strictEqual(yield* listed, 3)
  writeFileSync(
    join(own, "settings.json"),
    JSON.stringify({ models: { "gemini-2.5-flash": { price: { input: 500_000, output: 500_000 } } } })
  )
  assert.strictEqual(yield* listed, 1.5)
})

it.live("the limit of sessions is exact", function* () {
  const { ask } = yield* startServer({
    home: newHome(),
    settings: { tenants: { acme: { limits: { sessions: 11 } } } }
  })
  const create = (id: string) =>
    Effect.map(
      Effect.promise(() => ask("POST", "/v1/sessions", { body: { id } })),
      ({ status }) => status
    )
  const made = yield* Effect.forEach(Array.from({ length: 13 }), (_, at) => create(`s${at}`))
  assert.deepStrictEqual(made, [...Array.from({ length: 11 }, () => 201), 429, 429])
  yield* Effect.promise(() => ask("DELETE", "/v1/sessions/s3"))
  assert.deepStrictEqual([yield* create("s12"), yield* create("s13")], [201, 429])
  for (const id of ["s4", "s5", "s6"]) yield* Effect.promise(() => ask("DELETE", `/v1/sessions/${id}`))
  const ids = Array.from({ length: 8 }, (_, at) => `t${at}`)
  const atOnce = yield* Effect.forEach(ids, create, { concurrency: "unbounded" })
  assert.deepStrictEqual(atOnce.sort(), [201, 201, 201, 429, 429, 429, 429, 429])
})

describe("the tools of served sessions", () => {
  const played = Effect.fnUntraced(function* (settings: ServeSettings) {
    const folder = newHome()
    const declared = new Set<string>()
    const write = { name: "write_file", args: { file_path: "made.txt", content: "by a tool" } }
    const { ask } = yield* startServer({
      home: newHome(),
      settings: { ...settings, tenants: { acme: { folder } } },
      answers: ({ contents, tools = [] }) => {
        for (const { name } of tools.flatMap((tool) => Object(tool).functionDeclarations ?? [])) declared.add(name)
        return contents.some(({ parts }) => parts.some((part) => part.functionResponse !== undefined))
          ? "done"
          : { content: { role: "model", parts: [{ functionCall: write }] }, finishReason: "STOP", usage: null }
      }
    })
    yield* Effect.promise(async () => {
      await ask("POST", "/v1/sessions", { body: { id: "one" } })
      await (await ask("POST", "/v1/sessions/one/messages", { body: { id: "m1", text: "Make a file." } })).text()
    })
    return { declared, isWritten: existsSync(join(folder, "made.txt")) }
  })

  it.live("are off unless the settings allow them, and run what the settings approve", function* () {
    const off = yield* played({})
    assert.isFalse(off.declared.has("write_file"))
    assert.isFalse(off.isWritten)
    const reading = yield* played({ tools: true })
    assert.isTrue(reading.declared.has("read_file"))
    assert.isFalse(reading.isWritten)
    const all = yield* played({ tools: true, approve: "all" })
    assert.isTrue(all.declared.has("write_file"))
    assert.isTrue(all.isWritten)
  })
})
