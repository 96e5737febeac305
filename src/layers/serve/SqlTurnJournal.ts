/** The events of running turns in a table of the database. */

import { Array as Arr, Clock, Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { eventId, eventLifetime, ServedEvent } from "../../domain/serve/EventBuffer.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { Unavailable } from "../../services/serve/ServeErrors.ts"
import { entityId } from "../../services/serve/SessionEntity.ts"
import { type Journal, TurnJournal } from "../../services/serve/TurnJournal.ts"
import { inTransaction } from "../platform/SqlTransaction.ts"
import { forgetEntity, makeTables } from "./ClusterEngine.ts"

const decodeRows = Schema.decodeUnknownEffect(
  Schema.Array(
    Schema.Struct({
      name: Schema.String,
      number: Schema.Finite,
      event: fromJson(ServedEvent),
      at: Schema.optionalKey(Schema.Finite)
    })
  )
)
const encode = Schema.encodeEffect(fromJson(ServedEvent))

/** Attempts to store events, half a second apart, before streams end because the database is away. */
const maxRetries = 40

const tables = (sql: SqlClient.SqlClient) => [
  sql`CREATE TABLE IF NOT EXISTS palimpsest_turn_events (
      tenant TEXT NOT NULL,
      session TEXT NOT NULL,
      number INTEGER NOT NULL,
      name TEXT NOT NULL,
      event TEXT NOT NULL,
      at BIGINT NOT NULL,
      PRIMARY KEY (tenant, session, number)
    )`,
  sql`CREATE TABLE IF NOT EXISTS palimpsest_turn_owners (
      tenant TEXT NOT NULL,
      session TEXT NOT NULL,
      owner TEXT NOT NULL,
      PRIMARY KEY (tenant, session)
    )`
]

const read = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, tenant: string, id: string) {
  const rows = yield* Effect.flatMap(
    sql`SELECT name, number, event, CAST(at AS DOUBLE PRECISION) AS at FROM palimpsest_turn_events
      WHERE tenant = ${tenant} AND session = ${id} ORDER BY number`,
    decodeRows
  )
  const { name } = rows.at(-1) ?? {}
  if (name === undefined) return undefined
  return {
    name,
    since: Math.min(...rows.map(({ at = 0 }) => at)),
    events: rows.map(({ event, number }) => ({ ...event, number }))
  }
})

const take = (sql: SqlClient.SqlClient, tenant: string, id: string, owner: string) =>
  Effect.andThen(
    sql`INSERT INTO palimpsest_turn_owners ${sql.insert({ tenant, session: id, owner })}
      ON CONFLICT (tenant, session) DO UPDATE SET owner = excluded.owner`,
    read(sql, tenant, id)
  )

/** Without its events, a turn goes on with a `Reset`. */
const orNone = <A, E extends { readonly message: string }>(reading: Effect.Effect<A, E>) =>
  reading.pipe(
    Effect.tapError((error) => Effect.logWarning(`serve: the events of a turn cannot be read: ${error.message}`)),
    Effect.orElseSucceed(() => undefined)
  )

const saveOnce = (
  sql: SqlClient.SqlClient,
  ...[tenant, id, { events, first, name }, owner]: Parameters<Journal["save"]>
) =>
  Effect.gen(function* () {
    const at = yield* Clock.currentTimeMillis
    const rows = yield* Effect.forEach(events, ({ event, message, number }) =>
      Effect.map(encode({ event, message }), (text) => ({ tenant, session: id, number, name, event: text, at }))
    )
    // The row is locked until the end: a server that takes the journal sees all of these events, or none is stored.
    const owned = yield* sql`UPDATE palimpsest_turn_owners SET owner = owner
      WHERE tenant = ${tenant} AND session = ${id} AND owner = ${owner} RETURNING owner`
    if (owned.length === 0) return false
    if (first !== undefined) {
      yield* sql`DELETE FROM palimpsest_turn_events
        WHERE tenant = ${tenant} AND session = ${id} AND (number < ${first} OR name <> ${name})`
    }
    // They are there already if the connection closed after the commit of an earlier attempt.
    if (Arr.isArrayNonEmpty(rows)) {
      yield* sql`INSERT INTO palimpsest_turn_events ${sql.insert(rows)} ON CONFLICT (tenant, session, number)
        DO UPDATE SET name = excluded.name, event = excluded.event, at = excluded.at`
    }
    return true
  }).pipe((work) => inTransaction(sql, work))

const save = (sql: SqlClient.SqlClient, ...turn: Parameters<Journal["save"]>) =>
  saveOnce(sql, ...turn).pipe(
    Effect.retry({ schedule: Schedule.spaced("500 millis"), times: maxRetries }),
    Effect.tapError((error) => Effect.logWarning(`serve: the events of a turn are not stored: ${error.message}`)),
    Effect.orElseSucceed(() => false)
  )

/** The id after which a reader goes on: before the first event of a turn that runs, else the last event. */
const lastId = Effect.fnUntraced(
  function* (sql: SqlClient.SqlClient, tenant: string, id: string) {
    const rows = yield* Effect.flatMap(
      sql`SELECT name, number, event FROM palimpsest_turn_events
        WHERE tenant = ${tenant} AND session = ${id} AND number IN (
          SELECT MIN(number) FROM palimpsest_turn_events WHERE tenant = ${tenant} AND session = ${id}
          UNION SELECT MAX(number) FROM palimpsest_turn_events WHERE tenant = ${tenant} AND session = ${id}
        ) ORDER BY number`,
      decodeRows
    )
    const [first] = rows
    const last = rows.at(-1)
    if (first === undefined || last === undefined) return
    const { event, message } = last.event
    const isRunning = message !== null && event._tag !== "TurnEnded"
    return eventId(last.name, isRunning ? first.number - 1 : last.number)
  },
  Effect.tapError((error) => Effect.logWarning("the last event of a session cannot be read", error)),
  Effect.orElseSucceed(() => undefined)
)

const forget = (sql: SqlClient.SqlClient, tenant: string, id: string) =>
  sql`DELETE FROM palimpsest_turn_events WHERE tenant = ${tenant} AND session = ${id}`.pipe(
    Effect.andThen(sql`DELETE FROM palimpsest_turn_owners WHERE tenant = ${tenant} AND session = ${id}`),
    Effect.andThen(forgetEntity(sql, entityId(tenant, id))),
    Effect.tapError((error) => Effect.logWarning(`serve: the events of a session are not deleted: ${error.message}`)),
    Effect.mapError(() => new Unavailable({ message: "the session was not deleted completely; delete it again" }))
  )

/** The journal, with its tables. */
export const layer = Layer.effect(
  TurnJournal,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* makeTables("turns", tables(sql))
    const removeOldEvents = Effect.flatMap(
      Clock.currentTimeMillis,
      (now) => sql`DELETE FROM palimpsest_turn_events WHERE at < ${now - eventLifetime}`
    )
    yield* Effect.forkScoped(Effect.repeat(Effect.ignore(removeOldEvents, { log: "Warn" }), Schedule.spaced("1 hour")))
    return {
      take: (tenant, id, owner) => orNone(take(sql, tenant, id, owner)),
      read: (tenant, id) => orNone(read(sql, tenant, id)),
      save: (tenant, id, turn, owner) => save(sql, tenant, id, turn, owner),
      last: (tenant, id) => lastId(sql, tenant, id),
      forget: (tenant, id) => forget(sql, tenant, id)
    }
  })
)
