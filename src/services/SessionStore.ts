import { Context, type Effect, Schema, type Scope } from "effect"
import type { Session, SessionEvent, Started } from "../domain/Session.ts"

/** There is no such session. */
export class SessionNotFound extends Schema.TaggedError<SessionNotFound>()("SessionNotFound", { id: Schema.String }) {
  override get message() {
    return `there is no session ${this.id}`
  }
}

/** A session of this id is there already. */
export class SessionExists extends Schema.TaggedError<SessionExists>()("SessionExists", { id: Schema.String }) {
  override get message() {
    return `session ${this.id} exists already`
  }
}

/** Another process writes this session. */
export class SessionLocked extends Schema.TaggedError<SessionLocked>()("SessionLocked", {
  id: Schema.String,
  pid: Schema.Int,
  /** Milliseconds since 1970. */
  since: Schema.Finite
}) {
  override get message() {
    return `session ${this.id} is in use by process ${this.pid}; end it, or use another session`
  }
}

/** The log grew or shrank behind our back; nothing was written. */
export class SessionChanged extends Schema.TaggedError<SessionChanged>()("SessionChanged", {
  id: Schema.String,
  /** Bytes. */
  expected: Schema.Natural,
  found: Schema.Natural
}) {
  override get message() {
    return `session ${this.id} was changed by something else (${this.expected} bytes expected, ${this.found} found); reopen it`
  }
}

/** The log was written by a newer version of this program. */
export class SessionTooNew extends Schema.TaggedError<SessionTooNew>()("SessionTooNew", {
  id: Schema.String,
  version: Schema.Natural
}) {
  override get message() {
    return `session ${this.id} was written by a newer version (log format ${this.version}); update palimpsest to read it`
  }
}

/** A line of the log cannot be read. */
export class SessionCorrupt extends Schema.TaggedError<SessionCorrupt>()("SessionCorrupt", {
  id: Schema.String,
  line: Schema.Natural,
  detail: Schema.String
}) {
  override get message() {
    return `session ${this.id}, line ${this.line}: ${this.detail}`
  }
}

/** The disk said no. What was acknowledged before is untouched. */
export class SessionUnavailable extends Schema.TaggedError<SessionUnavailable>()("SessionUnavailable", {
  operation: Schema.String,
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** A session could not be opened, read or written. The message says what a person can do. */
export class SessionStoreError extends Schema.TaggedError<SessionStoreError>()("SessionStoreError", {
  reason: Schema.Union([
    SessionNotFound,
    SessionExists,
    SessionLocked,
    SessionChanged,
    SessionTooNew,
    SessionCorrupt,
    SessionUnavailable
  ])
}) {
  override get message() {
    return this.reason.message
  }
}

/** The one writer of one session. */
export interface SessionLog {
  readonly id: string
  /**
   * Adds one event: its large parts to the blob store first, then one line. When it succeeds the event is on disk; when it
   * fails or is interrupted the log is what it was.
   */
  readonly append: (event: SessionEvent) => Effect.Effect<void, SessionStoreError>
}

/** A session as it was opened. */
export interface OpenSession {
  readonly log: SessionLog
  readonly session: Session
  /** The log ended in half a line, which was cut off: how many bytes. */
  readonly torn: number
}

/** Append-only logs of sessions. One writer a session, as long as the scope is open. */
export class SessionStore extends Context.Service<
  SessionStore,
  {
    /** Begins a session under the id in `started`, and locks it for this writer. `SessionExists` where there is one. */
    readonly create: (started: Started) => Effect.Effect<SessionLog, SessionStoreError, Scope.Scope>
    /** Reads a session and locks it for this writer. `SessionNotFound` where there is none, `SessionLocked` where another writes. */
    readonly open: (id: string) => Effect.Effect<OpenSession, SessionStoreError, Scope.Scope>
    /** Ids of all sessions, newest first. */
    readonly list: Effect.Effect<ReadonlyArray<string>, SessionStoreError>
  }
>()("palimpsest/services/SessionStore") {}
