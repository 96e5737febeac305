/** Provides `GatewayStore` from a table of a SQL database. */

import { Clock, Effect, Layer } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { GatewayStore, GatewayStoreError } from "../../services/gateway/GatewayStore.ts"

const dayMillis = 86_400_000

/** A database that does not answer must not hold requests up. */
const deadline = "3 seconds"

const table = "palimpsest_gateway"

/** The tables, by version. A migration that was released is never changed: a change is a new one. */
const migrations = {
  "0001_texts": SqlClient.SqlClient.use((sql) =>
    Effect.gen(function* () {
      yield* sql`CREATE TABLE ${sql(table)} (
        owner TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        text TEXT NOT NULL,
        used_at BIGINT NOT NULL,
        PRIMARY KEY (owner, kind, name)
      )`
      yield* sql`CREATE INDEX palimpsest_gateway_used ON ${sql(table)} (used_at)`
    })
  )
}

/**
 * Texts in a table of the database of the context, SQLite or PostgreSQL, which several gateways may share. What was neither written
 * nor read for `keepDays` is removed at the start.
 */
export const layer = (keepDays: number): Layer.Layer<GatewayStore, GatewayStoreError, SqlClient.SqlClient> =>
  Layer.effect(
    GatewayStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const withStoreErrors =
        (operation: string) =>
        <A, E extends { readonly message: string }>(effect: Effect.Effect<A, E>): Effect.Effect<A, GatewayStoreError> =>
          effect.pipe(
            Effect.timeout(deadline),
            Effect.mapError(
              (cause) =>
                new GatewayStoreError({ message: `cannot ${operation} in the database: ${cause.message}`, cause })
            )
          )
      yield* Migrator.make({})({
        loader: Migrator.fromRecord(migrations),
        table: "palimpsest_gateway_migrations"
      }).pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        Effect.mapError(
          (cause) => new GatewayStoreError({ message: `cannot open the database: ${cause.message}`, cause })
        )
      )
      const oldest = (yield* Clock.currentTimeMillis) - keepDays * dayMillis
      yield* Effect.forkScoped(Effect.ignore(sql`DELETE FROM ${sql(table)} WHERE used_at < ${oldest}`, { log: "Warn" }))
      return {
        names: (owner, kind) =>
          sql<{ name: string }>`SELECT name FROM ${sql(table)} WHERE owner = ${owner} AND kind = ${kind}`.pipe(
            Effect.map((rows) => rows.map(({ name }) => name)),
            withStoreErrors("read")
          ),
        get: Effect.fnUntraced(function* (owner, kind, name) {
          const where = sql`owner = ${owner} AND kind = ${kind} AND name = ${name}`
          const [row] = yield* sql<{ text: string }>`SELECT text FROM ${sql(table)} WHERE ${where}`
          const now = yield* Clock.currentTimeMillis
          if (row !== undefined) {
            yield* Effect.ignore(
              sql`UPDATE ${sql(table)} SET used_at = ${now} WHERE ${where} AND used_at < ${now - dayMillis}`
            )
          }
          return row?.text
        }, withStoreErrors("read")),
        put: Effect.fnUntraced(function* (owner, kind, name, text) {
          const now = yield* Clock.currentTimeMillis
          const row = { owner, kind, name, text, used_at: now }
          yield* sql`INSERT INTO ${sql(table)} ${sql.insert(row)}
            ON CONFLICT (owner, kind, name) DO UPDATE SET text = excluded.text, used_at = excluded.used_at`
        }, withStoreErrors("write"))
      }
    })
  )
