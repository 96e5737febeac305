/** Deletes sessions, on request or when they have expired under the user's settings. */

import { Clock, Effect, Schema } from "effect"
import { userSessions } from "../../domain/session/SessionName.ts"
import { expiredSessions, parseRetention, type RetentionSettings } from "../../domain/session/SessionRetention.ts"
import { SessionStore, type SessionStoreError, type SessionSummary } from "./SessionStore.ts"

/** A retention setting is invalid. Nothing was deleted. */
class RetentionInvalid extends Schema.TaggedError<RetentionInvalid>()("RetentionInvalid", {
  message: Schema.String
}) {}

/** The result of enforcing retention. */
interface RetentionResult {
  readonly deleted: ReadonlyArray<SessionSummary>
  /** Sessions that could not be deleted, and why. */
  readonly kept: ReadonlyArray<{ readonly session: SessionSummary; readonly error: SessionStoreError }>
}

/** Deletes a session for good, and with it the sessions of the agents that it started. */
export const remove = Effect.fn("SessionRetention.remove")(function* (id: string) {
  const store = yield* SessionStore
  const all = yield* store.summaries
  const childrenOf = (parent: string): ReadonlyArray<string> =>
    all.flatMap((session) => (session.parent === parent ? [...childrenOf(session.id), session.id] : []))
  for (const child of childrenOf(id)) yield* store.remove(child)
  yield* store.remove(id)
})

/**
 * Deletes the sessions that have expired under the user's settings, and returns them, so that they can be announced. `current`
 * is the session that is about to be used. Without settings nothing is read; an invalid setting deletes nothing.
 */
export const enforce = Effect.fn("SessionRetention.enforce")(function* (
  settings: RetentionSettings,
  current?: string | undefined
) {
  const retention = parseRetention(settings)
  if (retention._tag === "Failure") return yield* new RetentionInvalid({ message: retention.failure })
  const deleted: Array<SessionSummary> = []
  const kept: Array<RetentionResult["kept"][number]> = []
  if (settings.maxAge === undefined && settings.maxCount === undefined) return { deleted, kept }
  const store = yield* SessionStore
  const now = yield* Clock.currentTimeMillis
  for (const session of expiredSessions(userSessions(yield* store.summaries), retention.success, now, current)) {
    const result = yield* Effect.result(remove(session.id))
    if (result._tag === "Success") deleted.push(session)
    // Another process deleted it first.
    else if (result.failure.reason._tag !== "SessionNotFound") kept.push({ session, error: result.failure })
  }
  return { deleted, kept }
})
