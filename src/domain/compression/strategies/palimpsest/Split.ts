import { hasResponses, isCall } from "../../../content/Content.ts"
import type { ViewItem } from "../../../conversation/Conversation.ts"

/** Finds the index that splits a conversation: messages before it are summarised, the others are kept. */

/** Share of the tail's budget that has to be used before a cut moves to the beginning of a turn. */
const turnPreference = 0.6

/** Returns the first index that has to stay when nothing else is kept: calls that wait for their responses. */
export const unansweredFrom = (items: ReadonlyArray<ViewItem>): number =>
  items[items.length - 1]?.entry.content.parts.some(isCall) === true ? items.length - 1 : items.length

/**
 * Returns the first index that has to stay: a message that the model has not answered yet, with the calls that it responds
 * to.
 */
export const pendingFrom = (items: ReadonlyArray<ViewItem>, clean: ReadonlyArray<boolean>): number => {
  const last = items[items.length - 1]
  if (last === undefined || (last.entry.content.role === "model" && !last.entry.content.parts.some(isCall)))
    return items.length
  let from = items.length - 1
  // Consecutive user messages are pending together.
  while (from > 0 && items[from - 1]?.entry.content.role === "user" && items[from]?.entry.content.role === "user")
    from -= 1
  while (from > 0 && !clean[from]) from -= 1
  return from
}

const beginsTurn = (item: ViewItem | undefined): boolean =>
  item !== undefined && item.entry.content.role === "user" && !hasResponses(item.entry.content)

/**
 * Returns the index at which the kept tail begins: the earliest clean cut with a tail within the budget, moved to the
 * beginning of a turn unless that gives away too much. A pending message stays whatever its size.
 */
export const splitIndex = (
  items: ReadonlyArray<ViewItem>,
  sizes: ReadonlyArray<number>,
  clean: ReadonlyArray<boolean>,
  pending: number,
  budget: number
): number => {
  let tail = 0
  let earliest = pending
  let atTurn: number | undefined
  for (let index = items.length - 1; index >= 0; index -= 1) {
    tail += sizes[index] ?? 0
    if (index >= pending) continue
    if (tail > budget) break
    if (!clean[index]) continue
    earliest = index
    if (beginsTurn(items[index]) && tail >= budget * turnPreference) atTurn = index
  }
  return atTurn ?? earliest
}
