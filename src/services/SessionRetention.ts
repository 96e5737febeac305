import { Clock, Effect, Schema } from "effect"
import { begun } from "../domain/SessionName.ts"
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

/** Deletes a session for good, and with it those of the agents that worked for it. */
export const remove = Effect.fn("SessionRetention.remove")(function* (
  id: string
): Effect.fn.Return<void, SessionStoreError, SessionStore> {
  const store = yield* SessionStore
  const all = yield* store.summaries
  const childrenOf = (parent: string): ReadonlyArray<string> =>
    all.flatMap((session) => (session.parent === parent ? [...childrenOf(session.id), session.id] : []))
  for (const child of childrenOf(id)) yield* store.remove(child)
  yield* store.remove(id)
})

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
  for (const session of expired(begun(yield* store.summaries), retention.success, now, current)) {
    const result = yield* Effect.result(remove(session.id))
    if (result._tag === "Success") deleted.push(session)
    // Somebody else was faster: it is gone, which is what was wanted.
    else if (result.failure.reason._tag !== "SessionNotFound") kept.push({ session, error: result.failure })
  }
  return { deleted, kept }
})
