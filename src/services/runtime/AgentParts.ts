/** What an agent is assembled from: its session, its options, and the callbacks by which it reaches its user. */

import { Effect } from "effect"
import type { ApprovalMode } from "../../domain/tools/Approval.ts"
import type { Memory } from "../memory/Memory.ts"
import { locateLogs } from "../session/SessionFiles.ts"
import { blobFolderOf } from "../session/TempStore.ts"
import type { Closed } from "../terminal/ChatTerminal.ts"
import type { Approval, ApprovalOptions } from "../tools/Approval.ts"
import type { Plans } from "../tools/Plans.ts"
import type { UserQuestion } from "../tools/UserPrompt.ts"
import type { Workspace } from "../workspace/Workspace.ts"
import type { Nesting } from "./AgentNesting.ts"
import type { Notify } from "./RuntimeNotice.ts"
import type { OpenSession } from "./SessionOpening.ts"

/** The parts of an open session that an agent works with. */
export type HostSession = Pick<OpenSession, "chat" | "files" | "id" | "isNew" | "session" | "settings">

/** Options of an agent. What is absent comes from the settings. */
export interface HostOptions {
  /** Which calls run without asking. */
  readonly approve?: ApprovalMode | undefined
  /** False: the agent has no tools and only answers. */
  readonly tools?: boolean | undefined
  /** What takes the place of the system prompt, looked up before each message. Undefined: nothing does. */
  readonly instruction?: Effect.Effect<string | undefined> | undefined
  /** Folders beside the working folder that tools may use; each has to exist. */
  readonly addDir?: ReadonlyArray<string> | undefined
  /** The session takes the place of another one that was cleared; hooks get that as its source. */
  readonly isCleared?: boolean | undefined
  /** The agent sends nothing: its context is only inspected, and session hooks do not run. */
  readonly isPreview?: boolean | undefined
  /** It is an agent that another process started and counts: it has its parent's approval mode, and session hooks do not run. */
  readonly isAgentProcess?: boolean | undefined
}

/** The callbacks by which an agent reaches its user. All except `notify` may be absent; the user cannot be asked then. */
export interface AgentHandlers {
  /** Receives notices that are not part of an answer. */
  readonly notify: Notify
  /** Decides about a call that needs approval. Absent: such calls are denied. */
  readonly ask?: ApprovalOptions["ask"]
  /** Whether the system prompt speaks of a user who sees each step. Default: where `ask` is given. */
  readonly isInteractive?: boolean | undefined
  /** Answers a question of the model. Absent: the model has no tool to ask with. */
  readonly answer?: ((question: UserQuestion) => Effect.Effect<string, Closed>) | undefined
  /** Asks whether referenced files that do not fit are sent shortened. `sizes` lists what does not fit. Absent: they are. */
  readonly confirmShortening?: ((sizes: string) => Effect.Effect<boolean>) | undefined
  /** Whether the program can replace the conversation by a new one. Absent: a hook's request for one is refused. */
  readonly canRestart?: boolean | undefined
}

/** What an agent is made from: its session, its folder, and what decides how far it may go. */
export interface AgentParts {
  readonly session: HostSession
  readonly options: HostOptions
  readonly handlers: AgentHandlers
  readonly approval: Approval["Service"]
  readonly nesting: Nesting
  /** Undefined: there is no plan mode. */
  readonly plans: Plans["Service"] | undefined
  readonly workspace: Workspace["Service"]
  readonly isTrusted: boolean
  readonly memory: Memory["Service"]
}

/** Whether the system prompt speaks of a user who sees each step. */
export const isInteractive = (handlers: AgentHandlers): boolean => handlers.isInteractive ?? handlers.ask !== undefined

/** The folder of a session's stored outputs; undefined for a session that is not stored in files. */
export const outputsOf = Effect.fnUntraced(function* (id: string | undefined) {
  const locate = yield* locateLogs
  const file = id === undefined ? undefined : locate(id)
  return file === undefined ? undefined : blobFolderOf(file)
})
