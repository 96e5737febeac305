import { Clock, Effect, Schema } from "effect"
import { expired, retentionOf, type RetentionSettings } from "../domain/SessionRetention.ts"
import { SessionStore, type SessionStoreError, type SessionSummary } from "./SessionStore.ts"

/** A setting of the retention is not understood; nothing was deleted. */
export class RetentionInvalid extends Schema.TaggedError<RetentionInvalid>()("RetentionInvalid", {
  message: Schema.String
}) {}

/** What became of the sessions that were to go. */
export interface Enforced {
  readonly deleted: ReadonlyArray<SessionSummary>
  /** Those that could not be deleted, and why. */
  readonly kept: ReadonlyArray<{ readonly session: SessionSummary; readonly error: SessionStoreError }>
}

/**
 * Deletes the sessions that a person's settings say may go, and tells which, so that it can be announced. `current` is the
 * session that is about to be used. Where nothing is set nothing is looked at; a setting that is not understood deletes nothing.
 */
export const enforce = Effect.fn("SessionRetention.enforce")(function* (
  settings: RetentionSettings,
  current?: string | undefined
): Effect.fn.Return<Enforced, RetentionInvalid | SessionStoreError, SessionStore> {
  const retention = retentionOf(settings)
  if (retention._tag === "Failure") return yield* new RetentionInvalid({ message: retention.failure })
  const deleted: Array<SessionSummary> = []
  const kept: Array<Enforced["kept"][number]> = []
  if (settings.maxAge === undefined && settings.maxCount === undefined) return { deleted, kept }
  const store = yield* SessionStore
  const now = yield* Clock.currentTimeMillis
  for (const session of expired(yield* store.summaries, retention.success, now, current)) {
    const result = yield* Effect.result(store.remove(session.id))
    if (result._tag === "Success") deleted.push(session)
    // Somebody else was faster: it is gone, which is what was wanted.
    else if (result.failure.reason._tag !== "SessionNotFound") kept.push({ session, error: result.failure })
  }
  return { deleted, kept }
})
