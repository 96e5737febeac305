import { Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { type SessionStore, type SessionStoreError, sessionUnavailable } from "../../services/session/SessionStore.ts"
import * as BackedSessionStore from "./BackedSessionStore.ts"
import * as SqlSessionBacking from "./SqlSessionBacking.ts"

/** Options of sessions in PostgreSQL. */
export interface PostgresSessionOptions extends SqlSessionBacking.SqlSessionOptions {
  /** Connections open at a time. Default: 10. */
  readonly maxConnections?: number | undefined
}

const connectTimeout = "5 seconds"

const clientOf = Effect.fnUntraced(function* (url: string, maxConnections: number) {
  const { make } = yield* Effect.tryPromise({
    try: () => import("@effect/sql-pg/PgClient"),
    catch: (cause) =>
      sessionUnavailable("open the database", "PostgreSQL needs the package @effect/sql-pg; install it", cause)
  })
  return yield* make({ url: Redacted.make(url), applicationName: "palimpsest", maxConnections, connectTimeout }).pipe(
    Effect.mapError((error) => SqlSessionBacking.databaseError("open the database", error))
  )
})

/**
 * Sessions in a database of PostgreSQL, by its URL: several processes and machines may use it. Needs the package `@effect/sql-pg`,
 * which is loaded when the layer is built.
 */
export const layer = (
  url: string,
  { maxConnections = 10, ...options }: PostgresSessionOptions = {}
): Layer.Layer<SessionStore, SessionStoreError> =>
  BackedSessionStore.over(SqlSessionBacking.make(options)).pipe(
    Layer.provide(Layer.effect(SqlClient.SqlClient, clientOf(url, maxConnections))),
    Layer.provide(Reactivity.layer)
  )
