/** The contract between an agent and its machine: workspace, memory, skills, agents, editor and telemetry. */

import { Context, type Effect } from "effect"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { CommandHook } from "../../domain/hooks/HookSettings.ts"
import type * as Settings from "../../domain/settings/Settings.ts"
import type { AgentDefinitions, KnownAgent } from "../agent/AgentDefinitions.ts"
import type { ExternalRunner } from "../agent/AgentRunner.ts"
import type { SharedSlots } from "../agent/AgentSlots.ts"
import type { Memory } from "../memory/Memory.ts"
import type { Sink } from "../telemetry/Telemetry.ts"
import type { Skills } from "../tools/Skills.ts"
import type { IdeContext } from "../workspace/IdeContext.ts"
import type { Workspace } from "../workspace/Workspace.ts"

/** The folders that an agent's tools may use. Absolute paths. */
export interface WorkspaceFolders {
  readonly root: string
  readonly added: ReadonlyArray<string>
  /** Folders outside the workspace that tools may read but not write. */
  readonly readable: ReadonlyArray<string>
  /** Files outside the workspace that tools may also write: the plan's file. */
  readonly writable: ReadonlyArray<string>
}

/** Where memory files are looked for, and how. */
export interface MemoryPlaces {
  readonly root: string
  readonly added: ReadonlyArray<string>
  readonly settings: Pick<Settings.Settings, "loadMemoryFromIncludeDirectories" | "memory">
  /** The settings of the home folder alone: no workspace may choose which of the user's own files are memory. */
  readonly own: Pick<Settings.Settings, "memory">
}

/**
 * Opens what an agent needs of the machine, for one folder: workspace, memory, skills, agents, editor, telemetry.
 *
 * *When to use*: `LiveRuntime` implements it with files; implement it yourself to keep these things elsewhere.
 */
export class RuntimePlatform extends Context.Service<
  RuntimePlatform,
  {
    /** This program's version; MCP servers get it. */
    readonly version: string
    /** As Node names it: `linux`, `darwin`, `win32`. */
    readonly platform: string
    /** The program's data folder, absolute. */
    readonly home: string
    /** Opens a workspace; the failure names the folder that cannot be used. */
    readonly workspace: (folders: WorkspaceFolders) => Effect.Effect<Workspace["Service"], { readonly message: string }>
    /** The user's skills, and those of the workspace when it is trusted. */
    readonly skills: (root: string, isTrusted: boolean) => Effect.Effect<Skills["Service"]>
    /** The built-in agents, the user's, and those of the workspace when it is trusted. */
    readonly agents: (root: string, isTrusted: boolean) => Effect.Effect<AgentDefinitions["Service"]>
    /** The user's memory, and that of trusted folders. */
    readonly memory: (places: MemoryPlaces) => Effect.Effect<Memory["Service"]>
    /** What the user's editor reports. `file`: where it does, relative to the home folder. */
    readonly ide: (root: string, ide: Settings.Settings["ide"]) => Effect.Effect<IdeContext["Service"]>
    /** Appends telemetry to this file; a relative path starts at the home folder. */
    readonly sink: (file: string) => Effect.Effect<Sink>
    /** Records the hooks of a folder; returns those that are new there. */
    readonly knownHooks: (
      folder: string,
      hooks: ReadonlyArray<CommandHook>
    ) => Effect.Effect<ReadonlyArray<CommandHook>>
    /** The slots with this name, which count the agents that run at once; without a name, new ones. */
    readonly slots: (name: string | undefined) => Effect.Effect<SharedSlots>
    /** The runner of an agent that runs outside this process; undefined when it runs inside, or nothing can run it. */
    readonly externalRunner: (
      agent: KnownAgent
    ) => Effect.Effect<ExternalRunner | undefined, never, ChildProcessSpawner>
  }
>()("palimpsest/services/runtime/RuntimePlatform") {}
