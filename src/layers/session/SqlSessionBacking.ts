/**
 * Sessions in the tables of a database. The owner's epoch is checked in the statement that appends: a process that was considered dead and
 * resumes cannot write.
 */

import { Array, Clock, Effect, Layer, Option, Schedule, Schema, Semaphore } from "effect"
import { type Migrator, SqlClient, type SqlError, type Statement } from "effect/sql"
import { Hash } from "../../domain/content/Handle.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import {
  type BackedLine,
  type BackedRow,
  SessionBacking,
  type SessionOwner
} from "../../services/session/SessionBacking.ts"
import {
  SessionChanged,
  sessionError,
  SessionExists,
  SessionInTransaction,
  SessionNotFound,
  type SessionStoreError,
  SessionTaken,
  sessionUnavailable
} from "../../services/session/SessionStore.ts"
import { inTransaction, orConnectionLost } from "../platform/SqlTransaction.ts"
import { failureOf } from "./SessionStoreErrors.ts"
import {
  hold,
  isHeld,
  keyOf,
  type OwnedRow,
  ownId,
  release,
  type SessionTables,
  takeOwnership
} from "./SqlSessionOwners.ts"
import { migrate } from "./SqlSessionSchema.ts"

/** Lines inserted by one statement. */
const insertLines = 100

/** Options of sessions in a database. */
export interface SqlSessionOptions {
  /** Sessions of other tenants are invisible, even under the same id. */
  readonly tenant?: string | undefined
}

const isHash = Schema.is(Hash)

/** The innermost message: drivers wrap what the database said. */
const innermost = (error: unknown): string => {
  let text = errorText(error)
  for (let at = error; typeof at === "object" && at !== null;) {
    if ("message" in at && typeof at.message === "string" && at.message !== "") text = at.message
    at = "cause" in at ? at.cause : undefined
  }
  return text
}

/** The failure of an operation, in one line. */
export const databaseError = (
  operation: string,
  error: SqlError.SqlError | Migrator.MigrationError
): SessionStoreError => {
  const isAway = error._tag === "SqlError" && error.reason._tag === "ConnectionError"
  const reason = `${isAway ? "the database does not answer" : "the database refused it"} (${innermost(error)})`
  return sessionUnavailable(operation, `${failureOf(operation)}: ${reason}`, error)
}

const withSqlErrors =
  (operation: string) =>
  <A, R>(effect: Effect.Effect<A, SessionStoreError | SqlError.SqlError, R>): Effect.Effect<A, SessionStoreError, R> =>
    Effect.mapError(effect, (error) => (error._tag === "SqlError" ? databaseError(operation, error) : error))

/** Does nothing within a transaction of the caller's: its rollback would take back what this acknowledged. */
const outsideTransactions =
  ({ sql }: SessionTables, id: string) =>
  <A, E, R>(write: Effect.Effect<A, E, R>): Effect.Effect<A, E | SessionStoreError, R> =>
    Effect.flatMap(Effect.serviceOption(sql.transactionService), (open): Effect.Effect<A, E | SessionStoreError, R> =>
      Option.isSome(open) ? Effect.fail(sessionError(new SessionInTransaction({ id }))) : write
    )

/** Retries an idempotent operation: a restarting database is unavailable for a moment. */
const retried = <A, E extends SessionStoreError | SqlError.SqlError, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.retry(effect, {
    while: (error) => error._tag === "SqlError" && error.isRetryable,
    schedule: Schedule.exponential("100 millis").pipe(Schedule.upTo({ times: 5 }))
  })

const sizeOf = (text: string): number => Bytes.encode(text).length + 1

const insert = ({ sql }: SessionTables, session: string, lines: ReadonlyArray<BackedLine>) => {
  let size = 0
  const rows = lines.map(({ at, id, isCheckpoint, sequence, text }) => {
    size += sizeOf(text)
    return { session, sequence, id, line: text, is_checkpoint: isCheckpoint ? 1 : 0, at, size }
  })
  return Effect.forEach(
    Array.chunksOf(rows, insertLines),
    (page) => sql`INSERT INTO palimpsest_lines ${sql.insert(page)}`,
    { discard: true }
  )
}

const create = Effect.fnUntraced(function* (
  tables: SessionTables,
  id: string,
  head: string,
  lines: ReadonlyArray<BackedLine>
) {
  const { sql, tenant } = tables
  const session = keyOf(tables, id)
  const row = {
    session,
    tenant,
    id,
    head,
    epoch: 1,
    owner: yield* ownId(tables),
    owned_since: yield* Clock.currentTimeMillis
  }
  const made = yield* sql`INSERT INTO palimpsest_sessions ${sql.insert(row)} ON CONFLICT DO NOTHING RETURNING id`
  if (made.length === 0) return yield* sessionError(new SessionExists({ id }))
  yield* insert(tables, session, lines)
  return { session: id, epoch: 1 } satisfies SessionOwner
})

/** Why a line was not inserted; nothing, if it is there already. */
const refusal = Effect.fnUntraced(function* (
  tables: SessionTables,
  { epoch, session: id }: SessionOwner,
  line: BackedLine
) {
  const { sql } = tables
  const session = keyOf(tables, id)
  const [row] = yield* sql<{ epoch: number; id: string | null; line: string | null; last: number | null }>`
    SELECT s.epoch, l.id, l.line, (SELECT MAX(sequence) FROM palimpsest_lines WHERE session = ${session}) AS last
    FROM palimpsest_sessions s LEFT JOIN palimpsest_lines l ON l.session = s.session AND l.sequence = ${line.sequence}
    WHERE s.session = ${session}`
  if (row === undefined) return yield* sessionError(new SessionNotFound({ id }))
  if (row.id === line.id && row.line === line.text) return
  if (Number(row.epoch) !== epoch) return yield* sessionError(new SessionTaken({ id }))
  const lines = { expected: line.sequence - 1, found: Number(row.last ?? 0), unit: "lines" } as const
  return yield* sessionError(new SessionChanged({ id, ...lines }))
})

const append = Effect.fnUntraced(function* (tables: SessionTables, owner: SessionOwner, line: BackedLine) {
  const { lockOwner, sql } = tables
  const { at, id, isCheckpoint, sequence, text } = line
  const inserted = yield* sql`
    INSERT INTO palimpsest_lines (session, sequence, id, line, is_checkpoint, at, size)
    SELECT s.session, CAST(${sequence} AS INTEGER), ${id}, ${text}, CAST(${isCheckpoint ? 1 : 0} AS INTEGER),
      CAST(${at} AS BIGINT), p.size + CAST(${sizeOf(text)} AS BIGINT)
    FROM palimpsest_sessions s JOIN palimpsest_lines p
      ON p.session = s.session AND p.sequence = CAST(${sequence} AS INTEGER) - 1
    WHERE s.session = ${keyOf(tables, owner.session)} AND s.epoch = CAST(${owner.epoch} AS INTEGER) ${lockOwner}
    ON CONFLICT DO NOTHING RETURNING sequence`
  if (inserted.length === 0) yield* refusal(tables, owner, line)
})

const appendWithHead = (tables: SessionTables, owner: SessionOwner, line: BackedLine, head: string) =>
  inTransaction(
    tables.sql,
    Effect.andThen(
      tables.sql`UPDATE palimpsest_sessions SET head = ${head}
        WHERE session = ${keyOf(tables, owner.session)} AND epoch = ${owner.epoch}`,
      append(tables, owner, line)
    )
  )

interface ListedRow extends OwnedRow {
  readonly id: string
  readonly head: string
  readonly title: string | null
  readonly at: number | string | null
  readonly size: number | string | null
}

const ids = ({ sql, tenant }: SessionTables) =>
  Effect.map(
    sql<Pick<ListedRow, "id">>`SELECT id FROM palimpsest_sessions WHERE tenant = ${tenant}`,
    (rows): ReadonlyArray<string> => rows.map(({ id }) => id)
  )

const list = Effect.fnUntraced(function* (tables: SessionTables, id: string | undefined) {
  const { now, sql, tenant } = tables
  const where: Statement.Fragment =
    id === undefined ? sql`s.tenant = ${tenant}` : sql`s.session = ${keyOf(tables, id)} AND s.tenant = ${tenant}`
  const last = (column: "at" | "size") =>
    sql`(SELECT ${sql(column)} FROM palimpsest_lines WHERE session = s.session ORDER BY sequence DESC LIMIT 1)`
  const rows = yield* sql<ListedRow>`
    SELECT s.id, s.head, s.title, s.epoch, s.owner, s.owned_since, ${last("at")} AS at, ${last("size")} AS size,
      o.pid, o.process, ${now} - o.seen_at AS age
    FROM palimpsest_sessions s LEFT JOIN palimpsest_owners o ON o.id = s.owner
    WHERE ${where}`
  const owned = yield* Effect.filter(
    rows.filter(({ owner }) => owner !== null),
    (row) => isHeld(tables, keyOf(tables, row.id), row)
  )
  const held = new Set(owned)
  return rows.map((row): BackedRow => ({
    id: row.id,
    head: row.head,
    title: row.title ?? undefined,
    updatedAt: Number(row.at ?? 0),
    bytes: Number(row.size ?? 0),
    holder: held.has(row) ? { pid: Number(row.pid ?? 0), since: Number(row.owned_since ?? 0) } : undefined
  }))
})

const remove = Effect.fnUntraced(function* (tables: SessionTables, id: string) {
  const { sql } = tables
  const session = keyOf(tables, id)
  const deleted = (name: string) => sql`DELETE FROM ${sql(name)} WHERE session = ${session}`
  const owned = yield* Effect.catchReason(
    takeOwnership(tables, id, false),
    "SessionStoreError",
    "SessionNotFound",
    () => Effect.undefined
  )
  yield* inTransaction(
    tables.sql,
    Effect.gen(function* () {
      const gone = yield* sql`DELETE FROM palimpsest_sessions
        WHERE session = ${session} AND epoch = ${owned?.epoch ?? 0} RETURNING id`
      if (owned !== undefined && gone.length === 0) return yield* sessionError(new SessionTaken({ id }))
      yield* deleted("palimpsest_lines")
      yield* deleted("palimpsest_blobs")
    })
  )
  if (owned === undefined) return yield* sessionError(new SessionNotFound({ id }))
})

const read = ({ sql }: SessionTables, session: string, from: number, to: number) =>
  Effect.map(
    sql<{ sequence: number; id: string; line: string; is_checkpoint: number; at: number | string }>`
      SELECT sequence, id, line, is_checkpoint, at FROM palimpsest_lines
      WHERE session = ${session} AND sequence >= ${from} AND sequence < ${to} ORDER BY sequence`,
    (rows) =>
      rows.map((row): BackedLine => ({
        sequence: row.sequence,
        id: row.id,
        text: row.line,
        isCheckpoint: row.is_checkpoint === 1,
        at: Number(row.at)
      }))
  )

const lastCheckpoint = ({ sql }: SessionTables, session: string) =>
  Effect.map(
    sql<{ last: number | null }>`SELECT MAX(sequence) AS last FROM palimpsest_lines
      WHERE session = ${session} AND is_checkpoint = 1`,
    ([row]) => row?.last ?? undefined
  )

const rename = Effect.fnUntraced(function* (tables: SessionTables, id: string, title: string | undefined) {
  const renamed = yield* tables.sql`UPDATE palimpsest_sessions SET title = ${title ?? null}
    WHERE session = ${keyOf(tables, id)} RETURNING id`
  if (renamed.length === 0) return yield* sessionError(new SessionNotFound({ id }))
})

const getBlob = ({ sql }: SessionTables, session: string, hash: string) =>
  Effect.map(
    sql<{ bytes: Uint8Array }>`SELECT bytes FROM palimpsest_blobs WHERE session = ${session} AND hash = ${hash}`,
    ([row]) => row?.bytes
  )

const findBlobs = ({ sql }: SessionTables, session: string, prefix: string) =>
  Effect.map(
    sql<{ hash: string }>`SELECT hash FROM palimpsest_blobs
      WHERE session = ${session} AND SUBSTR(hash, 1, ${prefix.length}) = ${prefix} ${sql.literal(prefix === "" ? "" : "LIMIT 2")}`,
    (rows) => rows.map(({ hash }) => hash).filter(isHash)
  )

const openTables = Effect.fnUntraced(function* ({ tenant = "" }: SqlSessionOptions) {
  const sql = yield* SqlClient.SqlClient
  if (Option.isSome(yield* Effect.serviceOption(sql.transactionService))) {
    return yield* sessionUnavailable(
      "open the database",
      "the store of sessions cannot be opened within a transaction, which could take its tables back; provide its layer outside"
    )
  }
  const isPg = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
  const newer = yield* Effect.mapError(Effect.catchCause(migrate(), orConnectionLost), (error) =>
    databaseError("open the database", error)
  )
  if (newer !== undefined) {
    return yield* sessionUnavailable(
      "open the database",
      `the database of the sessions was made by a newer version (its tables are version ${newer}); update palimpsest to use it`
    )
  }
  const now = isPg
    ? "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
    : "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
  return {
    sql,
    now: sql.literal(now),
    lockOwner: sql.literal(isPg ? "FOR SHARE OF s" : ""),
    tenant,
    scope: yield* Effect.scope,
    registering: yield* Semaphore.make(1),
    registered: undefined,
    held: new Map()
  }
})

const makeBacking = Effect.fnUntraced(function* (options: SqlSessionOptions) {
  const tables = yield* openTables(options)
  const { sql } = tables
  const key = (id: string): string => keyOf(tables, id)
  const writes = (id: string) => outsideTransactions(tables, id)
  const owned = (
    operation: string,
    id: string,
    owner: Effect.Effect<SessionOwner, SessionStoreError | SqlError.SqlError>
  ) =>
    Effect.acquireRelease(
      Effect.tap(owner, (ownership) => hold(tables, ownership)).pipe(writes(id), withSqlErrors(operation)),
      (ownership) => release(tables, ownership)
    )

  return SessionBacking.of({
    create: (id, head, lines) => owned("create", id, inTransaction(tables.sql, create(tables, id, head, lines))),
    own: (id, takeOver) => owned("open", id, takeOwnership(tables, id, takeOver)),
    append: (owner, line, head) =>
      (head === undefined ? append(tables, owner, line) : appendWithHead(tables, owner, line, head)).pipe(
        retried,
        writes(owner.session),
        withSqlErrors("append")
      ),
    checkWritable: (id) => writes(id)(Effect.void),
    read: (id, from, to) => withSqlErrors("read")(retried(read(tables, key(id), from, to))),
    lastCheckpoint: (id) => withSqlErrors("read")(retried(lastCheckpoint(tables, key(id)))),
    ids: withSqlErrors("list")(retried(ids(tables))),
    list: (id) => withSqlErrors("list")(retried(list(tables, id))),
    rename: (id, title) => rename(tables, id, title).pipe(writes(id), withSqlErrors("rename")),
    remove: (id) => remove(tables, id).pipe(writes(id), withSqlErrors("remove")),
    putBlob: (id, hash, bytes) =>
      sql`INSERT INTO palimpsest_blobs ${sql.insert({ session: key(id), hash, bytes })} ON CONFLICT DO NOTHING`.pipe(
        Effect.asVoid,
        retried,
        writes(id),
        withSqlErrors("append")
      ),
    getBlob: (id, hash) => withSqlErrors("read")(retried(getBlob(tables, key(id), hash))),
    findBlobs: (id, prefix) => withSqlErrors("read")(retried(findBlobs(tables, key(id), prefix)))
  })
})

/** Sessions in the database of the context. Makes their tables, or brings older ones up to date, when it is built. */
export const make = (
  options: SqlSessionOptions = {}
): Layer.Layer<SessionBacking, SessionStoreError, SqlClient.SqlClient> =>
  Layer.effect(SessionBacking, makeBacking(options))
