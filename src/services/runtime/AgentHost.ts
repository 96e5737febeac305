/** The contract of an assembled agent, and how messages are sent to it. */

import type { Effect, Stdio, Stream } from "effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { Dns } from "effect/net/Dns"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Part } from "../../domain/content/Content.ts"
import type { RecentActivity } from "../../domain/telemetry/Telemetry.ts"
import type { KnownAgents } from "../agent/AgentDefinitions.ts"
import type { RunOptions } from "../agent/AgentRun.ts"
import type { Runtime } from "../agent/LocalAgentStart.ts"
import type { Subagents } from "../agent/Subagents.ts"
import type { TurnError } from "../chat/Turn.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import type { Environment } from "../platform/Environment.ts"
import type { SessionFiles } from "../session/SessionFiles.ts"
import type { SessionStore } from "../session/SessionStore.ts"
import type { Settings } from "../settings/Settings.ts"
import type { Approval } from "../tools/Approval.ts"
import type { BackgroundCommandList } from "../tools/builtin/BackgroundCommands.ts"
import type { Tool } from "../tools/Tool.ts"
import type { Trust } from "../workspace/Trust.ts"
import type { AgentContext } from "./AgentContext.ts"
import type { FileRewind } from "./FileRewind.ts"
import type { RuntimePlatform } from "./RuntimePlatform.ts"

/** Options of one message. */
export interface SendOptions extends Pick<
  RunOptions,
  "author" | "cancel" | "lasting" | "messageId" | "model" | "selects" | "steering" | "tools"
> {
  /** The start of the message that the user typed: only there `@` references count. Absent: all of it. */
  readonly typed?: string | undefined
}

/** An agent at a conversation. */
export interface AgentHost {
  /** Works on a message until nothing is left to do (`Agent.run`). */
  readonly run: (message: string | ReadonlyArray<Part>, options?: SendOptions) => Stream.Stream<ChatEvent, TurnError>
  readonly tools: ReadonlyArray<Tool>
  readonly approval: Approval["Service"]
  readonly agents: Subagents
  /** The definitions of all agents that are offered here, and the problems of invalid ones. */
  readonly definitions: KnownAgents
  /** The agent's context outside the conversation. */
  readonly context: AgentContext
  /** Files and folders below the working folder that no rule ignores, for completion; looked up again after some seconds. */
  readonly paths: Effect.Effect<ReadonlyArray<string>>
  /** The commands that were started in the background, oldest first. */
  readonly commands: BackgroundCommandList["all"]
  /** Puts files back as they were at an earlier message. */
  readonly rewind: FileRewind
  /** The latest events, by kind. */
  readonly recent: Effect.Effect<RecentActivity>
  /**
   * Whether a hook asked for a new conversation since the last look, and which message is to follow in it. Looking resets it.
   */
  readonly clearing: Effect.Effect<{ readonly next: string | undefined } | undefined>
  /** Sets the reason that session hooks get when the session ends. Unset, it is `exit`. */
  readonly leave: (reason: "clear" | "exit") => Effect.Effect<void>
}

/** The services that an agent is assembled from. */
export type RuntimeServices =
  | ChildProcessSpawner
  | Dns
  | Environment
  | Exclude<Runtime, Approval>
  | HookSystem
  | HttpClient
  | RuntimePlatform
  | SessionFiles
  | SessionStore
  | Settings
  | Stdio.Stdio
  | Trust
