import { Array as Arr, Clock, Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { ServedEvent } from "../../domain/serve/EventBuffer.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { TurnJournal } from "../../services/serve/TurnJournal.ts"

/** The events of running turns in a table of the database. */

const Rows = Schema.Array(
  Schema.Struct({
    name: Schema.String,
    number: Schema.Union([Schema.Finite, Schema.FiniteFromString]),
    event: fromJson(ServedEvent)
  })
)
const encode = Schema.encodeEffect(fromJson(ServedEvent))

/** A turn whose server is lost is taken up within seconds; what is older than this is never read again. */
const keptMillis = 86_400_000

/** The journal, with its table. */
export const layer = Layer.effect(
  TurnJournal,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE IF NOT EXISTS palimpsest_turn_events (
      tenant TEXT NOT NULL,
      session TEXT NOT NULL,
      number BIGINT NOT NULL,
      name TEXT NOT NULL,
      event TEXT NOT NULL,
      at BIGINT NOT NULL,
      PRIMARY KEY (tenant, session, number)
    )`
    const prune = Effect.flatMap(
      Clock.currentTimeMillis,
      (now) => sql`DELETE FROM palimpsest_turn_events WHERE at < ${now - keptMillis}`
    )
    yield* Effect.forkScoped(Effect.repeat(Effect.ignore(prune, { log: "Warn" }), Schedule.spaced("1 hour")))
    return {
      load: (tenant, id) =>
        sql`SELECT name, number, event FROM palimpsest_turn_events
          WHERE tenant = ${tenant} AND session = ${id} ORDER BY number`.pipe(
          Effect.flatMap(Schema.decodeUnknownEffect(Rows)),
          Effect.map((rows) => {
            const last = rows.at(-1)
            if (last === undefined) return undefined
            // What a process wrote that no longer had the session does not follow on.
            const events = rows
              .filter(
                ({ name, number }, index) => name === last.name && last.number - number === rows.length - 1 - index
              )
              .map(({ event, number }) => ({ ...event, number }))
            return { name: last.name, events }
          }),
          Effect.tapError((error) => Effect.logWarning(`serve: the events of a turn cannot be read: ${error.message}`)),
          Effect.orElseSucceed(() => undefined)
        ),
      save: (tenant, id, { events, first, name }) =>
        Effect.gen(function* () {
          const at = yield* Clock.currentTimeMillis
          const rows = yield* Effect.forEach(events, ({ event, message, number }) =>
            Effect.map(encode({ event, message }), (text) => ({ tenant, session: id, number, name, event: text, at }))
          )
          if (Arr.isArrayNonEmpty(rows)) {
            yield* sql`INSERT INTO palimpsest_turn_events ${sql.insert(rows)}
              ON CONFLICT (tenant, session, number) DO UPDATE
              SET name = excluded.name, event = excluded.event, at = excluded.at`
          }
          if (first !== undefined) {
            yield* sql`DELETE FROM palimpsest_turn_events
              WHERE tenant = ${tenant} AND session = ${id} AND (number < ${first} OR name <> ${name})`
          }
        }).pipe(
          Effect.tapError((error) => Effect.logWarning(`serve: the events of a turn are not stored: ${error.message}`)),
          Effect.ignore
        )
    }
  })
)
