/** The use of tenants in two tables of PostgreSQL, by its clock. Without the database, each process counts alone. */

import { Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { periods } from "../../domain/serve/TenantUsage.ts"
import { newId } from "../../services/platform/NewId.ts"
import { SharedUsage, type UsageOfAll } from "../../services/serve/TenantLimiter.ts"
import { inTransaction } from "../platform/SqlTransaction.ts"
import { makeTables } from "./ClusterEngine.ts"

/** How often a process renews what it holds. What it does not renew for 20 seconds is free. */
const renewal = "5 seconds"
/** Time after which the counts of this process decide. */
const patience = "5 seconds"

const tables = (sql: SqlClient.SqlClient) => [
  sql`CREATE TABLE IF NOT EXISTS palimpsest_usage (
      tenant TEXT NOT NULL,
      kind TEXT NOT NULL,
      began TIMESTAMPTZ NOT NULL,
      used BIGINT NOT NULL,
      PRIMARY KEY (tenant, kind)
    )`,
  sql`CREATE TABLE IF NOT EXISTS palimpsest_holds (
      tenant TEXT NOT NULL,
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      process TEXT NOT NULL,
      until TIMESTAMPTZ NOT NULL DEFAULT now() + interval '20 seconds',
      PRIMARY KEY (tenant, kind, name, process)
    )`,
  // The tokens that a request may cost. Tables of earlier versions lack it.
  sql`ALTER TABLE palimpsest_holds ADD COLUMN IF NOT EXISTS amount BIGINT NOT NULL DEFAULT 1`
]

const decodeSums = Schema.decodeUnknownEffect(
  Schema.Tuple([Schema.Struct({ used: Schema.Finite, age: Schema.Finite })])
)

/** Adds to what a tenant used in the current period, and returns its sum. */
const added = (sql: SqlClient.SqlClient, ...[tenant, kind, amount]: Parameters<UsageOfAll["add"]>) => {
  const isCurrent = sql`usage.began > now() - (${periods[kind] / 1_000})::FLOAT8 * interval '1 second'`
  const counted = sql`INSERT INTO palimpsest_usage AS usage (tenant, kind, began, used)
    VALUES (${tenant}, ${kind}, now(), ${amount})
    ON CONFLICT (tenant, kind) DO UPDATE SET
      used = excluded.used + CASE WHEN ${isCurrent} THEN usage.used ELSE 0 END,
      began = CASE WHEN ${isCurrent} THEN usage.began ELSE now() END
    RETURNING used::FLOAT8 AS used, EXTRACT(EPOCH FROM now() - began)::FLOAT8 AS age`
  return Effect.map(Effect.flatMap(counted, decodeSums), ([{ age, used }]) => ({ used, ageMillis: age * 1_000 }))
}

/** Asks the database, and returns undefined where it does not answer. Warns once until it answers again. */
const aloneWithout = () => {
  let isAlone = false
  return <A, E extends { readonly message: string }>(work: Effect.Effect<A, E>) =>
    work.pipe(
      Effect.timeout(patience),
      Effect.tap(Effect.sync(() => void (isAlone = false))),
      Effect.catch(({ message }) =>
        Effect.suspend(() => {
          const isKnown = isAlone
          isAlone = true
          const warning = Effect.logWarning(`serve: this process counts limits alone: ${message}`)
          return Effect.as(isKnown ? Effect.void : warning, undefined)
        })
      )
    )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* makeTables("limits", tables(sql))
  const process = yield* newId
  /** What was taken and given back while the database was away, by key. */
  const missed = new Map<string, Effect.Effect<unknown, SqlError.SqlError>>()
  const alone = aloneWithout()

  const add: UsageOfAll["add"] = (tenant, kind, amount) => alone(added(sql, tenant, kind, amount))
  // A turn is the same in two processes; a stream and a request are not.
  const nameOf = (kind: Parameters<UsageOfAll["take"]>[1], name: string) =>
    kind === "turns" ? name : `${process} ${name}`

  const take: UsageOfAll["take"] = Effect.fnUntraced(function* (tenant, kind, of, limit, amount = 1) {
    const name = nameOf(kind, of)
    const held = sql`FROM palimpsest_holds WHERE tenant = ${tenant} AND kind = ${kind} AND until > now()`
    const isFree =
      limit === undefined
        ? sql`TRUE`
        : kind === "reserved"
          ? sql`(SELECT COALESCE(SUM(amount), 0) ${held}) < ${limit}`
          : sql`EXISTS (SELECT 1 ${held} AND name = ${name}) OR (SELECT COUNT(DISTINCT name) ${held}) < ${limit}`
    const hold = (condition: Statement.Fragment) =>
      sql`INSERT INTO palimpsest_holds (tenant, kind, name, process, amount)
        SELECT ${tenant}, ${kind}, ${name}, ${process}, ${amount} WHERE ${condition}
        ON CONFLICT (tenant, kind, name, process) DO UPDATE SET until = excluded.until RETURNING name`
    // The row is locked until the end: no other process counts in the meantime.
    const locked = sql`INSERT INTO palimpsest_usage (tenant, kind, began, used) VALUES (${tenant}, ${kind}, now(), 0)
      ON CONFLICT (tenant, kind) DO UPDATE SET began = now()`
    const taking = limit === undefined ? hold(isFree) : inTransaction(sql, Effect.andThen(locked, hold(isFree)))
    const rows = yield* alone(taking)
    if (rows === undefined) missed.set([tenant, kind, of].join(" "), hold(sql`TRUE`))
    return rows?.length !== 0
  })

  const give: UsageOfAll["give"] = Effect.fnUntraced(function* (tenant, kind, of) {
    const gone = sql`DELETE FROM palimpsest_holds WHERE tenant = ${tenant} AND kind = ${kind}
      AND name = ${nameOf(kind, of)} AND process = ${process}`
    const key = [tenant, kind, of].join(" ")
    missed.delete(key)
    if ((yield* alone(gone)) === undefined) missed.set(key, gone)
  })

  const renew = Effect.gen(function* () {
    yield* sql`UPDATE palimpsest_holds SET until = DEFAULT WHERE process = ${process}`
    yield* sql`DELETE FROM palimpsest_holds WHERE until < now()`
    for (const [key, work] of missed) {
      missed.delete(key)
      yield* Effect.onError(work, () => Effect.sync(() => missed.has(key) || missed.set(key, work)))
    }
  })
  yield* Effect.forkScoped(Effect.repeat(Effect.delay(alone(renew), renewal), Schedule.forever))
  yield* Effect.addFinalizer(() => alone(sql`DELETE FROM palimpsest_holds WHERE process = ${process}`))
  return { add, take, give }
})

/** The counts of all servers, with their tables. */
export const layer = Layer.effect(SharedUsage, make)
