import { Context, type Effect } from "effect"
import type { SessionRecord } from "../../domain/serve/SessionRecord.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"

/** Keeps what clients set for the sessions of a tenant, beside their logs. Reading needs no open session. */
export class SessionRecords extends Context.Service<
  SessionRecords,
  {
    /** The records of these sessions. A session without one is absent. */
    readonly get: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, SessionRecord>, SessionStoreError>
    /** Replaces a record, an empty one where there is none. It is durable when this returns. Of several changes none is lost. */
    readonly change: (
      id: string,
      to: (record: SessionRecord) => SessionRecord
    ) => Effect.Effect<void, SessionStoreError>
    /** Deletes a record, if there is one. */
    readonly remove: (id: string) => Effect.Effect<void, SessionStoreError>
  }
>()("palimpsest/services/serve/SessionRecords") {}
