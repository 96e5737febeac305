import { Context, Effect, Layer, type Scope } from "effect"
import type { AgentDefinition } from "../domain/AgentDefinition.ts"
import type { AgentFailure } from "./AgentRunner.ts"
import type { Tool } from "./Tool.ts"

/** Where a definition comes from. */
export type AgentSource = "built-in" | "project" | "user"

/** An agent that can be started. */
export interface KnownAgent {
  readonly definition: AgentDefinition
  readonly source: AgentSource
  /** Undefined: it is built in. */
  readonly file: string | undefined
  /** Tools that only it has, made for one run and gone with its scope; `reads`: all of them only read. */
  readonly own?:
    | { readonly reads: boolean; readonly open: Effect.Effect<ReadonlyArray<Tool>, AgentFailure, Scope.Scope> }
    | undefined
  /** It is offered to a model only where somebody asked for it by name. */
  readonly isOptIn?: boolean | undefined
}

/** A file that defines no agent because something is wrong with it. */
export interface AgentProblem {
  readonly file: string
  /** One line: the file, the field, what was expected. */
  readonly message: string
}

/** All agents there are, by name, and the files that could not be used. */
export interface KnownAgents {
  readonly agents: ReadonlyArray<KnownAgent>
  readonly problems: ReadonlyArray<AgentProblem>
}

/** Of agents with the same name the later counts. In the order of names. */
export const byName = (agents: ReadonlyArray<KnownAgent>): ReadonlyArray<KnownAgent> => {
  const last = new Map(agents.map((agent) => [agent.definition.name, agent]))
  return [...last.values()].sort((a, b) => (a.definition.name < b.definition.name ? -1 : 1))
}

/** The agents that this program knows. */
export class AgentDefinitions extends Context.Service<
  AgentDefinitions,
  {
    /** All of them; a broken file takes none of the others away. Files are read once. */
    readonly all: Effect.Effect<KnownAgents>
  }
>()("palimpsest/services/AgentDefinitions") {
  /** These and no others. */
  static readonly layerOf = (agents: ReadonlyArray<KnownAgent>) =>
    Layer.succeed(AgentDefinitions, { all: Effect.succeed({ agents: byName(agents), problems: [] }) })
}
