import { Context, Effect, Option, Schema } from "effect"
import { SessionRecord } from "../../domain/serve/SessionRecord.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { type SessionStoreError, sessionUnavailable } from "../session/SessionStore.ts"

/** Keeps what clients set for the sessions of a tenant, beside their logs. Reading needs no open session. */
export class SessionRecords extends Context.Service<
  SessionRecords,
  {
    /** The stored records of these sessions, or of all. A session without one is absent. */
    readonly get: (ids?: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, StoredRecord>, SessionStoreError>
    /**
     * Replaces a record, an empty one where there is none. It is durable when this returns. Of several changes none is lost. Fails where the stored
     * one cannot be read.
     */
    readonly change: (
      id: string,
      to: (record: SessionRecord) => SessionRecord
    ) => Effect.Effect<void, SessionStoreError>
    /** Deletes a record, if there is one. */
    readonly remove: (id: string) => Effect.Effect<void, SessionStoreError>
  }
>()("palimpsest/services/serve/SessionRecords") {}

/** A stored record; none where it cannot be read. */
export type StoredRecord = Option.Option<SessionRecord>

/** Reads a stored record. */
export const decode: (text: string) => StoredRecord = Schema.decodeUnknownOption(fromJson(SessionRecord))

const encode = Schema.encodeSync(fromJson(SessionRecord))

/** The record of a session, an empty one where there is none. Fails where it cannot be read: nobody goes on without it. */
export const readable = (
  id: string,
  stored: StoredRecord | undefined
): Effect.Effect<SessionRecord, SessionStoreError> =>
  stored === undefined
    ? Effect.succeed({})
    : Option.match(stored, {
        onNone: () => Effect.fail(sessionUnavailable("read", `what clients set for session ${id} cannot be read`)),
        onSome: Effect.succeed
      })

/** The text of a record after a change. */
export const changedText = (
  id: string,
  stored: StoredRecord | undefined,
  to: (record: SessionRecord) => SessionRecord
): Effect.Effect<string, SessionStoreError> => Effect.map(readable(id, stored), (record) => encode(to(record)))
