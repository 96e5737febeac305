/** The contract of running agents: their tasks, failures, and the limits of agents that start agents. */

import { Context, type Effect, Schema, type Scope } from "effect"
import type { AgentResult } from "../../domain/agent/AgentResult.ts"
import type { Activity } from "../../domain/chat/ChatEvent.ts"
import type { Question } from "../tools/Tool.ts"

/** An agent could not be started or reached. The message says what a user or a model can do. */
export class AgentFailure extends Schema.TaggedError<AgentFailure>()("AgentFailure", { message: Schema.String }) {}

/** What an agent starts with: only its task, or a copy of its parent's view before the task. */
export const AgentContextMode = Schema.Literals(["isolated", "fork"])
export type AgentContextMode = typeof AgentContextMode.Type

/** The task of an agent. */
export interface Task {
  readonly prompt: string
  /** Whether the agent starts with its task only (default), or with a copy of its parent's view. */
  readonly context?: AgentContextMode | undefined
  /** Arguments in addition to the prompt, by the names the definition declares. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined
  /** Receives each activity of the agent as it happens. */
  readonly activity: (activity: Activity) => Effect.Effect<void>
  /** Receives the text of the answer so far; each call replaces the previous text. */
  readonly progress?: ((text: string) => Effect.Effect<void>) | undefined
  /** Runs work that waits for the user; the caller does not count that time. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** A running agent. */
export interface Running {
  /** The id of its session, process or remote task. */
  readonly id: string
  /** Its result, once it has ended. May be awaited more than once. */
  readonly result: Effect.Effect<AgentResult, AgentFailure>
  /** Sends a message while the agent works or after it has ended, and returns the reply. */
  readonly send: (message: string) => Effect.Effect<string, AgentFailure>
}

/**
 * Runs agents: in this process, in a process of their own, or remotely over A2A. Starting an agent does not wait for it; closing the scope ends it
 * and everything it started.
 */
export interface AgentRunner {
  /** Starts the work, which ends with the scope at the latest. */
  readonly start: (task: Task) => Effect.Effect<Running, AgentFailure, Scope.Scope>
}

/** An agent that another agent may start, under the name of its tool. */
export interface OfferedAgent {
  readonly name: string
  readonly description: string
  readonly runner: AgentRunner
  /** Where its tasks and messages are sent. Undefined: they stay on this machine. */
  readonly place: string | undefined
}

/** What the user is asked before texts leave this machine: each line with the place where it goes. Undefined: none leaves. */
export const leavingQuestion = (
  lines: ReadonlyArray<{ readonly place: string | undefined; readonly text: string }>,
  covers: string
): Question | undefined => {
  const leaving = lines.flatMap(({ place, text }) => (place === undefined ? [] : [`${text}\n(goes to ${place})`]))
  return leaving.length === 0 ? undefined : { detail: leaving.join("\n"), grants: [], covers }
}

/** What an agent outside this process may use at most, because of the agent that starts it. */
export interface ParentShare {
  /** The names of the tools and agents that its definition and its parent have in common. */
  readonly tools: ReadonlyArray<string>
  /** The model of its parent. */
  readonly model: string
}

/** Runs agents outside this process. */
export interface ExternalRunner {
  /** As `AgentRunner.start`. */
  readonly start: (task: Task, share: ParentShare) => Effect.Effect<Running, AgentFailure, Scope.Scope>
}

/** The maximum depth at which agents start agents, and the maximum number of running agents, as in OpenClaw. */
export interface AgentLimits {
  readonly depth: number
  /** Running agents that one agent started. */
  readonly children: number
  /** Running agents in all, at every depth. */
  readonly running: number
}

/** The limits of agents that start agents. The defaults apply unless others are provided. */
export const AgentBounds = Context.Reference<AgentLimits>("palimpsest/services/agent/AgentRunner/AgentBounds", {
  defaultValue: () => ({ depth: 2, children: 8, running: 8 })
})

/** The depth of the agent that a fiber works for; 0 is the main agent of the process. What the agent starts inherits it. */
export const AgentDepth = Context.Reference<number>("palimpsest/services/agent/AgentRunner/AgentDepth", {
  defaultValue: () => 0
})
