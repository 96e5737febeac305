import { Context, type Effect, Schema, type Scope } from "effect"
import type { Session, SessionEvent, Started } from "../domain/Session.ts"
import type { TempStore } from "./TempStore.ts"

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
  /** The blobs of this session. */
  readonly blobs: TempStore["Service"]
  /** Everything the log says by now, read from its beginning: what `open` left out too. */
  readonly whole: Effect.Effect<Session, SessionStoreError>
}

/** A session as it was opened. */
export interface OpenSession {
  readonly log: SessionLog
  /**
   * What the log says. Where `complete` is false only what the model sees was read: the view, its tokens and what follows from
   * them are those of the whole session; entries that left the view, compressions to undo and their ranges are missing.
   */
  readonly session: Session
  readonly complete: boolean
  /** The log ended in half a line, which was cut off: how many bytes. */
  readonly torn: number
}

/** What a list says of a session, without having read it whole. Times in milliseconds since 1970. */
export interface SessionSummary {
  readonly id: string
  /** What a person or a model called it. */
  readonly title: string | undefined
  /** The beginning of the user's first words, in one line, as far as it stands near the beginning of the log. */
  readonly firstPrompt: string | undefined
  readonly model: string | undefined
  readonly cwd: string | undefined
  /** The session of the agent that started the one whose work this is; undefined: a person began it. */
  readonly parent: string | undefined
  readonly startedAt: number
  readonly updatedAt: number
  /** Of the log, without its blobs. */
  readonly bytes: number
  /** The process that writes it at the moment. */
  readonly holder: { readonly pid: number; readonly since: number } | undefined
  /** Why it cannot be opened, where its beginning already says so. */
  readonly problem: string | undefined
}

/** Append-only logs of sessions. One writer a session, as long as the scope is open. */
export class SessionStore extends Context.Service<
  SessionStore,
  {
    /** Begins a session under the id in `started`, and locks it for this writer. `SessionExists` where there is one. */
    readonly create: (started: Started) => Effect.Effect<SessionLog, SessionStoreError, Scope.Scope>
    /**
     * Keeps an id for a session that is written as a whole file, by an import: as long as the scope is open nobody else begins
     * one under it. `SessionExists` where there is one, `SessionLocked` where somebody is about to.
     */
    readonly claim: (id: string) => Effect.Effect<void, SessionStoreError, Scope.Scope>
    /** Reads a session and locks it for this writer. `SessionNotFound` where there is none, `SessionLocked` where another writes. */
    readonly open: (id: string) => Effect.Effect<OpenSession, SessionStoreError, Scope.Scope>
    /** Ids of all sessions, newest first. */
    readonly list: Effect.Effect<ReadonlyArray<string>, SessionStoreError>
    /** All sessions, the one written last first. Reads a bounded piece of each, however long they are. */
    readonly summaries: Effect.Effect<ReadonlyArray<SessionSummary>, SessionStoreError>
    /** One row of that list, without a look at the others. `SessionNotFound` where there is none. */
    readonly summary: (id: string) => Effect.Effect<SessionSummary, SessionStoreError>
    /** Gives a session a title of one line, clipped; an empty one takes it away. Also while somebody writes it. */
    readonly rename: (id: string, title: string) => Effect.Effect<void, SessionStoreError>
    /**
     * Deletes a session, its blobs and its title for good. `SessionLocked` while somebody writes it. A removal that stopped half-way
     * is no longer listed, and is finished by another.
     */
    readonly remove: (id: string) => Effect.Effect<void, SessionStoreError>
  }
>()("palimpsest/services/SessionStore") {}
