/** When memory is flushed before a compression, as in OpenClaw. */

/** How many tokens before a compression the flush is due, at most. */
const softTokens = 4_000

/** Bytes of the log since the last flush that force one, however full the window is. */
export const forcedLogBytes = 2 * 1024 * 1024

/** Failed tries after which no other is made until the next compression. */
export const maxFlushFailures = 3

/** The tokens from which the flush is due, for a conversation that is compressed from `trigger` tokens on. */
export const flushTokens = (trigger: number): number => trigger - Math.min(softTokens, trigger / 2)

/** What a decision depends on. */
export interface FlushFacts {
  /** Tokens of the next request, with its message. */
  readonly tokens: number
  /** The tokens from which the conversation is compressed. */
  readonly trigger: number
  /** Bytes of the log since the last flush. */
  readonly logBytes: number
}

/** Whether a flush is due. */
export const isFlushDue = ({ logBytes, tokens, trigger }: FlushFacts): boolean =>
  tokens >= flushTokens(trigger) || logBytes >= forcedLogBytes

/** The answer of a model that has nothing to say, as in OpenClaw. */
export const silentAnswer = "NO_REPLY"

/** Whether an answer means nothing, so that it is not shown. */
export const isSilentAnswer = (answer: string): boolean => answer.replaceAll(silentAnswer, "").trim() === ""
