import { Context, type Effect, type Stdio, type Stream } from "effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { Dns } from "effect/net/Dns"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { ApprovalMode } from "../domain/Approval.ts"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import type { Part } from "../domain/Content.ts"
import type { CommandHook } from "../domain/HookSettings.ts"
import type * as Settings from "../domain/Settings.ts"
import type { Activities } from "../domain/Telemetry.ts"
import type { RunOptions } from "../services/Agent.ts"
import type { AgentDefinitions, KnownAgent, KnownAgents } from "../services/AgentDefinitions.ts"
import type { AgentRunner } from "../services/AgentRunner.ts"
import type { Approval, ApprovalOptions } from "../services/Approval.ts"
import type { TurnError } from "../services/Chat.ts"
import type { Closed } from "../services/ChatTerminal.ts"
import type { Environment } from "../services/Environment.ts"
import type { HookSystem } from "../services/HookSystem.ts"
import type { IdeContext } from "../services/IdeContext.ts"
import type { LineMatcher } from "../services/LineMatcher.ts"
import type * as LocalAgentRunner from "../services/LocalAgentRunner.ts"
import type { Memory } from "../services/Memory.ts"
import type { PersonQuestion } from "../services/Person.ts"
import type { SessionFiles } from "../services/SessionFiles.ts"
import type { SessionStore } from "../services/SessionStore.ts"
import type { Settings as SettingsService } from "../services/Settings.ts"
import type { Skills } from "../services/Skills.ts"
import type { Subagents } from "../services/Subagents.ts"
import type { Sink } from "../services/Telemetry.ts"
import type { Tool } from "../services/Tool.ts"
import type { Trust } from "../services/Trust.ts"
import type { Workspace } from "../services/Workspace.ts"
import type { Knowledge } from "./Knowledge.ts"

/** An agent of the command line: what it is made of, and what it can be asked. */

/** What was asked for. */
export interface Wanted {
  readonly approve?: ApprovalMode | undefined
  readonly tools?: boolean | undefined
  readonly addDir?: ReadonlyArray<string> | undefined
  /** It begins anew in the place of another session. */
  readonly isCleared?: boolean | undefined
  /** Nothing will be said: what an agent would know is looked at, and nobody is told of a session. */
  readonly isLook?: boolean | undefined
}

/** The folders of a workspace. */
export interface Folders {
  readonly root: string
  readonly added: ReadonlyArray<string>
  /** Only to read in. */
  readonly readable: ReadonlyArray<string>
  /** Places outside of them that may be written too: the plan's file. */
  readonly writable: ReadonlyArray<string>
}

/** Where memory is looked for, and how. */
export interface MemoryPlaces {
  readonly root: string
  readonly added: ReadonlyArray<string>
  readonly settings: Pick<Settings.Settings, "loadMemoryFromIncludeDirectories" | "memory">
  /** What the home folder's file says, and nobody else: no folder may choose which of the person's own files are memory. */
  readonly own: Pick<Settings.Settings, "memory">
}

/** What of the machine the tools of the command line stand on. */
export class Ground extends Context.Service<
  Ground,
  {
    /** Servers are told it. */
    readonly version: string
    /** As Node names it: `linux`, `darwin`, `win32`. */
    readonly platform: string
    /** The folder of this program, absolute. */
    readonly home: string
    /** The workspace of these folders; a failure names the one that cannot be used. */
    readonly workspace: (folders: Folders) => Effect.Effect<Workspace["Service"], { readonly message: string }>
    /** The skills of a workspace, where it is trusted, and of the person. */
    readonly skills: (root: string, isTrusted: boolean) => Effect.Effect<Skills["Service"]>
    /** The agents that are built in, of a workspace, where it is trusted, and of the person. */
    readonly agents: (root: string, isTrusted: boolean) => Effect.Effect<AgentDefinitions["Service"]>
    /** What is remembered: of the person, and of the folders that are trusted. */
    readonly memory: (places: MemoryPlaces) => Effect.Effect<Memory["Service"]>
    /** What the person's editor says. `file`: where it writes that, seen from the home folder; absent: into that. */
    readonly ide: (root: string, ide: Settings.Settings["ide"]) => Effect.Effect<IdeContext["Service"]>
    /** Where telemetry is written: this file; a relative path is meant from the home folder. */
    readonly sink: (file: string) => Effect.Effect<Sink>
    /** Notes the hooks that a folder brings; a line about those that it did not bring before, where there are any. */
    readonly knownHooks: (folder: string, hooks: ReadonlyArray<CommandHook>) => Effect.Effect<string | undefined>
    /** What runs an agent that does not run in this process; undefined: nothing does. */
    readonly elsewhere: (agent: KnownAgent) => Effect.Effect<AgentRunner | undefined>
  }
>()("palimpsest/cli/Worker/Ground") {}

/** Who is asked, and who is told what goes wrong on the way. */
export interface People {
  /** Whether a conversation can be left for a new one. Absent: a hook that wants that cannot have it. */
  readonly canBeginAnew?: boolean | undefined
  /** Whether what does not fit may be sent shortened; absent: nobody can be asked, and it is. */
  readonly shorten?: ((sizes: string) => Effect.Effect<boolean>) | undefined
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
    options?: Pick<RunOptions, "author" | "cancel"> & {
      /** The beginning of the message that the person typed: references count in it alone. Absent: all of it. */
      readonly typed?: string | undefined
    }
  ) => Stream.Stream<ChatEvent, TurnError>
  readonly tools: ReadonlyArray<Tool>
  readonly approval: Approval["Service"]
  readonly agents: Subagents
  readonly known: KnownAgents
  /** What it knows beside the conversation. */
  readonly knowledge: Knowledge
  /** What happened last. */
  readonly recent: Effect.Effect<Activities>
  /** That a hook wants the conversation to begin anew since this was asked last, and what it wants done then. */
  readonly clearing: Effect.Effect<{ readonly next: string | undefined } | undefined>
  /** Says why the session ends, before it does. Absent word: the program ends. */
  readonly leave: (reason: "clear" | "exit") => Effect.Effect<void>
}

/** What tools are made of. */
export type Runtime =
  | ChildProcessSpawner
  | Dns
  | Environment
  | Exclude<LocalAgentRunner.Runtime, Approval>
  | Ground
  | HookSystem
  | HttpClient
  | LineMatcher
  | SessionFiles
  | SessionStore
  | SettingsService
  | Stdio.Stdio
  | Trust

/** What the agent that a person talks with is called where somebody is asked. */
export const mainAgent = "palimpsest"
