/** The contract of the journal of running turns, from which another process continues a stream. */

import { Context, type Effect } from "effect"
import type { NumberedEvent } from "../../domain/serve/EventBuffer.ts"
import type { Unavailable } from "./ServeErrors.ts"

/** The events of a session's last turn. They are stored before clients get them. */
export interface JournaledTurn {
  /** The buffer name in their ids. */
  readonly name: string
  /** Without gaps, oldest first. */
  readonly events: ReadonlyArray<NumberedEvent>
}

/** A turn as the journal holds it. `since`: when the oldest of its events was stored, in milliseconds since 1970. */
export interface StoredTurn extends JournaledTurn {
  readonly since: number
}

/** Stores the events of each session's last turn, so that another process can continue the stream where it ended. */
export interface Journal {
  /**
   * Makes `owner` the only writer, and returns the events of the last turn. Undefined when there are none, or when
   * they cannot be read.
   */
  readonly take: (tenant: string, id: string, owner: string) => Effect.Effect<StoredTurn | undefined>
  /**
   * Stores events, and with `first` deletes those before this number. Returns false when another owner is the writer
   * now.
   */
  readonly save: (
    tenant: string,
    id: string,
    turn: JournaledTurn & { readonly first: number | undefined },
    owner: string
  ) => Effect.Effect<boolean>
  /**
   * Returns the events of the last turn, for a reader whose writer is gone. Undefined when there are none, or when
   * they cannot be read.
   */
  readonly read: (tenant: string, id: string) => Effect.Effect<JournaledTurn | undefined>
  /** The id of the event after which a reader of the stored messages goes on; undefined when there is none. */
  readonly last: (tenant: string, id: string) => Effect.Effect<string | undefined>
  /** Deletes the events of a deleted session, and the messages that the engine keeps for it. */
  readonly forget: (tenant: string, id: string) => Effect.Effect<void, Unavailable>
}

/** The journal of this server. Default: none; a stream of another process starts with `Reset`. */
export const TurnJournal = Context.Reference<Journal | undefined>("palimpsest/services/serve/TurnJournal", {
  defaultValue: () => undefined
})
