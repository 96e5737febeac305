import { Context, type Effect, type Stream } from "effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { Dns } from "effect/net/Dns"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { ApprovalMode } from "../domain/Approval.ts"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import type { Part } from "../domain/Content.ts"
import type { AgentDefinitions, KnownAgent, KnownAgents } from "../services/AgentDefinitions.ts"
import type { AgentRunner } from "../services/AgentRunner.ts"
import type { Approval, ApprovalOptions } from "../services/Approval.ts"
import type { TurnError } from "../services/Chat.ts"
import type { Closed } from "../services/ChatTerminal.ts"
import type { Environment } from "../services/Environment.ts"
import type { LineMatcher } from "../services/LineMatcher.ts"
import type * as LocalAgentRunner from "../services/LocalAgentRunner.ts"
import type { PersonQuestion } from "../services/Person.ts"
import type { SessionFiles } from "../services/SessionFiles.ts"
import type { SessionStore } from "../services/SessionStore.ts"
import type { Settings } from "../services/Settings.ts"
import type { Skills } from "../services/Skills.ts"
import type { Subagents } from "../services/Subagents.ts"
import type { Tool } from "../services/Tool.ts"
import type { Workspace } from "../services/Workspace.ts"

/** An agent of the command line: what it is made of, and what it can be asked. */

/** What was asked for. */
export interface Wanted {
  readonly approve?: ApprovalMode | undefined
  readonly tools?: boolean | undefined
  readonly addDir?: ReadonlyArray<string> | undefined
}

/** The folders of a workspace. */
export interface Folders {
  readonly root: string
  readonly added: ReadonlyArray<string>
  /** Only to read in. */
  readonly readable: ReadonlyArray<string>
}

/** What of the machine the tools of the command line stand on. */
export class Ground extends Context.Service<
  Ground,
  {
    /** Servers are told it. */
    readonly version: string
    /** The workspace of these folders; a failure names the one that cannot be used. */
    readonly workspace: (folders: Folders) => Effect.Effect<Workspace["Service"], { readonly message: string }>
    /** The skills of a workspace and of the person. */
    readonly skills: (root: string) => Effect.Effect<Skills["Service"]>
    /** The agents that are built in, of a workspace and of the person. */
    readonly agents: (root: string) => Effect.Effect<AgentDefinitions["Service"]>
    /** What runs an agent that does not run in this process; undefined: nothing does. */
    readonly elsewhere: (agent: KnownAgent) => Effect.Effect<AgentRunner | undefined>
  }
>()("palimpsest/cli/Worker/Ground") {}

/** Who is asked, and who is told what goes wrong on the way. */
export interface People {
  /** Absent: nobody can be asked, and no is the answer. */
  readonly ask?: ApprovalOptions["ask"]
  /** Answers what a model wants to know. Absent: models cannot ask either. */
  readonly answer?: ((question: PersonQuestion) => Effect.Effect<string, Closed>) | undefined
  /** Tells something beside the answers. */
  readonly tell: (line: string) => Effect.Effect<void>
}

/** An agent at a conversation. */
export interface Worker {
  /** Works on a message until nothing is left to do (`Agent.run`). */
  readonly run: (
    message: string | ReadonlyArray<Part>,
    options?: { readonly cancel?: Effect.Effect<unknown> | undefined }
  ) => Stream.Stream<ChatEvent, TurnError>
  readonly tools: ReadonlyArray<Tool>
  readonly approval: Approval["Service"]
  readonly agents: Subagents
  readonly known: KnownAgents
}

/** What tools are made of. */
export type Runtime =
  | ChildProcessSpawner
  | Dns
  | Environment
  | Exclude<LocalAgentRunner.Runtime, Approval>
  | Ground
  | HttpClient
  | LineMatcher
  | SessionFiles
  | SessionStore
  | Settings

/** What the agent that a person talks with is called where somebody is asked. */
export const mainAgent = "palimpsest"
