/** The contract of agent definitions: which agents can be started, and which files could not be used. */

import { Context, Effect, Layer, type Scope } from "effect"
import type { AgentDefinition } from "../../domain/agent/AgentDefinition.ts"
import type { UnusableFile } from "../../domain/agent/UnusableFile.ts"
import type { Tool } from "../tools/Tool.ts"
import type { AgentFailure } from "./AgentRunner.ts"

/** The origin of a definition. */
export type AgentSource = "built-in" | "project" | "user"

/** An agent that can be started. */
export interface KnownAgent {
  readonly definition: AgentDefinition
  readonly source: AgentSource
  /** The file of the definition. Undefined: the agent is built in. */
  readonly file: string | undefined
  /** Tools that only this agent has, made for one run and released with its scope. `reads`: all of them only read. */
  readonly own?:
    | { readonly reads: boolean; readonly open: Effect.Effect<ReadonlyArray<Tool>, AgentFailure, Scope.Scope> }
    | undefined
  /** Whether the agent is offered to a model only if the user includes it by name. */
  readonly isOptIn?: boolean | undefined
}

/** All agents by name, and the files that could not be used. */
export interface KnownAgents {
  readonly agents: ReadonlyArray<KnownAgent>
  readonly problems: ReadonlyArray<UnusableFile>
}

/** The agents sorted by name. Of several with the same name, the last wins. */
export const byName = (agents: ReadonlyArray<KnownAgent>): ReadonlyArray<KnownAgent> => {
  const last = new Map(agents.map((agent) => [agent.definition.name, agent]))
  return [...last.values()].sort((a, b) => (a.definition.name < b.definition.name ? -1 : 1))
}

/** Provides the agents that this program can start. */
export class AgentDefinitions extends Context.Service<
  AgentDefinitions,
  {
    /** All agents. An invalid file does not affect the others. Files are read once. */
    readonly all: Effect.Effect<KnownAgents>
  }
>()("palimpsest/services/agent/AgentDefinitions") {
  /** Provides exactly these agents. */
  static readonly layerOf = (agents: ReadonlyArray<KnownAgent>) =>
    Layer.succeed(AgentDefinitions, { all: Effect.succeed({ agents: byName(agents), problems: [] }) })
}
