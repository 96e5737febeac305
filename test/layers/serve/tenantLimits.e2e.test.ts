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

/** The clients' process has no runner: another one carries their turns. */
const withRunner: Start = (settings, answers) =>
  Effect.gen(function* () {
    const url = yield* database
    yield* over(postgresAt(url, yield* freePort))(settings, answers)
    return yield* over(postgresAt(url, undefined))(settings, answers)
  })

const create = (ask: Ask, id: string) => Effect.promise(() => ask("POST", "/v1/sessions", { body: { id } }))

/** Opens an event stream. Its head has come, so the server has counted it. */
const watching = (ask: Ask, signal: AbortSignal) => Effect.promise(() => ask("GET", `${one}/events`, { signal }))

const send = (ask: Ask, id: string, message: string, signal?: AbortSignal) =>
  Effect.promise(() =>
    ask("POST", `/v1/sessions/${id}/messages`, {
      body: { id: message, text: "Hello" },
      ...(signal === undefined ? {} : { signal })
    })
  )

/** Sends a message to its end. Returns how its turn ended: `refused` by a limit, before or after it was stored. */
const outcome = Effect.fnUntraced(function* (ask: Ask, id: string, message: string) {
  const response = yield* send(ask, id, message)
  const text = yield* Effect.promise(() => response.text())
  if (response.status === 429) return "refused"
  const end = JSON.stringify(eventsOf(text).at(-1)?.event)
  return /"failed".*the limit of/.test(end) ? "refused" : /"answered"/.test(end) ? "answered" : end
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
    abort.abort()
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
    const { ask } = yield* start({ limits: { tokens: 201 } }, () => answer)
    yield* create(ask, "one")
    const outcomes: Array<string> = []
    for (const id of ["m1", "m2", "m3", "m4"]) outcomes.push(yield* outcome(ask, "one", id))
    assert.deepStrictEqual(outcomes, ["answered", "answered", "answered", "refused"])
  })
}

// They wait more than they compute.
describe.concurrent("the limits of a tenant", () => {
  for (const [name, start] of Object.entries(stores)) describe(`over ${name}`, () => cases(start))

  needs("PostgreSQL")("on a database server, with a runner of its own", () => cases(withRunner))
})
