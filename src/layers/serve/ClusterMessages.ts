import { Effect, Schedule } from "effect"
import { ClusterError, type MessageStorage, type Reply } from "effect/cluster"
import { orConnectionLost } from "../platform/SqlTransaction.ts"

/** The engine's messages, in a database that may be restarted. */

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
