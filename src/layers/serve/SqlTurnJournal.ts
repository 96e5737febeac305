import { Array as Arr, Clock, Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { eventId, ServedEvent } from "../../domain/serve/EventBuffer.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { type JournaledTurn, TurnJournal } from "../../services/serve/TurnJournal.ts"
import { DatabaseError } from "./ClusterEngine.ts"

/** The events of running turns in a table of the database. */

const Rows = Schema.Array(
  Schema.Struct({
    name: Schema.String,
    number: Schema.Finite,
    event: fromJson(ServedEvent)
  })
)
const encode = Schema.encodeEffect(fromJson(ServedEvent))

/** A turn whose server is lost is taken up within seconds; what is older than this is never read again. */
const keptMillis = 86_400_000

/** Half a second lies between two attempts: so long a database may be away before streams end. */
const maxRetries = 40

const tables = SqlClient.SqlClient.use((sql) =>
  Effect.gen(function* () {
    yield* sql`CREATE TABLE IF NOT EXISTS palimpsest_turn_events (
      tenant TEXT NOT NULL,
      session TEXT NOT NULL,
      number INTEGER NOT NULL,
      name TEXT NOT NULL,
      event TEXT NOT NULL,
      at BIGINT NOT NULL,
      PRIMARY KEY (tenant, session, number)
    )`
    yield* sql`CREATE TABLE IF NOT EXISTS palimpsest_turn_owners (
      tenant TEXT NOT NULL,
      session TEXT NOT NULL,
      owner TEXT NOT NULL,
      PRIMARY KEY (tenant, session)
    )`
  })
)

/** The journal, with its tables. */
export const layer = Layer.effect(
  TurnJournal,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    // Of two servers that make a table at the same time, one fails, and finds it then.
    yield* Effect.retry(tables, { times: 3 }).pipe(
      Effect.mapError(({ message }) => new DatabaseError({ message: `the tables of turns cannot be made: ${message}` }))
    )
    const prune = Effect.flatMap(
      Clock.currentTimeMillis,
      (now) => sql`DELETE FROM palimpsest_turn_events WHERE at < ${now - keptMillis}`
    )
    yield* Effect.forkScoped(Effect.repeat(Effect.ignore(prune, { log: "Warn" }), Schedule.spaced("1 hour")))

    const read = Effect.fnUntraced(function* (tenant: string, id: string) {
      const rows = yield* Effect.flatMap(
        sql`SELECT name, number, event FROM palimpsest_turn_events
          WHERE tenant = ${tenant} AND session = ${id} ORDER BY number`,
        Schema.decodeUnknownEffect(Rows)
      )
      const { name } = rows.at(-1) ?? {}
      return name === undefined ? undefined : { name, events: rows.map(({ event, number }) => ({ ...event, number })) }
    })

    const take = (tenant: string, id: string, owner: string) =>
      Effect.andThen(
        sql`INSERT INTO palimpsest_turn_owners ${sql.insert({ tenant, session: id, owner })}
          ON CONFLICT (tenant, session) DO UPDATE SET owner = excluded.owner`,
        read(tenant, id)
      )
    /** Without its events, a turn goes on with a `Reset`. */
    const orNone = <A, E extends { readonly message: string }>(reading: Effect.Effect<A, E>) =>
      reading.pipe(
        Effect.tapError((error) => Effect.logWarning(`serve: the events of a turn cannot be read: ${error.message}`)),
        Effect.orElseSucceed(() => undefined)
      )

    const save = Effect.fnUntraced(function* (
      tenant: string,
      id: string,
      { events, first, name }: JournaledTurn & { readonly first: number | undefined },
      owner: string
    ) {
      const at = yield* Clock.currentTimeMillis
      const rows = yield* Effect.forEach(events, ({ event, message, number }) =>
        Effect.map(encode({ event, message }), (text) => ({ tenant, session: id, number, name, event: text, at }))
      )
      // The row is locked until the end, so that whoever takes the journal sees everything or keeps it out.
      const owned = yield* sql`UPDATE palimpsest_turn_owners SET owner = owner
        WHERE tenant = ${tenant} AND session = ${id} AND owner = ${owner} RETURNING owner`
      if (owned.length === 0) return false
      if (first !== undefined) {
        yield* sql`DELETE FROM palimpsest_turn_events
          WHERE tenant = ${tenant} AND session = ${id} AND (number < ${first} OR name <> ${name})`
      }
      if (Arr.isArrayNonEmpty(rows)) yield* sql`INSERT INTO palimpsest_turn_events ${sql.insert(rows)}`
      return true
    }, sql.withTransaction)

    return {
      take: (tenant, id, owner) => orNone(take(tenant, id, owner)),
      read: (tenant, id) => orNone(read(tenant, id)),
      save: (tenant, id, turn, owner) =>
        save(tenant, id, turn, owner).pipe(
          Effect.retry({ schedule: Schedule.spaced("500 millis"), times: maxRetries }),
          Effect.tapError((error) => Effect.logWarning(`serve: the events of a turn are not stored: ${error.message}`)),
          Effect.orElseSucceed(() => false)
        ),
      last: (tenant, id) =>
        sql`SELECT name, number, event FROM palimpsest_turn_events
          WHERE tenant = ${tenant} AND session = ${id} AND number IN (
            SELECT MIN(number) FROM palimpsest_turn_events WHERE tenant = ${tenant} AND session = ${id}
            UNION SELECT MAX(number) FROM palimpsest_turn_events WHERE tenant = ${tenant} AND session = ${id}
          ) ORDER BY number`.pipe(
          Effect.flatMap(Schema.decodeUnknownEffect(Rows)),
          Effect.map((rows) => {
            const [first] = rows
            const last = rows.at(-1)
            if (first === undefined || last === undefined) return null
            const { event, message } = last.event
            const isRunning = message !== null && event._tag !== "TurnEnded"
            return eventId(last.name, isRunning ? first.number - 1 : last.number)
          }),
          Effect.orElseSucceed(() => null)
        ),
      forget: (tenant, id) =>
        sql`DELETE FROM palimpsest_turn_events WHERE tenant = ${tenant} AND session = ${id}`.pipe(
          Effect.andThen(sql`DELETE FROM palimpsest_turn_owners WHERE tenant = ${tenant} AND session = ${id}`),
          Effect.ignore({ log: "Warn" })
        )
    }
  })
)
