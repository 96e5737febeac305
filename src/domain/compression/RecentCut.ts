import { cleanCuts, pendingFrom } from "../conversation/CleanCuts.ts"
import { beginsTurn, itemTokens, type ViewItem } from "../conversation/Conversation.ts"

/** Where a conversation is cut: what is before leaves, what is from there on stays. */
export interface Cut {
  /** The index of the first message that stays. 0: nothing can leave. */
  readonly at: number
  /** Where the turn begins that the cut splits; `at` when the cut is between turns. */
  readonly turn: number
}

/**
 * Returns the cut that keeps about this many tokens at the end: at the first message at or after the budget's point that is
 * no tool result. When there is none, as after one giant result, at the last one before that point: Pi keeps everything then,
 * and cannot compact. `at` is 0 when everything fits the budget. Calls that wait for their results, and messages that the model
 * has not answered, always stay.
 */
export const cutOf = (items: ReadonlyArray<ViewItem>, keepTokens: number): Cut => {
  const clean = cleanCuts(items)
  const { length } = items
  const end = pendingFrom({ length, at: (index) => items[index], isClean: (index) => clean[index] === true })
  let kept = 0
  let from = items.length
  while (from > 0 && kept < keepTokens) {
    from -= 1
    const item = items[from]
    kept += item === undefined ? 0 : itemTokens(item)
  }
  if (from === 0 && kept < keepTokens) return { at: 0, turn: 0 }
  const isCut = (index: number) => clean[index] === true && index <= end
  let at = Math.min(from, end)
  while (at < end && !isCut(at)) at += 1
  // All that is kept would be nothing: a message without an answer stays.
  if (!isCut(at) || (at === items.length && keepTokens > 0)) {
    at = Math.min(from, end)
    while (at > 0 && !isCut(at)) at -= 1
  }
  let turn = at
  const begins = (index: number) => items[index] !== undefined && beginsTurn(items[index].entry)
  if (at < items.length) while (turn > 0 && !begins(turn)) turn -= 1
  return { at, turn: begins(turn) ? turn : at }
}
