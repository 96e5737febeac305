/** Keeps sessions in PostgreSQL, opened by the URL of the database. */

import { Effect, Layer, Predicate } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { optionCheck } from "../../domain/compression/InvalidOption.ts"
import { type SessionStore, type SessionStoreError, sessionUnavailable } from "../../services/session/SessionStore.ts"
import * as PostgresClient from "../platform/PostgresClient.ts"
import * as BackedSessionStore from "./BackedSessionStore.ts"
import * as SqlSessionBacking from "./SqlSessionBacking.ts"

/** Options of sessions in PostgreSQL. */
export interface PostgresSessionOptions extends SqlSessionBacking.SqlSessionOptions {
  /** Connections open at a time. Default: 10. */
  readonly maxConnections?: number | undefined
}

const connections = optionCheck((count) => Predicate.isNumber(count) && count >= 1, "a number, 1 or more")

const clientOf = Effect.fnUntraced(function* (url: string, maxConnections: number) {
  // A pool of none would wait for ever.
  const problem = connections("maxConnections", maxConnections)
  if (problem !== undefined) return yield* sessionUnavailable("open the database", problem)
  return yield* PostgresClient.make(url, maxConnections).pipe(
    Effect.mapError((error) =>
      error._tag === "PostgresMissing"
        ? sessionUnavailable("open the database", error.message, error)
        : SqlSessionBacking.databaseError("open the database", error)
    )
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
