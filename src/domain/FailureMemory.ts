/** What an agent or a chat remembers about compressions that failed. Each has its own. */
export interface FailureMemory {
  /** The seeds' `hasFailedCompressionAttempt`: a summary came out larger than what it replaced. */
  readonly failed: boolean
  /** Automatic compression waits until the view holds this many tokens. */
  readonly waitUntil: number
}

/** Nothing has failed, nothing is waited for. */
export const freshMemory: FailureMemory = { failed: false, waitUntil: 0 }

/** Growth, as a share of the view, after which a compression that did not help is tried again. */
const growthMark = 1.1

/**
 * The memory after a compression ended (spec 3.7): success clears it, an inflated result that nobody forced sets it, all
 * else leaves it. After any unforced failure the next automatic attempt waits for the conversation to grow (law 4).
 */
export const remember = (
  memory: FailureMemory,
  ended: { readonly status: string; readonly forced: boolean; readonly tokens: number }
): FailureMemory => {
  if (ended.status === "COMPRESSED") return freshMemory
  if (ended.status === "NOOP" || ended.status === "CANCELLED" || ended.status === "CONTENT_TRUNCATED") return memory
  if (ended.forced) return memory
  return {
    failed: memory.failed || ended.status === "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
    waitUntil: Math.ceil(ended.tokens * growthMark)
  }
}

/** After an undo onto a view that is over the threshold, automatic compression waits for the next growth mark. */
export const afterUndo = (memory: FailureMemory, tokens: number): FailureMemory => ({
  ...memory,
  waitUntil: Math.ceil(tokens * growthMark)
})
