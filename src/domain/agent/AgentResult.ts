/** The result of an agent that another agent or the user started. */

import { Schema } from "effect"

/** Why an agent's work ended. */
export const TerminateReason = Schema.Literals([
  "GOAL",
  "ERROR",
  "TIMEOUT",
  "MAX_TURNS",
  "ABORTED",
  "ERROR_NO_COMPLETE_TASK_CALL"
])
export type TerminateReason = typeof TerminateReason.Type

/** The result of an agent. Nothing else of its work returns to its caller. */
export interface AgentResult {
  /** What the agent found or did. If it did not reach its goal: what stopped it, and its partial work. */
  readonly text: string
  readonly reason: TerminateReason
  readonly turns: number
  /** The duration in milliseconds. */
  readonly duration: number
  /** The session that holds all of its work, if it is saved here. Its handles can be recalled. */
  readonly session: string | undefined
  /** What a reader must know to judge the text. It is sent to the model with the text. Undefined: nothing. */
  readonly note?: string | undefined
  /** Where the agent's whole work can be read, in words for the caller. */
  readonly work?: string | undefined
}
