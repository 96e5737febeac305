import { Context, Effect, Exit, Fiber, Layer, Redacted, Schedule } from "effect"
import { beforeEvents } from "../../../src/domain/serve/EventBuffer.ts"
import { ApiTokens, hashOf } from "../../../src/services/serve/ApiTokens.ts"
import { ServedSessions } from "../../../src/services/serve/ServedSessions.ts"
import { eventsOf, newHome, type Server, serving, startServer, tokens } from "../../support/server.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What a server does when it stops and starts again, and when its tokens change: with the waits of a real clock. */

/** The JSON of an answer. */
const json = <A>(asking: () => Promise<Response>): Effect.Effect<A> =>
  Effect.promise(async (): Promise<A> => JSON.parse(await (await asking()).text()))

const one = "/v1/sessions/one"

describe("a restart", () => {
  it.live("finds what was answered, and answers no message twice", function* () {
    const place = newHome()
    const words = async ({ ask }: Server) => {
      const text = await (await ask("POST", `${one}/messages`, { body: { id: "m1", text: "Hello" } })).text()
      return eventsOf(text).flatMap(({ event }) => (event._tag === "Content" ? [event.text] : []))
    }
    const first = yield* serving({ home: place, answers: ["first"] }, async (server) => {
      await server.ask("POST", "/v1/sessions", { body: { id: "one" } })
      return words(server)
    })
    // A model without answers: to ask it would be a failure.
    const second = yield* serving({ home: place, answers: [] }, words)
    assert.deepStrictEqual([first, second], [["first"], ["first"]])
  })

  for (const _tag of ["Files", "Sqlite"] as const) {
    it.live(`a client that has no event of a turn gets it whole, without a reset: ${_tag}`, function* () {
      const home = newHome()
      const tags: Array<ReadonlyArray<string>> = []
      for (const answers of [["first"], []]) {
        yield* serving({ home, store: { _tag }, answers }, async ({ ask }) => {
          const headers = { "last-event-id": beforeEvents(0) }
          await ask("POST", "/v1/sessions", { body: { id: "one" } })
          const sent = await ask("POST", `${one}/messages`, { headers, body: { id: "m1", text: "Hello" } })
          const again = await ask("GET", `${one}/messages/m1/events`, { headers })
          for (const text of [await sent.text(), await again.text()]) {
            tags.push(eventsOf(text).flatMap(({ event: { _tag } }) => (_tag === "Ping" ? [] : [_tag])))
          }
        })
      }
      const live = ["TurnStarted", "ModelInfo", "Content", "Finished", "TurnEnded"]
      const later = _tag === "Files" ? ["Content", "TurnEnded"] : live
      assert.deepStrictEqual(tags, [live, live, later, later])
    })
  }

  it.live("opens a session as soon as another server has closed it", function* () {
    const home = newHome()
    const send = ({ ask }: Server) =>
      Effect.promise(async () => {
        const response = await ask("POST", "/v1/sessions/one/messages", { body: { text: "Hello" } })
        await response.text()
        return response.status
      })
    const second = yield* startServer({ home })
    yield* Effect.scoped(
      Effect.gen(function* () {
        const first = yield* startServer({ home })
        yield* Effect.promise(() => first.ask("POST", "/v1/sessions", { body: { id: "one" } }))
        // Also one that it was still opening.
        const { close, plan } = Context.get(first.context, ServedSessions)
        for (let millis = 0; millis < 20; millis += 1) {
          const opening = yield* Effect.forkChild(plan("acme", "one"), { startImmediately: true })
          yield* Effect.sleep(millis)
          yield* Fiber.interrupt(opening)
          yield* close("acme", "one")
          const { status } = yield* Effect.promise(() => second.ask("GET", `${one}/plan`))
          assert.strictEqual(status, 200, `closed after ${millis} ms`)
          yield* Context.get(second.context, ServedSessions).close("acme", "one")
        }
        assert.strictEqual(yield* send(first), 200)
        assert.strictEqual(yield* send(second), 409)
      })
    )
    assert.strictEqual(yield* send(second), 200)
  })

  it.live("says which version serves, and when to try again while it stops, which begins nothing", function* () {
    const { ask, context } = yield* startServer({ home: newHome() })
    yield* Effect.promise(() => ask("POST", "/v1/sessions", { body: { id: "one" } }))
    const document = yield* json<{ readonly info: { readonly version: string } }>(() => ask("GET", "/openapi.json"))
    assert.strictEqual(document.info.version, "0")
    yield* Context.get(context, ServedSessions).drain
    const { headers, status } = yield* Effect.promise(() => ask("GET", "/ready"))
    assert.deepStrictEqual([status, headers.get("retry-after")], [503, "5"])
    const statusOf = (method: string, place: string, body?: unknown) =>
      Effect.map(
        Effect.promise(() => ask(method, place, { body })),
        (response) => response.status
      )
    for (const place of ["/v1/sessions", `${one}/fork`, `${one}/compress`, `${one}/messages`]) {
      assert.strictEqual(yield* statusOf("POST", place, { text: "Hello" }), 503, place)
    }
    assert.strictEqual(yield* statusOf("GET", one), 200)
  })

  it.live("lets a running turn end first", function* () {
    const place = newHome()
    const options = { home: place, settings: { drainSeconds: 0 }, answers: () => ({ _tag: "Hang" }) as const }
    const response = yield* serving(options, async ({ ask }) => {
      await ask("POST", "/v1/sessions", { body: { id: "one" } })
      const sent = await ask("POST", `${one}/messages`, { body: { text: "Hello" } })
      // It is read while the server ends.
      return { text: sent.text().catch(() => "") }
    })
    const events = eventsOf(yield* Effect.promise(() => response.text))
    assert.include(JSON.stringify(events.at(-1)), `"status":"stopped"`)
  })
})

describe("a token that is revoked", () => {
  it.live("is refused within a second, and its streams end; those of others go on", function* () {
    const revoked = new Set<string>()
    const { ask } = yield* startServer({ home: newHome(), revoked })
    const statusOf = (token: string) => Effect.promise(async () => (await ask("GET", "/v1/sessions", { token })).status)
    const abort = new AbortController()
    const watching = Effect.fnUntraced(function* (token: string) {
      yield* Effect.promise(() => ask("POST", "/v1/sessions", { token, body: { id: "one" } }))
      return yield* Effect.promise(() => ask("GET", `${one}/events`, { token, signal: abort.signal }))
    })
    const [mine, theirs] = [yield* watching(tokens.acme), yield* watching(tokens.zeta)]
    let isOver = false
    const others = theirs.text().then(
      () => (isOver = true),
      () => {}
    )
    revoked.add("acme")
    yield* Effect.promise(() => mine.text())
    assert.deepStrictEqual([yield* statusOf(tokens.acme), yield* statusOf(tokens.zeta)], [401, 200])
    assert.isFalse(isOver)
    revoked.delete("acme")
    yield* Effect.repeat(statusOf(tokens.acme), {
      until: (status) => status === 200,
      schedule: Schedule.spaced("50 millis")
    })
    abort.abort()
    yield* Effect.promise(() => others)
  })

  it.live("ends the exports that it began: what ends as it should is whole", function* () {
    const revoked = new Set<string>()
    const { ask } = yield* startServer({ home: newHome(), revoked })
    const data = Buffer.from("many words ".repeat(90_000)).toString("base64")
    const began = Effect.fnUntraced(function* (token: string) {
      for (let times = 0; times < 8; times += 1) {
        const { id } = yield* json<{ id: string }>(() => ask("POST", "/v1/sessions", { token, body: {} }))
        const body = { text: "Hello", media: [{ mimeType: "text/plain", data }] }
        yield* Effect.promise(async () => (await ask("POST", `/v1/sessions/${id}/messages`, { token, body })).text())
      }
      return yield* Effect.promise(() => ask("GET", "/v1/export", { token }))
    })
    // Nobody reads them yet: the server waits with the rest.
    const [mine, theirs] = [yield* began(tokens.acme), yield* began(tokens.zeta)]
    revoked.add("acme")
    const refused = Effect.promise(async () => (await ask("GET", "/v1/sessions")).status)
    yield* Effect.repeat(refused, { until: (status) => status === 401, schedule: Schedule.spaced("50 millis") })
    assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.tryPromise(() => mine.text()))))
    const heads = (yield* Effect.promise(() => theirs.text())).match(/"_tag":"Session"/g) ?? []
    assert.strictEqual(heads.length, 8)
  })
})

it.live("a token that another tenant gets is no longer one of the first", function* () {
  const token = Redacted.make(tokens.acme)
  const hash = hashOf(token)
  let tenant = "acme"
  const services = yield* Layer.build(ApiTokens.layer(Effect.sync(() => [{ tenant, hash }])))
  const { revoked, tenantOf } = Context.get(services, ApiTokens)
  const first = yield* Effect.forkChild(revoked(token, "acme"))
  tenant = "zeta"
  yield* Fiber.join(first)
  assert.strictEqual(yield* tenantOf(token), "zeta")
})
