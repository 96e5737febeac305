import type { EntryId } from "./Conversation.ts"

/** What an agent or a chat remembers about compressions that failed. Each has its own. */
export interface FailureMemory {
  /** The seeds' `hasFailedCompressionAttempt`: a summary came out larger than what it replaced. */
  readonly failed: boolean
  /** Automatic compression waits until the view holds this many tokens. */
  readonly waitUntil: number
  /** Ranges that a model was paid for in vain, the latest last: nobody pays for them twice unasked. */
  readonly tried?: ReadonlyArray<Tried>
}

/** The first and the last message of what was to be summarised. */
export interface Tried {
  readonly from: EntryId
  readonly to: EntryId
}

/** Nothing has failed, nothing is waited for. */
export const freshMemory: FailureMemory = { failed: false, waitUntil: 0 }

/** Growth, as a share of the view, after which a compression that did not help is tried again. */
const growthMark = 1.1
/** A success that leaves more than this share of the view is no progress (law 4). */
const leastLeft = 0.9

/** So many ranges are known: of more, the oldest were long left behind. */
const knownRanges = 16

const withTried = (memory: FailureMemory, range: Tried | undefined): FailureMemory =>
  range === undefined || isTried(memory, range)
    ? memory
    : { ...memory, tried: [...(memory.tried ?? []), { from: range.from, to: range.to }].slice(-knownRanges) }

/** How one compression ended. Tokens are the view's. */
export interface Ending {
  readonly status: string
  readonly forced: boolean
  /** Afterwards. */
  readonly tokens: number
  /** Before, where something changed. */
  readonly before?: number | undefined
  readonly tried?: Tried | undefined
  /** Whether the strategy waits for growth after a failure. Gemini CLI's does not. */
  readonly waits?: boolean | undefined
}

/**
 * The memory after a compression ended (Gemini CLI, March 2026): success clears it, an inflated result that nobody forced sets
 * `failed`, all else leaves it. Beyond that nobody pays without gain (law 4): after an unforced failure, and after a success that
 * hardly gained anything, the next automatic attempt waits for the conversation to grow; a range that was paid for in vain is
 * known.
 */
export const remember = (memory: FailureMemory, ended: Ending): FailureMemory => {
  const { before = Infinity, forced, status, tokens, tried, waits = true } = ended
  const grown = Math.ceil(tokens * growthMark)
  if (status === "COMPRESSED") {
    // Undone, what was paid for in vain is there again.
    const known = memory.tried === undefined ? freshMemory : { ...freshMemory, tried: memory.tried }
    return tokens <= before * leastLeft ? known : { ...known, waitUntil: grown }
  }
  if (status === "NOOP" || status === "CANCELLED" || status === "CONTENT_TRUNCATED") return memory
  const kept = withTried(memory, tried)
  if (forced) return kept
  return {
    ...kept,
    failed: memory.failed || status === "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
    waitUntil: waits ? grown : memory.waitUntil
  }
}

/** Whether a model was paid for this range before, and gave nothing. */
export const isTried = ({ tried = [] }: FailureMemory, { from, to }: Tried): boolean =>
  tried.some((each) => each.from === from && each.to === to)

/**
 * After an undo onto a view that is over the threshold, automatic compression waits for the next growth mark, and no model is paid
 * for the range again that was given back.
 */
export const afterUndo = (memory: FailureMemory, tokens: number, undone?: Tried): FailureMemory => ({
  ...withTried(memory, undone),
  waitUntil: Math.ceil(tokens * growthMark)
})
