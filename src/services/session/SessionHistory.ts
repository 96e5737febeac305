import { Context, type Effect } from "effect"
import type { SessionEvent } from "../../domain/session/Session.ts"
import type { SessionStoreError } from "./SessionStore.ts"

/** Reads all events of a stored session, `Started` first, also while another process writes it. Opens and locks nothing. */
export class SessionHistory extends Context.Service<
  SessionHistory,
  {
    /** The events, in order. Fails with `SessionNotFound`. */
    readonly events: (id: string) => Effect.Effect<ReadonlyArray<SessionEvent>, SessionStoreError>
  }
>()("palimpsest/services/session/SessionHistory") {}
