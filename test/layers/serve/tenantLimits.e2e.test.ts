import { Effect, Redacted } from "effect"
import type { ServeSettings } from "../../../src/domain/serve/ServeSettings.ts"
import type { ServeStore } from "../../../src/layers/assembly/LiveServe.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { needs } from "../../support/machine.ts"
import { databases, freePort } from "../../support/postgres.ts"
import { untilThere } from "../../support/processGroups.ts"
import { eventsOf, newHome, startServer } from "../../support/server.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The limits of a tenant are the same whatever the store, and whichever processes carry a request. */

const one = "/v1/sessions/one"

type Ask = Effect.Success<ReturnType<typeof startServer>>["ask"]

/** Starts a server with a store; the limits are those of the process that clients ask. */
type Start = (settings: ServeSettings, answers: ScriptedModel.Answers) => ReturnType<typeof startServer>

const over =
  (store: ServeStore): Start =>
  (settings, answers) =>
    startServer({ home: newHome(), settings, answers, store })

const postgresAt = (url: string, port: number | undefined): ServeStore => ({
  _tag: "Postgres",
  url: Redacted.make(url),
  runner: port === undefined ? undefined : { host: "127.0.0.1", port }
})

const database = databases()

const stores: Readonly<Record<string, Start>> = { files: over({ _tag: "Files" }), sqlite: over({ _tag: "Sqlite" }) }

/** A front and a runner. What two servers share that do both is tried by itself. */
const apart: Start = (settings, answers) =>
  Effect.gen(function* () {
    const url = yield* database
    yield* over(postgresAt(url, yield* freePort))(settings, answers)
    return yield* over(postgresAt(url, undefined))(settings, answers)
  })

const create = (ask: Ask, id: string) => Effect.promise(() => ask("POST", "/v1/sessions", { body: { id } }))

/** Opens an event stream. Its head has come, so the server has counted it. */
/** Responses whose streams stay open: fetch ends the stream of one that nothing refers to any more. */
const kept: Array<Response> = []
const keeping = async (asking: Promise<Response>) => {
  const response = await asking
  kept.push(response)
  return response
}

const watching = (ask: Ask, signal: AbortSignal) =>
  Effect.promise(() => keeping(ask("GET", `${one}/events`, { signal })))

const send = (ask: Ask, id: string, message: string, signal?: AbortSignal) =>
  Effect.promise(() =>
    keeping(
      ask("POST", `/v1/sessions/${id}/messages`, {
        body: { id: message, text: "Hello" },
        ...(signal === undefined ? {} : { signal })
      })
    )
  )

/** Sends a message to its end. Returns how its turn ended: `refused` by a limit, with the time after which to try again. */
const outcome = Effect.fnUntraced(function* (ask: Ask, id: string, message: string) {
  const response = yield* send(ask, id, message)
  const text = yield* Effect.promise(() => response.text())
  if (response.status === 429 && Number(response.headers.get("retry-after")) > 0) return "refused"
  const end = JSON.stringify(eventsOf(text).at(-1)?.event)
  return /"answered"/.test(end) ? "answered" : end
})

/** The status of a message to a session that is answering another one; undefined while it waits. */
const queued = Effect.fnUntraced(function* (ask: Ask) {
  const status = send(ask, "one", "m2", AbortSignal.timeout(1_000)).pipe(Effect.map((response) => response.status))
  return yield* Effect.catchDefect(status, () => Effect.undefined)
})

const cases = (start: Start) => {
  it.live("each event stream counts once, until its client has gone", function* () {
    const { ask } = yield* start({ limits: { streams: 4 }, drainSeconds: 0 }, () => ScriptedModel.hang)
    yield* create(ask, "one")
    const aborts = Array.from({ length: 5 }, () => new AbortController())
    const statuses: Array<number> = []
    for (const { signal } of aborts) statuses.push((yield* watching(ask, signal)).status)
    assert.deepStrictEqual(statuses, [200, 200, 200, 200, 429])
    assert.strictEqual((yield* send(ask, "one", "m1")).status, 429)
    for (const abort of aborts.slice(0, 2)) abort.abort()
    const last = new AbortController()
    yield* untilThere(Effect.map(watching(ask, last.signal), ({ status }) => status === 200))
    // The stream of a message counts like any other.
    yield* untilThere(Effect.map(send(ask, "one", "m1", last.signal), ({ status }) => status === 200))
    assert.strictEqual((yield* watching(ask, last.signal)).status, 429)
    for (const abort of [...aborts, last]) abort.abort()
  })

  it.live("each turn counts once", function* () {
    const { ask } = yield* start({ limits: { turns: 2 }, drainSeconds: 0 }, () => ScriptedModel.hang)
    for (const id of ["one", "two", "three"]) yield* create(ask, id)
    const abort = new AbortController()
    for (const id of ["one", "two"]) {
      const { body, status } = yield* send(ask, id, "m1", abort.signal)
      assert.strictEqual(status, 200)
      // The turn runs once its first event is there.
      const reader = body?.getReader() ?? assert.fail("no body")
      yield* untilThere(
        Effect.promise(async () => new TextDecoder().decode((await reader.read()).value).includes("TurnStarted"))
      )
    }
    assert.strictEqual(yield* outcome(ask, "three", "m1"), "refused")
    // Nothing was accepted, and a turn that runs is still found.
    const found = (message: string) => ask("GET", `/v1/sessions/${message}/events`, { signal: abort.signal })
    assert.strictEqual((yield* Effect.promise(() => found("three/messages/m1"))).status, 404)
    assert.strictEqual((yield* Effect.promise(() => found("one/messages/m1"))).status, 200)
    // Another message to a session whose turn runs takes no turn of its own: it waits, or conflicts.
    assert.notStrictEqual(yield* queued(ask), 429)
    abort.abort()
  })

  it.live("what does not exist is not found, and holds no stream", function* () {
    const { ask } = yield* start({ limits: { streams: 1 } }, ["an answer", "another"])
    const status = (place: string, method = "GET", body?: unknown) =>
      Effect.promise(() => ask(method, place, { body, signal: AbortSignal.timeout(20_000) })).pipe(
        Effect.map((response) => response.status)
      )
    yield* create(ask, "one")
    assert.strictEqual(yield* outcome(ask, "one", "m1"), "answered")
    const absent = ["/messages/m1/events", "/events", "/export", "/plan", "/ledger", "", "/recall?pattern=x"]
    for (const place of [`${one}/messages/m2/events`, ...absent.map((end) => `/v1/sessions/none${end}`)]) {
      assert.strictEqual(yield* status(place), 404, place)
      assert.strictEqual(yield* status(place), 404, place)
    }
    for (const act of ["cancel", "undo", "redo", "compress", "fork", "messages"]) {
      assert.strictEqual(yield* status(`/v1/sessions/none/${act}`, "POST", { text: "Hello" }), 404, act)
    }
    assert.strictEqual(yield* status(`${one}/fork`, "POST", { at: "e999" }), 404)
    assert.strictEqual(yield* status(`${one}/recall/h_aaaaaaaaaaaa`), 404)
    // A message of a deleted session is one of the session that has its name now only when it is sent again.
    assert.strictEqual(yield* status(one, "DELETE"), 204)
    yield* create(ask, "one")
    assert.strictEqual(yield* status(`${one}/messages/m1/events`), 404)
    assert.strictEqual(yield* outcome(ask, "one", "m1"), "answered")
    const said = yield* Effect.promise(() => ask("GET", one).then((response) => response.text()))
    assert.include(said, "another")
  })

  it.live("each request counts once", function* () {
    const { ask } = yield* start({ limits: { requests: 4 } }, [])
    yield* create(ask, "one")
    const statuses: Array<number> = []
    for (let asked = 0; asked < 4; asked += 1) statuses.push((yield* Effect.promise(() => ask("GET", one))).status)
    assert.deepStrictEqual(statuses, [200, 200, 200, 429])
  })

  it.live("the tokens of each answer count once", function* () {
    const answer = {
      content: { role: "model", parts: [{ text: "an answer" }] },
      finishReason: "STOP",
      usage: { prompt: 60, answer: 30, thoughts: 10, cached: 0, total: 100 }
    } as const
    // A turn is free again once its client has the end.
    const { ask } = yield* start({ limits: { tokens: 201, turns: 1 } }, () => answer)
    const outcomes: Array<string> = []
    for (const id of ["one", "two", "three", "four"]) {
      yield* create(ask, id)
      outcomes.push(yield* outcome(ask, id, "m1"))
    }
    assert.deepStrictEqual(outcomes, ["answered", "answered", "answered", "refused"])
  })

  it.live("what a turn may cost is held back from compressions", function* () {
    const { ask } = yield* start({ limits: { tokens: 201 }, drainSeconds: 0 }, () => ScriptedModel.hang)
    for (const id of ["one", "two"]) yield* create(ask, id)
    const compress = Effect.promise(async () => (await ask("POST", "/v1/sessions/two/compress", { body: {} })).status)
    assert.strictEqual(yield* compress, 200)
    const abort = new AbortController()
    yield* send(ask, "one", "m1", abort.signal)
    assert.strictEqual(yield* compress, 429)
    abort.abort()
  })
}

// They wait more than they compute.
describe.concurrent("the limits of a tenant", () => {
  for (const [name, start] of Object.entries(stores)) describe(`over ${name}`, () => cases(start))

  needs("PostgreSQL")("on a database server", () => {
    describe("over postgres, with a runner of its own", () => cases(apart))

    describe("over two servers", () => {
      /** Two servers that serve and run sessions. */
      const two = Effect.fnUntraced(function* (
        limits: ServeSettings["limits"],
        answers: ScriptedModel.Answers = () => ""
      ) {
        const url = yield* database
        const settings = { ...(limits === undefined ? {} : { limits }), drainSeconds: 0 }
        const first = yield* over(postgresAt(url, yield* freePort))(settings, answers)
        const second = yield* over(postgresAt(url, yield* freePort))(settings, answers)
        return [first.ask, second.ask] as const
      })
      const statusOf = (ask: Ask) => Effect.promise(async () => (await ask("GET", "/v1/sessions")).status)

      it.live("turns that run at the same time", function* () {
        const asks = yield* two({ turns: 4 }, () => ScriptedModel.hang)
        const ids = Array.from({ length: 12 }, (_, at) => `s${at}`)
        yield* Effect.forEach(ids, (id) => create(asks[0], id))
        const abort = new AbortController()
        const responses = yield* Effect.forEach(
          ids,
          (id, at) => send(asks[at % 2 === 0 ? 0 : 1], id, "m1", abort.signal),
          { concurrency: "unbounded" }
        )
        const statuses = responses.map(({ status }) => status).sort()
        assert.deepStrictEqual(statuses, [200, 200, 200, 200, ...Array.from({ length: 8 }, () => 429)])
        // A turn that has ended is free for the other server.
        const running = ids[responses.findIndex(({ status }) => status === 200)] ?? ""
        const refused = ids[responses.findIndex(({ status }) => status === 429)] ?? ""
        // Also where no runner has begun the turn yet.
        const cancelled = yield* Effect.promise(() => asks[1]("POST", `/v1/sessions/${running}/cancel`))
        assert.deepStrictEqual(JSON.parse(yield* Effect.promise(() => cancelled.text())), { cancelled: true })
        yield* untilThere(Effect.map(send(asks[1], refused, "m1", abort.signal), ({ status }) => status === 200))
        const next = ids[responses.findLastIndex(({ status }) => status === 429)] ?? ""
        for (const ask of asks) assert.strictEqual((yield* send(ask, next, "m1")).status, 429)
        abort.abort()
      })

      it.live("requests in a minute", function* () {
        const asks = yield* two({ requests: 5 })
        const statuses: Array<number> = []
        for (let asked = 0; asked < 4; asked += 1) for (const ask of asks) statuses.push(yield* statusOf(ask))
        assert.deepStrictEqual(statuses, [200, 200, 200, 200, 200, 429, 429, 429])
      })

      it.live("event streams", function* () {
        const asks = yield* two({ streams: 2 })
        yield* create(asks[0], "one")
        const abort = new AbortController()
        for (const ask of asks) assert.strictEqual((yield* watching(ask, abort.signal)).status, 200)
        for (const ask of asks) assert.strictEqual((yield* watching(ask, abort.signal)).status, 429)
        abort.abort()
        yield* untilThere(Effect.map(watching(asks[0], AbortSignal.timeout(20_000)), ({ status }) => status === 200))
      })

      it.live("tokens that running turns may cost", function* () {
        const asks = yield* two({ tokens: 4_000 }, () => ScriptedModel.hang)
        const ids = Array.from({ length: 6 }, (_, at) => `s${at}`)
        yield* Effect.forEach(ids, (id) => create(asks[0], id))
        const abort = new AbortController()
        const responses = yield* Effect.forEach(
          ids,
          (id, at) => send(asks[at % 2 === 0 ? 0 : 1], id, "m1", abort.signal),
          { concurrency: "unbounded" }
        )
        const statuses = responses.map(({ status }) => status).sort()
        assert.deepStrictEqual(statuses, [200, 429, 429, 429, 429, 429])
        const running = ids[responses.findIndex(({ status }) => status === 200)] ?? ""
        yield* Effect.promise(() => asks[0]("POST", `/v1/sessions/${running}/cancel`))
        // Nothing was spent: what was held back is free for every server.
        for (const ask of asks) {
          yield* untilThere(Effect.map(send(ask, running, "m2", abort.signal), ({ status }) => status === 200))
          yield* Effect.promise(() => ask("POST", `/v1/sessions/${running}/cancel`))
        }
        abort.abort()
      })

      it.live("tokens in a day", function* () {
        const answer = {
          content: { role: "model", parts: [{ text: "an answer" }] },
          finishReason: "STOP",
          usage: { prompt: 60, answer: 30, thoughts: 10, cached: 0, total: 100 }
        } as const
        const [one, other] = yield* two({ tokens: 150 }, () => answer)
        const outcomes: Array<string> = []
        for (const [id, ask] of Object.entries({ a: one, b: other, c: one, d: other })) {
          yield* create(one, id)
          outcomes.push(yield* outcome(ask, id, "m1"))
        }
        assert.deepStrictEqual(outcomes, ["answered", "answered", "refused", "refused"])
      })
    })
  })
})
