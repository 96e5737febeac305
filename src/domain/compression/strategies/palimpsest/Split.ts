import { beginsTurn } from "../../../conversation/Conversation.ts"
import type { IndexedView } from "../../../conversation/IndexedView.ts"

/** Finds the index that splits a conversation: messages before it are summarised, the others are kept. */

/** Share of the tail's budget that has to be used before a cut moves to the beginning of a turn. */
const turnPreference = 0.6

/**
 * Returns the index from `start` on at which the kept tail begins: the earliest clean cut with a tail within the budget, moved
 * to the beginning of a turn unless that gives away too much. A pending message stays whatever its size.
 */
export const splitIndex = (
  view: IndexedView,
  start: number,
  size: (index: number) => number,
  pending: number,
  budget: number
): number => {
  let tail = 0
  let earliest = pending
  let atTurn: number | undefined
  for (let index = view.length - 1; index >= start; index -= 1) {
    tail += size(index)
    if (index >= pending) continue
    if (tail > budget) break
    if (!view.isClean(index)) continue
    earliest = index
    const item = view.at(index)
    if (item !== undefined && beginsTurn(item.entry) && tail >= budget * turnPreference) atTurn = index
  }
  return atTurn ?? earliest
}
