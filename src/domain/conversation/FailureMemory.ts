import type { EntryId } from "./Conversation.ts"

/** The failed compressions of one chat or agent. */
export interface FailureMemory {
  /** A summary was larger than the messages it replaced (`hasFailedCompressionAttempt` in Gemini CLI). Forgotten when the chat is closed. */
  readonly failed: boolean
  /** Automatic compression waits until the view has this many tokens. */
  readonly waitUntil: number
  /** Ranges that a model was paid for without a result, the latest last. They are not paid for again unless the user asks. */
  readonly tried?: ReadonlyArray<TriedRange>
  /** By summarizing model: how many compressions in a row it gave nothing usable. */
  readonly unusable?: Readonly<Record<string, number>>
}

/** Compressions in a row without a usable summary, after which a model is not asked again. */
export const maxUnusable = 2

/** The name under which the model is counted that is asked when none is named. */
export const defaultModelName = "the default model"

/** Returns those of these models that may still be asked. */
export const usableModels = ({ unusable = {} }: FailureMemory, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.filter((name) => !Object.hasOwn(unusable, name) || (unusable[name] ?? 0) < maxUnusable)

/** Returns the memory after models gave nothing usable. `isWritten`: another one then wrote the summary, or the same one wrote it again. */
export const withUnusable = (
  memory: FailureMemory,
  names: ReadonlyArray<string> = [],
  isWritten: boolean
): FailureMemory => {
  const { unusable = {}, ...rest } = memory
  const counted = Object.entries(unusable).filter(([name]) => !isWritten && !names.includes(name))
  const failed = names.map((name) => [name, (Object.hasOwn(unusable, name) ? (unusable[name] ?? 0) : 0) + 1] as const)
  // A model that was given up stays so, whatever others write.
  const givenUp = Object.entries(unusable).filter(([name, times]) => times >= maxUnusable && !names.includes(name))
  const all = Object.fromEntries([...counted, ...givenUp, ...failed])
  return Object.keys(all).length === 0 ? rest : { ...rest, unusable: all }
}

/** Returns the memory after another model was chosen: each may be asked again. */
export const afterModelSwitch = ({ unusable: _unusable, ...rest }: FailureMemory): FailureMemory => rest

/** The first and the last message of a range that was to be summarised. */
export interface TriedRange {
  readonly from: EntryId
  readonly to: EntryId
}

/** A memory without failures. */
export const freshMemory: FailureMemory = { failed: false, waitUntil: 0 }

/** Growth, as a factor, after which a compression that did not help is tried again. */
const growthFactor = 1.1
/** Returns the tokens from which a compression is tried again that did not help at this size. */
export const retryFrom = (tokens: number): number => Math.ceil(tokens * growthFactor)

/** Returns the tokens that a whole request must have before the next automatic compression. `rest`: those of all but the view. */
export const requestMark = ({ waitUntil }: FailureMemory, rest: number): number => waitUntil && waitUntil + rest

/** A success that leaves more than this share of the view is no progress. */
const noProgressShare = 0.9

/** Maximum number of remembered ranges. Older ones are no longer in reach. */
const maxTriedRanges = 16

const withTried = (memory: FailureMemory, range: TriedRange | undefined): FailureMemory =>
  range === undefined || isTried(memory, range)
    ? memory
    : { ...memory, tried: [...(memory.tried ?? []), { from: range.from, to: range.to }].slice(-maxTriedRanges) }

/** The result of one compression. Tokens are those of the view. */
export interface CompressionEnd {
  readonly status: string
  readonly forced: boolean
  /** Tokens afterwards. */
  readonly tokens: number
  /** Tokens before; absent when nothing changed. */
  readonly before?: number | undefined
  readonly tried?: TriedRange | undefined
  /** Whether the strategy waits for growth after a failure. Gemini CLI's does not. */
  readonly waits?: boolean | undefined
}

/**
 * Returns the memory after a compression (Gemini CLI, March 2026): success clears it, an inflated result that was not forced
 * sets `failed`, everything else leaves it unchanged. In addition, to avoid paying without a gain, the next automatic
 * attempt waits for the conversation to grow after an unforced failure and after a success that gained hardly anything, and
 * ranges that were paid for in vain are remembered.
 */
export const remember = (memory: FailureMemory, ended: CompressionEnd): FailureMemory => {
  const { before = Infinity, forced, status, tokens, tried, waits = true } = ended
  const grown = retryFrom(tokens)
  if (status === "COMPRESSED") {
    // After an undo, the ranges that were paid for in vain are in the view again.
    const cleared = afterBranch(memory)
    return tokens <= before * noProgressShare ? cleared : { ...cleared, waitUntil: grown }
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

/** Returns the memory with which a stored conversation is opened: as in Gemini CLI, an inflated result counts in its process only. */
export const afterReopening = (memory: FailureMemory): FailureMemory =>
  memory.failed ? { ...memory, failed: false } : memory

/** Whether a model was paid for this range before without a result. */
export const isTried = ({ tried = [] }: FailureMemory, { from, to }: TriedRange): boolean =>
  tried.some((each) => each.from === from && each.to === to)

/** Returns the memory after the conversation went back: another view gets a new try, and no model is paid again in vain. */
export const afterBranch = ({ tried, unusable }: FailureMemory): FailureMemory => ({
  ...freshMemory,
  ...(unusable === undefined ? {} : { unusable }),
  ...(tried === undefined ? {} : { tried })
})

/**
 * Returns the memory after an undo onto a view above the threshold. Automatic compression waits for the next growth mark,
 * and no model is paid again for the restored range.
 */
export const afterUndo = (memory: FailureMemory, tokens: number, undone?: TriedRange): FailureMemory => ({
  ...withTried(memory, undone),
  waitUntil: retryFrom(tokens)
})
