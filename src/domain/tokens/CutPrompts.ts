/**
 * Recognises counts of servers that cut long prompts and do not say so, as Ollama does at its `num_ctx`. Such a count says how much the server kept,
 * and nothing about the request.
 */

import { number } from "../text/NumberText.ts"

/** The last count of a model, and what its server seems to keep of a prompt. Tokens. */
export interface CountHistory {
  readonly last?: { readonly estimated: number; readonly counted: number }
  readonly kept?: number
}

/** The smallest count that may be all that a server keeps: no window is smaller. */
const minKept = 512
/** The smallest plausible count of a text, as a share of its estimate: no tokenizer needs only a third of the tokens. */
const minPlausibleShare = 0.3
/** Estimated growth after which the same count again is no coincidence, and after which some growth of the count is certain. */
const growth = { toSameCount: 24, toSomeCount: 256 }
/** The least growth of a count, as a share of the estimated growth of the same conversation. */
const minGrowthShare = 0.1
/** How far counts of one server that cuts prompts lie apart, as a share, and how far estimates lie above them. */
const nearKept = { apart: 0.1, above: 1.1 }

/** Whether a count is plausible for a text with this estimate. A smaller one counts something else. */
export const isPlausibleCount = (counted: number, estimated: number): boolean =>
  estimated > 0 && counted > 0 && counted >= estimated * minPlausibleShare

/** Whether a count is the last one again, although the request is longer: then it says nothing of either. */
export const isUnchangedCount = ({ last }: CountHistory, estimated: number, counted: number): boolean =>
  last !== undefined && counted === last.counted && estimated - last.estimated >= growth.toSameCount

/**
 * Whether a count is that of a prompt which the server cut: it lies far below the estimate, or stays the same while the request grows. `isLonger`: the
 * request is the last one and some more text.
 */
export const isCut = ({ kept, last }: CountHistory, estimated: number, counted: number, isLonger = false): boolean => {
  if (counted < minKept) return false
  if (!isPlausibleCount(counted, estimated)) return true
  const isNearKept =
    kept !== undefined && Math.abs(counted - kept) <= kept * nearKept.apart && estimated > counted * nearKept.above
  if (last === undefined || isNearKept) return isNearKept
  const added = estimated - last.estimated
  return (
    isUnchangedCount({ last }, estimated, counted) ||
    (isLonger && added >= growth.toSomeCount && counted - last.counted < added * minGrowthShare)
  )
}

/** The history after a count. */
export const withCount = (
  { kept }: CountHistory,
  estimated: number,
  counted: number,
  isCutNow: boolean
): CountHistory => ({
  last: { estimated, counted },
  ...(isCutNow ? { kept: counted } : kept === undefined || counted > kept ? {} : { kept })
})

/** A prompt that a server cut. `isNew`: it is the first one of its model in this process. */
export interface CutPrompt {
  readonly model: string
  readonly estimated: number
  readonly counted: number
  readonly isNew: boolean
}

/** Tells the user. */
export const cutPromptText = ({ counted, estimated, model }: CutPrompt): string =>
  `the server counted ${number(counted)} tokens where about ${number(estimated)} were sent: it seems to keep only so many and to drop the rest without saying so; raise its limit (Ollama: num_ctx), or set models.${model}.window to ${counted}`
