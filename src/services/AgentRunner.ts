import { Context, type Effect, Schema, type Scope } from "effect"
import type { Activity } from "../domain/ChatEvent.ts"

/** Why an agent's work ended (spec 9). */
export const TerminateReason = Schema.Literals([
  "GOAL",
  "ERROR",
  "TIMEOUT",
  "MAX_TURNS",
  "ABORTED",
  "ERROR_NO_COMPLETE_TASK_CALL"
])
export type TerminateReason = typeof TerminateReason.Type

/** What an agent gives back to whoever started it: nothing else of its work does. */
export interface AgentResult {
  /** What it found or did; where it did not reach its goal, what stopped it and what there is so far. */
  readonly text: string
  readonly reason: TerminateReason
  readonly turns: number
  /** Milliseconds. */
  readonly duration: number
  /** The session that holds all of its work, where it is kept here. Handles of it can be recalled. */
  readonly session: string | undefined
  /** What has to be known to judge the text; undefined: nothing. Goes to the model beside it. */
  readonly note?: string | undefined
  /** Where all that it did can be read, in words for whoever started it. */
  readonly work?: string | undefined
}

/** An agent could not be started or reached. The message says what a person or a model can do. */
export class AgentFailure extends Schema.TaggedError<AgentFailure>()("AgentFailure", { message: Schema.String }) {}

/** What an agent is given to do. */
export interface Task {
  readonly prompt: string
  /** Arguments beside the prompt, by the names its definition declares. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined
  /** Is told what it does, as it does it. */
  readonly activity: (activity: Activity) => Effect.Effect<void>
  /** Is told what there is of an answer so far; replaces what it was told before. */
  readonly progress?: ((text: string) => Effect.Effect<void>) | undefined
  /** Runs what waits for a person: whoever started the agent does not count that time. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** An agent at work. */
export interface Running {
  /** Its session, process or remote task. */
  readonly id: string
  /** Its result, once it has ended. May be awaited more than once. */
  readonly result: Effect.Effect<AgentResult, AgentFailure>
  /** Says something to it while it works, or after it has ended; the answer to that. */
  readonly send: (message: string) => Effect.Effect<string, AgentFailure>
}

/**
 * Where agents run: in this process, in one of their own, or elsewhere over A2A. Starting one does not wait for it; closing
 * the scope ends it and all that it started.
 */
export interface AgentRunner {
  /** Begins the work, which ends with the scope at the latest. */
  readonly start: (task: Task) => Effect.Effect<Running, AgentFailure, Scope.Scope>
}

/** How deep agents may start agents, and how many may be at work at once (pi-openclaw B12). */
export interface AgentLimits {
  readonly depth: number
  readonly children: number
}

/** The limits where nobody says otherwise. */
export const AgentBounds = Context.Reference<AgentLimits>("palimpsest/services/AgentBounds", {
  defaultValue: () => ({ depth: 2, children: 8 })
})
