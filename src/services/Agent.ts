import type { Effect } from "effect"
import type { Generation } from "./Model.ts"
import type { Chat } from "./Chat.ts"
import type { Tool } from "./Tool.ts"

/** What an agent may use up before it stops. Absent: no such limit. */
export interface Limits {
  /** Turns of one run: requests to the model (spec 9: 100 for the main agent). */
  readonly turns?: number | undefined
  /** Milliseconds of one run, without the time a person was asked. */
  readonly time?: number | undefined
  /** Tokens sent and answered in one run, as the provider counted them. */
  readonly tokens?: number | undefined
  /** Dollars of one run, by the known prices. A model without a price costs nothing here. */
  readonly cost?: number | undefined
}

/** Who works: a conversation, the tools it may use, and how far it may go. A value; several may run at once. */
export interface Profile {
  /** What it is called where a person is asked and where its work is shown. */
  readonly name: string
  readonly chat: Chat["Service"]
  readonly tools: ReadonlyArray<Tool>
  readonly limits?: Limits | undefined
  readonly generation?: Generation | undefined
}

/** How one run is done. */
export interface RunOptions {
  /** When this completes first, the run is given up: calls are answered as cancelled, the last event is `UserCancelled`. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** Runs what waits for a person, so that whoever started this agent does not count that time either. */
  readonly waiting?: (<A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}
