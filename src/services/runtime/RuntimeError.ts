/** The errors of opening a session and of assembling an agent. */

import { Schema } from "effect"
import type { InvalidOption } from "../../domain/compression/InvalidOption.ts"
import type { ChatBusy } from "../chat/Commit.ts"
import type { SystemPromptError } from "../prompt/SystemPrompt.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import type { SettingsError } from "../settings/Settings.ts"

/** The provider does not have the model. */
export class UnknownModelError extends Schema.TaggedError<UnknownModelError>()("UnknownModelError", {
  model: Schema.String,
  /** Says that there is no such model, and which one may have been meant. */
  text: Schema.String,
  /** Whether the caller named the model; else the settings or the defaults did. */
  isRequested: Schema.Boolean
}) {
  override get message() {
    return this.text
  }
}

/** Why a name selects no session. */
export const SelectionProblem = Schema.TaggedUnion({
  /** The store is empty. */
  NoSessions: {},
  Unknown: {},
  Ambiguous: { ids: Schema.Array(Schema.String) },
  /** There is no such session, and none can start under this name: an id is 1 to 64 letters, digits, hyphens, underscores. */
  InvalidId: {}
})
export type SelectionProblem = typeof SelectionProblem.Type

/** A name that selects no session, or several. */
export class SessionSelectionError extends Schema.TaggedError<SessionSelectionError>()("SessionSelectionError", {
  name: Schema.String,
  problem: SelectionProblem
}) {
  override get message() {
    return SelectionProblem.match(this.problem, {
      NoSessions: () => "no sessions yet",
      Unknown: () => `there is no session ${this.name}`,
      Ambiguous: ({ ids }) => `${this.name} names ${ids.length} sessions: ${ids.join(", ")}`,
      InvalidId: () =>
        `there is no session ${this.name}, and none can start under this name: an id is 1 to 64 letters, digits, hyphens or underscores`
    })
  }
}

/** A folder of the workspace cannot be used; the message names it. */
export class WorkspaceFolderError extends Schema.TaggedError<WorkspaceFolderError>()("WorkspaceFolderError", {
  message: Schema.String
}) {}

/** The agents that started one another allow no further one. */
export class AgentNestingError extends Schema.TaggedError<AgentNestingError>()("AgentNestingError", {
  /** `Unreadable`: the inherited place is missing or damaged. `Uncounted`: the running agents cannot be counted. */
  problem: Schema.Literals(["TooDeep", "TooMany", "Uncounted", "Unreadable"]),
  message: Schema.String
}) {}

/** Everything that can go wrong while a session is opened. */
export type OpenError =
  | ChatBusy
  | InvalidOption
  | SessionSelectionError
  | SessionStoreError
  | SettingsError
  | UnknownModelError

/** Everything that can go wrong while an agent is assembled for an open session. */
export type HostError = AgentNestingError | ChatBusy | SessionStoreError | SystemPromptError | WorkspaceFolderError

/** Everything that can go wrong before the first message. Catch single ones by their tag. */
export type RuntimeError = HostError | OpenError
