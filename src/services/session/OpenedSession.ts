import { Clock, Effect } from "effect"
import { applyEvent, emptySession, type Session, startedWith } from "../../domain/session/Session.ts"
import { type SessionLog, SessionStore } from "./SessionStore.ts"

/** A session that is open for writing. */
export interface OpenedSession {
  readonly log: SessionLog
  readonly session: Session
}

/** Begins a session in the store. */
export const beginSession = Effect.fnUntraced(function* (id: string, about: Parameters<typeof startedWith>[0]) {
  const started = startedWith(about, id, yield* Clock.currentTimeMillis)
  const log = yield* (yield* SessionStore).create(started)
  return { log, session: applyEvent(emptySession, started) } satisfies OpenedSession
})

/** Opens a session, and reads everything that its store left out. */
export const openSession = Effect.fnUntraced(function* (id: string) {
  const { complete, log, session } = yield* (yield* SessionStore).open(id)
  return { log, session: complete ? session : yield* log.whole } satisfies OpenedSession
})
