import type { ClaudeRecord } from "./Record.ts"

/** Finds the records that a fork repeats of the session that it comes from. */

/** What is known of a file so far. It is plain data, so that a scan can continue when the file has grown. */
export interface CopiesState {
  /** When a file began whose first record queues a prompt. */
  began?: string
}

/**
 * Reads the next record, and tells whether it is a copy. `/branch` names the origin of each; `--fork-session` does not, and repeats them
 * after the prompt of the fork, which is later (Claude Code 2.1).
 */
export const isCopied = (state: CopiesState, { _tag, at, isForked }: ClaudeRecord): boolean => {
  if (at !== undefined) state.began ??= _tag === "Queued" ? String(at) : ""
  return isForked || (at !== undefined && at < Number(state.began))
}
