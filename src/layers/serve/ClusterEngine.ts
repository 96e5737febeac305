/** The cluster engine of servers: the database, the shards, the messages. */

import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Option, type Redacted, Schedule, Schema } from "effect"
import {
  ClusterError,
  ClusterWorkflowEngine,
  MessageStorage,
  type Reply,
  RunnerAddress,
  ShardingConfig,
  SingleRunner,
  Snowflake,
  SqlMessageStorage,
  SqlRunnerStorage
} from "effect/cluster"
import { SqlClient, type SqlError } from "effect/sql"
import * as SqliteClient from "../platform/SqliteClient.ts"
import { orConnectionLost } from "../platform/SqlTransaction.ts"

// The engine's messages, in a database that may be restarted.

/**
 * How long a runner leaves the messages that it has read. A read marks messages, and the engine reads marked ones again only
 * after ten minutes. It never gets those whose read lost its connection, and never those that another runner has marked since it
 * lost their shard.
 */
const claimMillis = 10_000

const isAnswer =
  (reply: Reply.Encoded) =>
  (stored: Reply.Encoded): boolean =>
    stored.id === reply.id || (stored._tag === "WithExit" && reply._tag === "WithExit")

/**
 * Makes the storage survive a restart of its database. Marks of a runner's shards are cleared every few seconds; the engine skips
 * messages that it is answering. An answer is stored again until it is: the engine tries for a second, and then
 * neither stores the answer nor runs the message again.
 */
export const lasting = (encoded: MessageStorage.Encoded): MessageStorage.Encoded => {
  let clearedAt = -Infinity
  return {
    ...encoded,
    unprocessedMessages: Effect.fnUntraced(function* (shards, now, options) {
      if (now - clearedAt >= claimMillis) {
        yield* encoded.resetShards(shards)
        clearedAt = now
      }
      return yield* encoded.unprocessedMessages(shards, now, options)
    }),
    saveReply: (reply) =>
      Effect.catchCause(encoded.saveReply(reply), orConnectionLost).pipe(
        // The connection may have closed after the commit.
        Effect.catch((cause) =>
          Effect.flatMap(encoded.repliesForUnfiltered([reply.requestId]), (stored) =>
            stored.some(isAnswer(reply)) ? Effect.void : Effect.fail(new ClusterError.PersistenceError({ cause }))
          )
        ),
        Effect.tapError(() => Effect.logWarning("serve: an answer is not stored yet; the server tries again")),
        Effect.retry(Schedule.spaced("1 second"))
      )
  }
}

/** The database cannot be used. */
export class DatabaseError extends Schema.TaggedError<DatabaseError>()("DatabaseError", { message: Schema.String }) {}

const unreachable = (message: string) =>
  new DatabaseError({ message: `the database cannot be reached: ${message}; check --store` })

/** The role of a process. */
export interface ClusterRole {
  /** The address under which other processes reach this runner; undefined for a front, which runs no sessions. */
  readonly runner: { readonly host: string; readonly port: number } | undefined
  /** The address at which the runner listens, where it is another one. */
  readonly listen?: { readonly host: string; readonly port: number } | undefined
  /** Seconds that a runner that stops gives to its sessions. */
  readonly drainSeconds: number
}

/**
 * How soon another runner takes over. Locks are rows that expire: an advisory lock of PostgreSQL would be kept by a process that
 * is stopped and not dead, and is lost in a pooler of transactions. What the stopped process writes later is refused by the
 * epoch of its sessions.
 */
const failover = {
  shardsPerGroup: 60,
  shardLockExpiration: "8 seconds",
  shardLockRefreshInterval: "2 seconds",
  shardLockDisableAdvisory: true,
  runnerHealthCheckInterval: "5 seconds",
  refreshAssignmentsInterval: "1 second",
  entityMessagePollInterval: "2 seconds",
  entityMaxIdleTime: "1 minute"
} as const

/** Makes tables. Of two servers that make one at the same time, one fails, and finds it at its next attempt. */
export const makeTables = <A>(of: string, tables: ReadonlyArray<Effect.Effect<A, SqlError.SqlError>>) =>
  Effect.all(tables, { discard: true }).pipe(
    Effect.retry({ times: 3 }),
    Effect.mapError(({ message, reason }) =>
      // The client connects when the first table is made.
      reason._tag === "ConnectionError" || reason._tag === "AuthenticationError"
        ? unreachable(message)
        : new DatabaseError({ message: `the tables of ${of} cannot be made: ${message}` })
    )
  )

/** PostgreSQL. */
export const postgres = (url: Redacted.Redacted): Layer.Layer<SqlClient.SqlClient, DatabaseError> =>
  Layer.build(PgClient.layer({ url })).pipe(
    Effect.mapError(({ message }) => unreachable(message)),
    Layer.effectContext
  )

/** SQLite in a file, with its folder. */
export const sqlite = (file: string): Layer.Layer<SqlClient.SqlClient, DatabaseError> =>
  Layer.build(SqliteClient.layer(file)).pipe(
    Effect.mapError(({ message }) => new DatabaseError({ message })),
    Layer.effectContext
  )

/** One runner on one machine. */
export const single = SingleRunner.layer({ shardingConfig: failover, runnerStorage: "memory" }).pipe(
  Layer.provide(NodeCrypto.layerDigest)
)

/** Messages in tables of the database. */
const messages = Layer.effect(
  MessageStorage.MessageStorage,
  Effect.flatMap(SqlMessageStorage.makeEncoded(), (encoded) => MessageStorage.makeEncoded(lasting(encoded)))
).pipe(Layer.provide([Snowflake.layerGenerator, NodeCrypto.layerDigest]))

/** A runner or a front among others. */
export const among = ({ drainSeconds, listen, runner }: ClusterRole) => {
  const shardingConfig = {
    ...failover,
    entityTerminationTimeout: `${drainSeconds + 5} seconds` as const,
    runnerAddress: Option.map(Option.fromNullishOr(runner), ({ host, port }) => RunnerAddress.make(host, port)),
    runnerListenAddress: Option.map(Option.fromNullishOr(listen), ({ host, port }) => RunnerAddress.make(host, port))
  }
  const engine =
    runner === undefined
      ? NodeClusterSocket.layer({ clientOnly: true, storage: "byo", shardingConfig })
      : NodeClusterSocket.layer({ storage: "byo", shardingConfig })
  const runners = Layer.orDie(SqlRunnerStorage.layer).pipe(Layer.provide(ShardingConfig.layerFromEnv(shardingConfig)))
  return engine.pipe(Layer.provide(runners), Layer.provideMerge(messages))
}

/** Durable workflows, whose steps are messages. */
export const workflows = ClusterWorkflowEngine.layer

/** Answered messages are kept for a day, so a client can repeat one under its id. A session's log keeps the ids for good. */
const keptMillis = 86_400_000

/** Deletes the engine's answered messages; the engine does not do so itself. */
export const pruning = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const prune = Effect.gen(function* () {
      const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
      // Ids of messages begin with the time, in milliseconds since 2025.
      const before = String(BigInt(now - keptMillis - Date.UTC(2025, 0, 1)) << 22n)
      yield* sql`DELETE FROM cluster_replies WHERE request_id IN (SELECT id FROM cluster_messages WHERE processed = TRUE AND id < ${sql.literal(before)})`
      yield* sql`DELETE FROM cluster_messages WHERE processed = TRUE AND id < ${sql.literal(before)}`
    })
    yield* Effect.forkScoped(Effect.repeat(Effect.ignore(prune, { log: "Warn" }), Schedule.spaced("10 minutes")))
  })
)

/** Deletes the messages that the engine keeps for an entity, and the steps of its workflows: they hold the words of users and of models. */
export const forgetEntity = (sql: SqlClient.SqlClient, entity: string) => {
  // LIKE does not tell small from capital letters in SQLite.
  const own = sql`entity_id = ${entity} OR SUBSTR(entity_id, 1, ${entity.length + 1}) = ${`${entity}/`}`
  return Effect.andThen(
    sql`DELETE FROM cluster_replies WHERE request_id IN (SELECT id FROM cluster_messages WHERE ${own})`,
    sql`DELETE FROM cluster_messages WHERE ${own}`
  )
}
