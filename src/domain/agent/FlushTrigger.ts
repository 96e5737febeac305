/** Decides when memory is flushed before a compression, as in OpenClaw. */

/** The maximum number of tokens by which a flush precedes a compression. */
const maxFlushLead = 4_000

/** Bytes added to the log since the last flush that trigger a flush, regardless of the window. */
export const forcedLogBytes = 2 * 1024 * 1024

/** Failed attempts after which no other is made until the next compression. */
export const maxFlushFailures = 3

/** Returns the tokens at which a flush is due, when compression starts at `trigger` tokens. */
export const flushTokens = (trigger: number): number => trigger - Math.min(maxFlushLead, trigger / 2)

/** The input of the decision. */
export interface FlushFacts {
  /** Tokens of the next request, with its message. */
  readonly tokens: number
  /** The tokens at which the conversation is compressed. */
  readonly trigger: number
  /** Bytes of the log since the last flush. */
  readonly logBytes: number
}

/** Whether a flush is due. */
export const isFlushDue = ({ logBytes, tokens, trigger }: FlushFacts): boolean =>
  tokens >= flushTokens(trigger) || logBytes >= forcedLogBytes

/** The answer of a model that has nothing to report, as in OpenClaw. */
export const silentAnswer = "NO_REPLY"

/** Whether an answer reports nothing, so that it is not shown. */
export const isSilentAnswer = (answer: string): boolean => answer.replaceAll(silentAnswer, "").trim() === ""
