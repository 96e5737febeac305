/**
 * The messages between an agent and a subagent that it started, as the agent may read them again. They hold no secrets, and
 * each block and the whole have a maximum length.
 */

import { firstUnits } from "../text/Bytes.ts"
import { redact } from "../text/Redaction.ts"

/** The author of a block: the agent that started the subagent (`you`), the subagent (`agent`), or the runtime. */
export type Voice = "you" | "agent" | "runtime"

/** One message. */
export interface HistoryBlock {
  readonly voice: Voice
  readonly text: string
}

/** The messages to and from a subagent, oldest first, within bounds. */
export interface AgentHistory {
  readonly blocks: ReadonlyArray<HistoryBlock>
  /** Total characters of the blocks. */
  readonly length: number
  /** Number of blocks that were dropped to make room, oldest first. The first block, the task, stays. */
  readonly dropped: number
}

/** Maximum characters of one block. */
export const maxBlockChars = 4_000
/** Maximum characters of a whole history. */
export const maxHistoryChars = 80 * 1024

/** A history without blocks. */
export const empty: AgentHistory = { blocks: [], length: 0, dropped: 0 }

const clipBlock = (text: string): string =>
  text.length <= maxBlockChars
    ? text
    : `${firstUnits(text, maxBlockChars)}\n(${text.length - maxBlockChars} more characters)`

/** Returns the history with one more block. */
export const add = ({ blocks, dropped, length }: AgentHistory, voice: Voice, text: string): AgentHistory => {
  // Redacted before it is cut, so that the cut cannot leave part of a secret.
  const block: HistoryBlock = { voice, text: clipBlock(redact(text)) }
  const all = [...blocks, block]
  let size = length + block.text.length
  let without = 0
  while (size > maxHistoryChars) {
    without += 1
    size -= all[without]?.text.length ?? 0
  }
  return {
    blocks: without === 0 ? all : [...all.slice(0, 1), ...all.slice(1 + without)],
    length: size,
    dropped: dropped + without
  }
}
