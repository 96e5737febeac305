/** What clients set for sessions, in a table of the database. */

import { Effect, Layer, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { changedText, decode, SessionRecords } from "../../services/serve/SessionRecords.ts"
import type { SessionStoreError } from "../../services/session/SessionStore.ts"
import { inTransaction } from "../platform/SqlTransaction.ts"
import { databaseError } from "../session/SqlSessionBacking.ts"

/** The records of a tenant. Of two servers that make the table at the same time, one fails, and finds it at its next attempt. */
export const layer = (tenant: string) =>
  Layer.effect(
    SessionRecords,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const inDatabase = (operation: string) =>
        Effect.mapError((error: SessionStoreError | SqlError.SqlError) =>
          error._tag === "SqlError" ? databaseError(operation, error) : error
        )
      yield* sql`CREATE TABLE IF NOT EXISTS palimpsest_session_records (
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (tenant, session)
      )`.pipe(Effect.retry({ schedule: Schedule.spaced("100 millis"), times: 3 }), inDatabase("open the database"))
      return SessionRecords.of({
        get: (ids) =>
          ids?.length === 0
            ? Effect.succeed(new Map())
            : sql<{ readonly session: string; readonly record: string }>`SELECT session, record
                FROM palimpsest_session_records WHERE tenant = ${tenant}
                AND ${ids === undefined ? sql`TRUE` : sql.in("session", ids)}`.pipe(
                Effect.map((rows) => new Map(rows.map(({ record, session }) => [session, decode(record)]))),
                inDatabase("read")
              ),
        change: (id, to) =>
          Effect.gen(function* () {
            // The row is locked until the end: another change waits, and sees this one.
            const [row] = yield* sql<{ readonly record: string }>`INSERT INTO palimpsest_session_records AS kept
              ${sql.insert({ tenant, session: id, record: "{}" })}
              ON CONFLICT (tenant, session) DO UPDATE SET record = kept.record RETURNING record`
            const record = yield* changedText(id, decode(row?.record ?? "{}"), to)
            yield* sql`UPDATE palimpsest_session_records SET record = ${record}
              WHERE tenant = ${tenant} AND session = ${id}`
          }).pipe((work) => inTransaction(sql, work), inDatabase("append")),
        remove: (id) =>
          sql`DELETE FROM palimpsest_session_records WHERE tenant = ${tenant} AND session = ${id}`.pipe(
            Effect.asVoid,
            inDatabase("remove")
          )
      })
    })
  )
