import { firstUnits } from "./Bytes.ts"
import { redact } from "./Redaction.ts"

/**
 * What was said between an agent and one that it started, as far as the first may read it again: without secrets, the
 * blocks and the whole bounded (pi-openclaw B12).
 */

/** Whose words a block holds: the agent's that started the other, the other's, or the runtime's. */
export type Voice = "you" | "agent" | "runtime"

/** One block: what was said at once. */
export interface Said {
  readonly voice: Voice
  readonly text: string
}

/** What was said by and to an agent, oldest first, within bounds. */
export interface AgentHistory {
  readonly blocks: ReadonlyArray<Said>
  /** Characters of the blocks. */
  readonly length: number
  /** How many were left out to make room, the oldest first. The first of all, the task, stays. */
  readonly dropped: number
}

/** Characters of one block (pi-openclaw B12). */
export const longestBlock = 4_000
/** Characters of a whole history (pi-openclaw B12: 80 KB). */
export const longestHistory = 80 * 1024

/** Nothing was said yet. */
export const empty: AgentHistory = { blocks: [], length: 0, dropped: 0 }

const clip = (text: string): string =>
  text.length <= longestBlock
    ? text
    : `${firstUnits(text, longestBlock)}\n(${text.length - longestBlock} more characters)`

/** The history with one more block. */
export const add = ({ blocks, dropped, length }: AgentHistory, voice: Voice, text: string): AgentHistory => {
  // Redacted before it is cut: of a secret that the cut parts, no half stays.
  const block: Said = { voice, text: clip(redact(text)) }
  const all = [...blocks, block]
  let size = length + block.text.length
  let without = 0
  while (size > longestHistory && without + 2 < all.length) {
    without += 1
    size -= all[without]?.text.length ?? 0
  }
  return {
    blocks: without === 0 ? all : [...all.slice(0, 1), ...all.slice(1 + without)],
    length: size,
    dropped: dropped + without
  }
}
