/**
 * The owners of sessions in a database. Each session has an epoch, which grows with every change of owner. An owner that does
 * not renew its row for `leaseMillis` counts as dead, and one whose process ended on this machine counts as dead at once.
 */

import { Cause, Clock, Context, Effect, Option, Schema, Scope, type Semaphore } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { ProcessOwner } from "../../domain/platform/ProcessOwner.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { Processes, processStatus } from "../../services/platform/ProcessIdentity.ts"
import type { SessionOwner } from "../../services/session/SessionBacking.ts"
import { sessionError, SessionLocked, SessionNotFound } from "../../services/session/SessionStore.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

const leaseMillis = 30_000
const renewal = "8 seconds"
/** A finalizer does not wait for a database that is away. */
const finalizerDeadline = "5 seconds"

const withinDeadline = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  // Also if the connections were closed first, which interrupts the query.
  Effect.interruptible(effect).pipe(
    Effect.timeoutOption(finalizerDeadline),
    Effect.tapCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logDebug("a session could not be released", cause)
    ),
    Effect.exit,
    Effect.asVoid
  )

const decodeProcess = Schema.decodeUnknownOption(fromJson(ProcessOwner))

/** The owner of a session, as its row and the row of the owner have it. */
export interface OwnedRow {
  readonly epoch: number
  readonly owner: string | null
  readonly owned_since: number | string | null
  readonly pid: number | null
  readonly process: string | null
  /** Milliseconds since the owner renewed its row. */
  readonly age: number | string | null
}

/** The tables of one database, as one layer uses them. */
export interface SessionTables {
  readonly sql: SqlClient.SqlClient
  /** SQL for the database's clock, in milliseconds. */
  readonly now: Statement.Fragment
  /** SQL that keeps the owner of a session from changing while a line is inserted. */
  readonly lockOwner: Statement.Fragment
  readonly tenant: string
  /** Ends with the layer. */
  readonly scope: Scope.Scope
  readonly registering: Semaphore.Semaphore
  /** The id of this layer among the owners, once it has owned a session. */
  registered: string | undefined
  /** The epochs of the sessions that this layer owns. A release that did not reach the database counts nevertheless. */
  readonly held: Map<string, number>
}

/** The key of a session's rows. Ids have no slash. */
export const keyOf = ({ tenant }: SessionTables, id: string): string => (tenant === "" ? id : `${tenant}/${id}`)

/** Owners of this process whose layers are closed; the database may still list them. */
const closedOwners = new Set<string>()

/** Whether the owner of a row is alive, as far as this process can tell. */
const isAlive = Effect.fnUntraced(function* ({ age, owner, process }: Pick<OwnedRow, "age" | "owner" | "process">) {
  if (owner === null || age === null || Number(age) > leaseMillis || closedOwners.has(owner)) return false
  const decoded = decodeProcess(process)
  return decoded._tag === "None" || (yield* ThisProcess.provide(processStatus(decoded.value))) !== "gone"
})

/** Adds this layer to the owners and renews its row until the layer closes. */
const register = Effect.fnUntraced(function* (tables: SessionTables) {
  const { now, scope, sql } = tables
  if (tables.registered !== undefined) return tables.registered
  const processes = yield* Processes
  const own = yield* processes.self
  const id = `${own?.pid ?? 0}-${yield* processes.unique}`
  const renew = sql`INSERT INTO palimpsest_owners (id, pid, process, seen_at)
    VALUES (${id}, ${own?.pid ?? 0}, ${JSON.stringify(own ?? null)}, ${now})
    ON CONFLICT (id) DO UPDATE SET seen_at = ${now}`
  yield* sql`DELETE FROM palimpsest_owners WHERE seen_at < ${now} - 86400000`
  yield* renew
  const leave = withinDeadline(sql`DELETE FROM palimpsest_owners WHERE id = ${id}`)
  yield* Scope.addFinalizer(
    scope,
    Effect.andThen(
      Effect.sync(() => closedOwners.add(id)),
      leave
    )
  )
  yield* Effect.forkIn(
    Effect.forever(Effect.andThen(Effect.sleep(renewal), Effect.ignore(renew, { log: "Debug" }))),
    scope
  )
  tables.registered = id
  return id
})

/** The id of this layer among the owners. Its row is made when the layer first owns a session. */
export const ownId = (tables: SessionTables): Effect.Effect<string, SqlError.SqlError> =>
  register(tables).pipe(ThisProcess.provide, Effect.uninterruptible, tables.registering.withPermit)

const ownedRow = ({ now, sql }: SessionTables, session: string) =>
  Effect.map(
    sql<OwnedRow>`SELECT s.epoch, s.owner, s.owned_since, o.pid, o.process, ${now} - o.seen_at AS age
      FROM palimpsest_sessions s LEFT JOIN palimpsest_owners o ON o.id = s.owner WHERE s.session = ${session}`,
    ([row]) => row
  )

/** Whether a live owner holds the session. */
export const isHeld = (
  { held, registered }: SessionTables,
  session: string,
  row: Pick<OwnedRow, "age" | "epoch" | "owner" | "process">
) =>
  row.owner !== null && row.owner === registered
    ? Effect.succeed(held.get(session) === Number(row.epoch))
    : isAlive(row)

/** Remembers that this layer owns a session. */
export const hold = (tables: SessionTables, owner: SessionOwner): Effect.Effect<void> =>
  Effect.sync(() => {
    tables.held.set(keyOf(tables, owner.session), owner.epoch)
  })

/** Releases a session, unless it has another owner by now. Within a transaction, once that has ended: its rollback would undo it. */
export const release = (tables: SessionTables, { epoch, session }: SessionOwner): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { held, sql } = tables
    const key = keyOf(tables, session)
    if (held.get(key) === epoch) held.delete(key)
    const freed = withinDeadline(
      sql`UPDATE palimpsest_sessions SET owner = NULL WHERE session = ${key} AND epoch = ${epoch}`
    )
    return Effect.flatMap(Effect.serviceOption(sql.transactionService), (open) =>
      Option.isNone(open)
        ? freed
        : Effect.asVoid(
            freed.pipe(
              Effect.updateContext((context: Context.Context<never>) => Context.omit(sql.transactionService)(context)),
              Effect.forkIn(tables.scope)
            )
          )
    )
  })

/** Takes the next epoch of a session, unless another process takes it at the same time: then it looks again. */
export const takeOwnership = Effect.fnUntraced(function* (tables: SessionTables, id: string, takeOver: boolean) {
  const key = keyOf(tables, id)
  for (;;) {
    const row = yield* ownedRow(tables, key)
    if (row === undefined) return yield* sessionError(new SessionNotFound({ id }))
    if (!takeOver && (yield* isHeld(tables, key, row))) {
      const holder = { pid: Number(row.pid ?? 0), since: Number(row.owned_since ?? 0) }
      return yield* sessionError(new SessionLocked({ id, ...holder }))
    }
    const since = yield* Clock.currentTimeMillis
    const updated = yield* tables.sql`UPDATE palimpsest_sessions
      SET epoch = epoch + 1, owner = ${yield* ownId(tables)}, owned_since = ${since}
      WHERE session = ${key} AND epoch = ${row.epoch} RETURNING epoch`
    if (updated.length > 0) return { session: id, epoch: Number(row.epoch) + 1 }
  }
})
