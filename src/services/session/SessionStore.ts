/** The contract of session stores: open sessions, their logs, the list, and everything that can fail. */

import { Context, Effect, Exit, Schema, Scope } from "effect"
import type { Hash } from "../../domain/content/Handle.ts"
import { type LineProblem, lineProblemText } from "../../domain/session/LogFormat.ts"
import type { Session, SessionEvent, Started } from "../../domain/session/Session.ts"
import { hashSync } from "./Sha256.ts"
import type { TempStore } from "./TempStore.ts"

/** No session has this id. */
export class SessionNotFound extends Schema.TaggedError<SessionNotFound>()("SessionNotFound", { id: Schema.String }) {
  override get message() {
    return `there is no session ${this.id}`
  }
}

/** A session with this id exists already. */
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

/** Another program changed the log. Nothing was written. */
export class SessionChanged extends Schema.TaggedError<SessionChanged>()("SessionChanged", {
  id: Schema.String,
  /** The end of the log that this writer expects and the one that it found: in bytes, or in lines where the store has no bytes. */
  expected: Schema.Natural,
  found: Schema.Natural,
  unit: Schema.optionalKey(Schema.Literals(["bytes", "lines"]))
}) {
  override get message() {
    const { expected, found, id, unit = "bytes" } = this
    return `session ${id} was changed by another program (${expected} ${unit} expected, ${found} found); reopen it`
  }
}

/** The caller is within a transaction, whose rollback would take back what the session acknowledged. Nothing was written. */
export class SessionInTransaction extends Schema.TaggedError<SessionInTransaction>()("SessionInTransaction", {
  id: Schema.String
}) {
  override get message() {
    return `session ${this.id} cannot be written within a transaction, which could take it back; use it before or after the transaction`
  }
}

/** Another owner took the session over. Nothing was written. */
export class SessionTaken extends Schema.TaggedError<SessionTaken>()("SessionTaken", { id: Schema.String }) {
  override get message() {
    return `session ${this.id} was taken over by another process; nothing was written here`
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

/** The disk failed. What was acknowledged before is untouched. */
export class SessionUnavailable extends Schema.TaggedError<SessionUnavailable>()("SessionUnavailable", {
  operation: Schema.String,
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** A session could not be opened, read or written. The message says what the user can do. */
export class SessionStoreError extends Schema.TaggedError<SessionStoreError>()("SessionStoreError", {
  reason: Schema.Union([
    SessionNotFound,
    SessionExists,
    SessionLocked,
    SessionChanged,
    SessionTaken,
    SessionInTransaction,
    SessionTooNew,
    SessionCorrupt,
    SessionUnavailable
  ])
}) {
  override get message() {
    return this.reason.message
  }
}

/** A failure with this reason. */
export const sessionError = (reason: SessionStoreError["reason"]): SessionStoreError =>
  new SessionStoreError({ reason })

/** A failure of the disk during an operation. */
export const sessionUnavailable = (operation: string, message: string, cause: unknown = message): SessionStoreError =>
  sessionError(new SessionUnavailable({ operation, message, cause }))

/** The failure of a write after the scope of its session was closed. */
export const closedSession = (id: string): SessionStoreError =>
  sessionUnavailable("append", `session ${id} was closed; open it again`)

/** A line of a log that cannot be read. */
export const corruptLine = (id: string, line: number, detail: string): SessionStoreError =>
  sessionError(new SessionCorrupt({ id, line, detail }))

/** A log whose first line is not `Started`. */
export const headlessLog = (id: string): SessionStoreError => corruptLine(id, 1, "the log does not begin with Started")

/** Returns the failure for a problem of a line. */
export const lineError = (id: string, line: number, problem: LineProblem): SessionStoreError =>
  problem._tag === "NewerVersion"
    ? sessionError(new SessionTooNew({ id, version: problem.version }))
    : corruptLine(id, line, lineProblemText(problem))

/** Whether a text can be the id of a session. Ids come from outside and become file names. */
export const isSessionId = Schema.is(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/)))

/** The failure to create a session under an invalid id. */
export const badSessionId = (): SessionStoreError =>
  sessionUnavailable("create", "a session id has 1 to 64 letters, digits, hyphens or underscores")

/** The one writer of one session. */
export interface SessionLog {
  readonly id: string
  /**
   * Appends one event: first its large parts to the blob store, then one line to the log. After a success, the event is on
   * disk. After a failure or an interruption, the log is unchanged, unless a database was away before it could answer: then the
   * event may be stored. To append messages again under their ids is safe: those that are stored already are not stored twice.
   */
  readonly append: (event: SessionEvent) => Effect.Effect<void, SessionStoreError>
  /** Fails where an append would be refused now, before the work whose result it would store. Absent: nothing is known before. */
  readonly checkWritable?: Effect.Effect<void, SessionStoreError> | undefined
  /** The blobs of this session. */
  readonly blobs: TempStore["Service"]
  /**
   * Reads the whole log as it is now, including the part that `open` skipped. After an append that failed with `SessionChanged`, the next one continues what
   * this read, in a store of lines.
   */
  readonly whole: Effect.Effect<Session, SessionStoreError>
}

/** An open session. */
export interface OpenSession {
  readonly log: SessionLog
  /**
   * The state of the session. When `complete` is false, only the content of the view was read: the view and its tokens are
   * those of the whole session, but entries that left the view, compressions to undo and their ranges are missing.
   */
  readonly session: Session
  readonly complete: boolean
  /** Bytes of an incomplete last line, which was cut off. */
  readonly torn: number
}

/** A blob of a session that is not open. */
export interface StoredBlob {
  readonly hash: Hash
  /** Reads its bytes. */
  readonly bytes: Effect.Effect<Uint8Array, SessionStoreError>
}

/** The list's data about a session, without reading all of it. Times are milliseconds since 1970. */
export interface SessionSummary {
  readonly id: string
  /** The title that the user or a model gave it. */
  readonly title: string | undefined
  /** The beginning of the user's first message, in one line, if it is near the beginning of the log. */
  readonly firstPrompt: string | undefined
  readonly model: string | undefined
  readonly cwd: string | undefined
  /** The session whose agent started this one; undefined for a session that the user started. */
  readonly parent: string | undefined
  readonly startedAt: number
  readonly updatedAt: number
  /** The size of the log, without its blobs. */
  readonly bytes: number
  /** The process that has it open. */
  readonly holder: { readonly pid: number; readonly since: number } | undefined
  /** Why it cannot be opened, if its beginning shows that. */
  readonly problem: string | undefined
}

/** Stores sessions as append-only logs. A session has one writer at a time, until the scope of `create` or `open` closes. */
export class SessionStore extends Context.Service<
  SessionStore,
  {
    /** Creates a session with the id in `started` and locks it for this writer. Fails with `SessionExists` when it exists. */
    readonly create: (started: Started) => Effect.Effect<SessionLog, SessionStoreError, Scope.Scope>
    /**
     * Stores a session with all its events, as a whole or not at all; the first one is `Started` and has the id. Fails with
     * `SessionExists` when the session exists, with `SessionLocked` when another writer is about to create it.
     */
    readonly add: (events: ReadonlyArray<SessionEvent>) => Effect.Effect<void, SessionStoreError>
    /** Reads all events of a session, also while another writer has it open. Fails with `SessionNotFound`. */
    readonly events: (id: string) => Effect.Effect<ReadonlyArray<SessionEvent>, SessionStoreError>
    /**
     * Locks a session for this writer and reads it. Fails with `SessionNotFound`, or `SessionLocked` while another has it open.
     * With `takeOver`, a store that can refuse the other's later writes (`SessionTaken`) opens it nevertheless; files cannot.
     */
    readonly open: (
      id: string,
      options?: { readonly takeOver?: boolean | undefined }
    ) => Effect.Effect<OpenSession, SessionStoreError, Scope.Scope>
    /** The blobs of a session, in use or not. Fails with `SessionNotFound`. */
    readonly blobs: (id: string) => Effect.Effect<ReadonlyArray<StoredBlob>, SessionStoreError>
    /** Ids of all sessions, newest first. */
    readonly list: Effect.Effect<ReadonlyArray<string>, SessionStoreError>
    /** Summaries of all sessions, the one written last first. Reads a bounded piece of each, however long it is. */
    readonly summaries: Effect.Effect<ReadonlyArray<SessionSummary>, SessionStoreError>
    /** The summary of one session, without reading the others. Fails with `SessionNotFound`. */
    readonly summary: (id: string) => Effect.Effect<SessionSummary, SessionStoreError>
    /** Gives a session a title of one line, clipped; an empty one removes it. Works while the session is open. */
    readonly rename: (id: string, title: string) => Effect.Effect<void, SessionStoreError>
    /**
     * Deletes a session, its blobs and its title for good. Fails with `SessionLocked` while it is open. A session whose removal was
     * cut short is not listed; removing it again finishes it.
     */
    readonly remove: (id: string) => Effect.Effect<void, SessionStoreError>
  }
>()("palimpsest/services/session/SessionStore") {}

/** Acquires resources in the outer scope as a unit: when `open` fails or is interrupted, none of them stays open. */
export const allOrNothing = <A, E, R>(
  open: Effect.Effect<A, E, R | Scope.Scope>
): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const inner = yield* Scope.fork(yield* Effect.scope)
      return yield* restore(Scope.provide(open, inner)).pipe(
        Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(inner, exit) : Effect.void))
      )
    })
  )

/** Opens a session store other than the one in use, by its address. */
export class StoreOpener extends Context.Service<
  StoreOpener,
  {
    /** Opens a store until the scope closes. Fails when the address is invalid, or when there is no store at it. */
    readonly open: (address: string) => Effect.Effect<SessionStore["Service"], SessionStoreError, Scope.Scope>
  }
>()("palimpsest/services/session/StoreOpener") {}

/** The id of the session of a key, which may be any text: readable, and another one for each key. */
export const idOfKey = (key: string): string => {
  const readable = key.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 24)
  return `${readable}-${hashSync(`conversation ${key}`).slice(0, 24)}`
}

/** The id of the session of a text: the text itself where it can be one, else that of a key. */
export const sessionIdOf = (text: string): string => (isSessionId(text) ? text : idOfKey(text))
