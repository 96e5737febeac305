/** The contract of a storage for sessions, of which `BackedSessionStore` makes a session store. */

import { Context, type Effect, type Scope } from "effect"
import type { Hash } from "../../domain/content/Handle.ts"
import type { SessionStoreError, SessionSummary } from "./SessionStore.ts"

/** A line of a session's log, as a backing keeps it. */
export interface BackedLine {
  /** The position in the log: from 1, without gaps. */
  readonly sequence: number
  /** Names the line within its session; no two lines have the same. */
  readonly id: string
  /** JSON without a line break. Opaque to the backing. */
  readonly text: string
  /** Whether a reader may begin at this line. */
  readonly isCheckpoint: boolean
  /** When it was written, in milliseconds since 1970. */
  readonly at: number
}

/** The right to write a session. Every owner of a session has a higher epoch than the one before. */
export interface SessionOwner {
  readonly session: string
  readonly epoch: number
}

/** What a list shows of a session, without its log. */
export interface BackedRow extends Pick<SessionSummary, "id" | "title" | "updatedAt" | "bytes" | "holder"> {
  /** The text that was last given as `head`. Opaque to the backing. */
  readonly head: string
}

/**
 * Keeps the logs, titles and blobs of sessions: the small part of a session store that differs between a map, a key-value
 * store and a database. `BackedSessionStore` makes a `SessionStore` of it: it encodes events, folds them, makes checkpoints,
 * stores large parts as blobs and checks ids, so that every id here is a valid one.
 *
 * Each method is done as a whole or not at all, and durable when it returns, except where it says so.
 */
export class SessionBacking extends Context.Service<
  SessionBacking,
  {
    /** Creates a session with its first lines, and owns it until the scope closes. Fails with `SessionExists`. */
    readonly create: (
      id: string,
      head: string,
      lines: ReadonlyArray<BackedLine>
    ) => Effect.Effect<SessionOwner, SessionStoreError, Scope.Scope>
    /**
     * Owns a session until the scope closes. Fails with `SessionNotFound`, and with `SessionLocked` while a living owner has it,
     * unless `takeOver` is true: then that owner's later writes fail.
     */
    readonly own: (id: string, takeOver: boolean) => Effect.Effect<SessionOwner, SessionStoreError, Scope.Scope>
    /**
     * Appends one line, and replaces the head if one is given. Appending a line again writes nothing and succeeds. Fails with
     * `SessionTaken` when the session has a newer owner, checked together with the write, and with `SessionChanged` when the
     * position belongs to another line, or, in a backing that looks for it, the id.
     */
    readonly append: (
      owner: SessionOwner,
      line: BackedLine,
      head?: string | undefined
    ) => Effect.Effect<void, SessionStoreError>
    /** Fails where an append would be refused now, such as within a transaction of the program. Absent: nothing is known before. */
    readonly checkWritable?: ((id: string) => Effect.Effect<void, SessionStoreError>) | undefined
    /** The lines from the position `from` up to and without `to`, in order; fewer at the end of the log. */
    readonly read: (id: string, from: number, to: number) => Effect.Effect<ReadonlyArray<BackedLine>, SessionStoreError>
    /** The position of the last line that is a checkpoint. Undefined where none is known: the log is read as a whole. */
    readonly lastCheckpoint: (id: string) => Effect.Effect<number | undefined, SessionStoreError>
    /** The ids of all sessions, in any order. A server asks for them whenever it creates a session. */
    readonly ids: Effect.Effect<ReadonlyArray<string>, SessionStoreError>
    /** The rows of all sessions, or of the one with this id, in any order. */
    readonly list: (id?: string | undefined) => Effect.Effect<ReadonlyArray<BackedRow>, SessionStoreError>
    /** Sets the title of a session, or removes it. Fails with `SessionNotFound`. Needs no owner. */
    readonly rename: (id: string, title: string | undefined) => Effect.Effect<void, SessionStoreError>
    /**
     * Deletes a session with its blobs. Fails with `SessionLocked` while a living owner has it, with `SessionNotFound` if there
     * is none, after deleting blobs that an unfinished `create` left.
     */
    readonly remove: (id: string) => Effect.Effect<void, SessionStoreError>
    /** Stores the bytes with this hash for a session, which may be about to be created. */
    readonly putBlob: (id: string, hash: Hash, bytes: Uint8Array) => Effect.Effect<void, SessionStoreError>
    /** The bytes with this hash; undefined when the session has none. */
    readonly getBlob: (id: string, hash: Hash) => Effect.Effect<Uint8Array | undefined, SessionStoreError>
    /** The hashes of a session's blobs that begin with `prefix`. Two are enough, except for an empty prefix. */
    readonly findBlobs: (id: string, prefix: string) => Effect.Effect<ReadonlyArray<Hash>, SessionStoreError>
  }
>()("palimpsest/services/session/SessionBacking") {}
