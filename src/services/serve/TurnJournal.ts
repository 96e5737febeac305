import { Context, type Effect } from "effect"
import type { NumberedEvent } from "../../domain/serve/EventBuffer.ts"

/** The events of a session's last turn. They are stored before clients get them. */
export interface JournaledTurn {
  /** The name in their ids. */
  readonly name: string
  /** Without gaps, oldest first. */
  readonly events: ReadonlyArray<NumberedEvent>
}

/** Stores the events of each session's last turn, so that another process goes on with the stream where it ended. */
export interface Journal {
  /** Makes `owner` the only writer, and returns the events of the last turn; undefined when there are none, or they cannot be read. */
  readonly take: (tenant: string, id: string, owner: string) => Effect.Effect<JournaledTurn | undefined>
  /** Stores events, and with `first` forgets those before this number. Returns false when another one is the writer now. */
  readonly save: (
    tenant: string,
    id: string,
    turn: JournaledTurn & { readonly first: number | undefined },
    owner: string
  ) => Effect.Effect<boolean>
  /** The events of the last turn, for a reader whose writer is lost; undefined when there are none, or they cannot be read. */
  readonly read: (tenant: string, id: string) => Effect.Effect<JournaledTurn | undefined>
  /** The id of the event after which a reader of the stored messages goes on; null when there is none. */
  readonly last: (tenant: string, id: string) => Effect.Effect<string | null>
  /** Forgets the events of a session that was deleted. */
  readonly forget: (tenant: string, id: string) => Effect.Effect<void>
}

/** The journal of this server. Default: none; a stream of another process starts with `Reset`. */
export const TurnJournal = Context.Reference<Journal | undefined>("palimpsest/services/serve/TurnJournal", {
  defaultValue: () => undefined
})
