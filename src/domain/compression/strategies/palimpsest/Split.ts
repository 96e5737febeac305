import { isCall } from "../../../content/Content.ts"
import { beginsTurn, type ViewItem } from "../../../conversation/Conversation.ts"
import type { IndexedView } from "../../../conversation/IndexedView.ts"

/** Finds the index that splits a conversation: messages before it are summarised, the others are kept. */

/** Share of the tail's budget that has to be used before a cut moves to the beginning of a turn. */
const turnPreference = 0.6

const isUser = (item: ViewItem | undefined): boolean => item?.entry.content.role === "user"

/**
 * Returns the first index from `start` on that has to stay: a message that the model has not answered yet, with the calls that
 * it responds to.
 */
export const pendingFrom = (view: IndexedView, start: number): number => {
  const last = view.at(view.length - 1)
  if (last === undefined || (last.entry.content.role === "model" && !last.entry.content.parts.some(isCall)))
    return view.length
  let from = view.length - 1
  // Consecutive user messages are pending together.
  while (from > start && isUser(view.at(from - 1)) && isUser(view.at(from))) from -= 1
  while (from > start && !view.isClean(from)) from -= 1
  return from
}

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
