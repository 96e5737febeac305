import { Context, Effect, Layer, type Scope } from "effect"
import {
  type AgentDefinition,
  type DefinitionProblem,
  definitionProblemText
} from "../../domain/agent/AgentDefinition.ts"
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

/** A file or folder that was left out or not read to its end, and why. */
export interface AgentProblem {
  readonly file: string
  readonly reason:
    | { readonly _tag: "Untrusted"; readonly folder: string }
    /** `detail` is the disk's message. */
    | { readonly _tag: "Unreadable"; readonly detail: string }
    | { readonly _tag: "NoFile" }
    | { readonly _tag: "TooLarge" }
    | { readonly _tag: "Invalid"; readonly problem: DefinitionProblem }
    | { readonly _tag: "TooManyAgents"; readonly maxAgents: number }
}

/** A problem in words, in one line: the file, and what was expected. */
export const agentProblemText = ({ file, reason }: AgentProblem): string => {
  switch (reason._tag) {
    case "Untrusted":
      return `${file}: it is in ${reason.folder}, which is not trusted; it was left out`
    case "Unreadable":
      return `${file}: cannot be read: ${reason.detail}`
    case "NoFile":
      return `${file}: expected a file with the definition of an agent`
    case "TooLarge":
      return `${file}: expected a definition of at most 1 MiB`
    case "Invalid":
      return `${file}: ${definitionProblemText(reason.problem)}`
    case "TooManyAgents":
      return `${file}: expected at most ${reason.maxAgents} agents; the rest is left out`
  }
}

/** All agents by name, and the files that could not be used. */
export interface KnownAgents {
  readonly agents: ReadonlyArray<KnownAgent>
  readonly problems: ReadonlyArray<AgentProblem>
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
