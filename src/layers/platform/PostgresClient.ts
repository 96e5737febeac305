/** The SQL client for PostgreSQL, whose driver is an optional package. */

import { Effect, Redacted, Schema } from "effect"

/** The driver of PostgreSQL is not installed. */
class PostgresMissing extends Schema.TaggedError<PostgresMissing>()("PostgresMissing", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

const connectTimeout = "5 seconds"

/** Connects to a database of PostgreSQL, by its URL. Needs the package `@effect/sql-pg`, which is loaded here. */
export const make = Effect.fnUntraced(function* (url: string, maxConnections: number) {
  const client = yield* Effect.tryPromise({
    try: () => import("@effect/sql-pg/PgClient"),
    catch: (cause) => new PostgresMissing({ message: "PostgreSQL needs the package @effect/sql-pg; install it", cause })
  })
  return yield* client.make({
    url: Redacted.make(url),
    applicationName: "palimpsest",
    maxConnections,
    connectTimeout
  })
})
