/** The SQL client for Node's own SQLite. */

import { Effect, Layer, Schedule, Schema, Semaphore, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError, Statement } from "effect/sql"
import { Buffer } from "node:buffer"
import { closeSync, openSync, statSync } from "node:fs"
import path from "node:path"
import process from "node:process"
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite"
import { errorText } from "../../domain/text/ErrorText.ts"
import { makeFoldersSync } from "./MakeFolders.ts"
import { sqlite } from "./NodeSqlite.ts"

/** A database of SQLite could not be opened. */
export class SqliteUnavailable extends Schema.TaggedError<SqliteUnavailable>()("SqliteUnavailable", {
  filename: Schema.String,
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Compiled statements kept per connection. */
const maxStatements = 200
/** How long SQLite itself waits for another process, which blocks this thread. After that, the fiber waits. */
const busyMillis = 50
const busySchedule = Schedule.spaced("20 millis").pipe(Schedule.upTo({ times: 100 }))

/** Names of this program's tables, and of those of Effect's cluster. */
const ownName = /^(?:palimpsest|cluster)_/i

/**
 * Returns what stands in a database under a name of ours and is no plain table: a view, a virtual table, a computed column or a
 * trigger. The file may come from somebody else, and reading or writing such a table would run what they wrote, for ever if they
 * want. SQLite's pragmas say what it read; rows of the schema can say something else.
 */
const foreignPart = (database: DatabaseSync): string | undefined => {
  const names = (sql: string) => database.prepare(sql).all()
  for (const { name, type } of names("pragma main.table_list")) {
    const table = String(name)
    if (!ownName.test(table)) continue
    if (type !== "table") return `${table} is a ${type === "view" ? "view" : `${String(type)} table`}`
    const computed = names(`pragma main.table_xinfo("${table.replaceAll('"', '""')}")`).find(
      ({ hidden }) => hidden !== 0
    )
    if (computed !== undefined) return `${table}.${String(computed.name)} is computed`
  }
  const triggers = names("select sql from main.sqlite_schema where sql like 'create%trigger%'")
  return triggers.some(({ sql }) => /(?:palimpsest|cluster)_/i.test(String(sql)))
    ? "its tables have triggers"
    : undefined
}

const openDatabase = Effect.fnUntraced(function* (filename: string) {
  const failed = (message: string) => (cause: unknown) =>
    new SqliteUnavailable({ filename: String(filename), message, cause })
  const tooOld = failed(`SQLite needs Node 22.16 or newer, and this is ${process.versions.node}`)
  const loaded = yield* sqlite
  if (loaded === undefined) return yield* tooOld(undefined)
  const database = yield* Effect.try({
    try: () => {
      if (filename !== ":memory:") {
        // Opening a pipe would wait for a reader.
        if (statSync(filename, { throwIfNoEntry: false })?.isFile() === false)
          throw new Error("it is not a regular file")
        // Conversations are private, and SQLite would create a file that others can read.
        makeFoldersSync(path.dirname(path.resolve(filename)), 0o700)
        closeSync(openSync(filename, "a", 0o600))
      }
      const database = new loaded.DatabaseSync(filename, { timeout: busyMillis })
      try {
        // What was committed is on disk. A list of thousands of sessions reads more pages than SQLite keeps by default (2 MB).
        database.exec(
          "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA cache_size = -32768"
        )
        const foreign = foreignPart(database)
        if (foreign === undefined) return database
        throw new Error(`${foreign}, which this program did not make`)
      } catch (error) {
        database.close()
        throw error
      }
    },
    catch: (cause) => failed(`the database ${filename} cannot be opened: ${errorText(cause)}`)(cause)
  })
  return typeof database.isTransaction === "boolean" ? database : yield* tooOld(undefined)
})

/** Whether this Node has a usable SQLite. */
export const isAvailable: Effect.Effect<boolean> = Effect.map(sqlite, (loaded) => {
  if (loaded === undefined) return false
  const database = new loaded.DatabaseSync(":memory:")
  const isNewEnough = typeof database.isTransaction === "boolean"
  database.close()
  return isNewEnough
})

const isBusy = ({ reason }: SqlError.SqlError): boolean => reason._tag === "LockTimeoutError"

const sqlError = (cause: unknown): SqlError.SqlError => {
  // Effect looks for SQLite's number in this field.
  const numbered =
    typeof cause === "object" && cause !== null && "errcode" in cause
      ? { message: errorText(cause), errno: cause.errcode }
      : cause
  return new SqlError.SqlError({
    reason: SqlError.classifySqliteError(numbered, { message: errorText(cause), operation: "execute" })
  })
}

const inputOf = (value: unknown): SQLInputValue => {
  if (value === null || value === undefined) return null
  if (typeof value === "boolean") return value ? 1 : 0
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "string") return value
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (value instanceof Date) return value.toISOString()
  throw new TypeError(`SQLite cannot store ${typeof value}`)
}

type Run<A> = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>) => A

const connectionOf = (database: DatabaseSync): SqlConnection.Connection => {
  const statements = new Map<string, StatementSync>()
  const prepared = (sql: string): StatementSync => {
    const cached = statements.get(sql)
    if (cached !== undefined) return cached
    if (statements.size >= maxStatements) statements.clear()
    const statement = database.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
  const run = <A>(sql: string, params: ReadonlyArray<unknown>, f: Run<A>) => {
    const once = Effect.withFiber<A, SqlError.SqlError>((fiber) =>
      Effect.try({
        try: () => {
          const statement = prepared(sql)
          statement.setReadBigInts(fiber.getRef(SqlClient.SafeIntegers))
          return f(statement, params.map(inputOf))
        },
        catch: sqlError
      })
    )
    // Within a transaction the lock is held already; without, another process may have it.
    return Effect.retry(once, {
      while: (error) => isBusy(error) && !database.isTransaction,
      schedule: busySchedule
    })
  }
  const all: Run<ReadonlyArray<object>> = (statement, params) => statement.all(...params)
  const values: Run<ReadonlyArray<ReadonlyArray<unknown>>> = (statement, params) =>
    statement.all(...params).map((row) => Object.values(row))
  const execute: SqlConnection.Connection["execute"] = (sql, params, transform) =>
    Effect.map(run(sql, params, all), (rows) => (transform === undefined ? rows : transform(rows)))
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: (sql, params) => run(sql, params, (statement, inputs) => statement.run(...inputs)),
    executeValues: (sql, params) => run(sql, params, values),
    executeValuesUnprepared: (sql, params) => run(sql, params, values),
    executeStream: (sql, params, transform) =>
      Stream.unwrap(Effect.map(execute(sql, params, transform), Stream.fromArray))
  }
}

const makeClient = Effect.fnUntraced(function* (filename: string) {
  const database = yield* Effect.acquireRelease(openDatabase(filename), (opened) => Effect.sync(() => opened.close()))
  const { acquirer, borrower, isTransaction, onCommitFailure, transactionAcquirer } = SqlClient.makeSqliteAcquirers({
    connection: Effect.succeed(connectionOf(database)),
    semaphore: yield* Semaphore.make(1),
    isTransaction: () => database.isTransaction
  })
  return yield* SqlClient.make({
    acquirer,
    borrower,
    transactionAcquirer,
    onCommitFailure,
    isTransaction,
    compiler: Statement.makeCompilerSqlite(),
    driver: "node-sqlite",
    // A transaction that reads before it writes would fail if another process wrote in between.
    beginTransaction: "BEGIN IMMEDIATE",
    prepareTransactionControls: true,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    spanAttributes: [["db.system.name", "sqlite"]]
  })
})

/**
 * A `SqlClient` over Node's own SQLite, and a file that it creates with its folder (modes 0600 and 0700), or `:memory:`. What was
 * committed is on disk (WAL, `synchronous = FULL`). Statements run at once, on this thread. Several processes may use the file.
 */
export const layer = (filename: string): Layer.Layer<SqlClient.SqlClient, SqliteUnavailable> =>
  Layer.provide(Layer.effect(SqlClient.SqlClient, makeClient(filename)), Reactivity.layer)
