/**
 * The tables of sessions in a database, and how a database of an older version becomes one of this version. A migration that was
 * released is never changed: a change is a new one.
 */

import { Effect } from "effect"
import { Migrator, SqlClient } from "effect/sql"

const table = "palimpsest_migrations"

const bytesType = (sql: SqlClient.SqlClient) =>
  sql.onDialectOrElse({ pg: () => sql.literal("BYTEA"), orElse: () => sql.literal("BLOB") })

const sessions = SqlClient.SqlClient.use((sql) =>
  Effect.gen(function* () {
    yield* sql`CREATE TABLE palimpsest_owners (
      id TEXT PRIMARY KEY,
      pid INTEGER NOT NULL,
      process TEXT NOT NULL,
      seen_at BIGINT NOT NULL
    )`
    yield* sql`CREATE TABLE palimpsest_sessions (
      session TEXT PRIMARY KEY,
      tenant TEXT NOT NULL,
      id TEXT NOT NULL,
      head TEXT NOT NULL,
      title TEXT,
      epoch INTEGER NOT NULL,
      owner TEXT,
      owned_since BIGINT
    )`
    yield* sql`CREATE INDEX palimpsest_sessions_tenant ON palimpsest_sessions (tenant)`
    yield* sql`CREATE TABLE palimpsest_lines (
      session TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      id TEXT NOT NULL,
      line TEXT NOT NULL,
      is_checkpoint INTEGER NOT NULL,
      at BIGINT NOT NULL,
      size BIGINT NOT NULL,
      PRIMARY KEY (session, sequence),
      UNIQUE (session, id)
    )`
    yield* sql`CREATE TABLE palimpsest_blobs (
      session TEXT NOT NULL,
      hash TEXT NOT NULL,
      bytes ${bytesType(sql)} NOT NULL,
      PRIMARY KEY (session, hash)
    )`
  })
)

/** Opening a session looks for its last checkpoint. */
const checkpoints = SqlClient.SqlClient.use(
  (sql) => sql`CREATE INDEX palimpsest_checkpoints ON palimpsest_lines (session, sequence) WHERE is_checkpoint = 1`
)

/** A list reads the time and size of each session's last line, without the line. */
const lastLines = SqlClient.SqlClient.use(
  (sql) => sql`CREATE INDEX palimpsest_last_lines ON palimpsest_lines (session, sequence, at, size)`
)

/** The migrations, by number and name. */
export const migrations = { "0001_sessions": sessions, "0002_checkpoints": checkpoints, "0003_last_lines": lastLines }

const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** Brings the tables up to this version. Returns the version of the tables if it is newer than this one, else undefined. */
export const migrate = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Migrator.make({})({ loader: Migrator.fromRecord(migrations), table })
  const [row] = yield* sql<{ latest: number }>`SELECT MAX(migration_id) AS latest FROM ${sql(table)}`
  const latest = Number(row?.latest ?? 0)
  return latest > newest ? latest : undefined
})
