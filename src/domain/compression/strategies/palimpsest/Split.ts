import { isCall } from "../../../content/Content.ts"
import type { ViewItem } from "../../../conversation/Conversation.ts"
import type { IndexedView } from "../../../conversation/IndexedView.ts"
import type { SlicedWork } from "../../../text/SlicedWork.ts"
import { WorkEnd, WorkEnds } from "./WorkEnds.ts"

/** Finds the index that splits a conversation: messages before it are summarised, the others are kept. */

/** Share of the tail's budget that has to be used before a cut moves to the end of a piece of work. */
const minUsedBudget = 0.6

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
 * Returns the index from `start` on at which the kept tail begins: a clean cut with a tail within the budget, where a piece of
 * work ends most clearly, and of equal ones the earliest. A pending message stays whatever its size.
 */
export function* splitIndex(
  view: IndexedView,
  start: number,
  size: (index: number) => number,
  pending: number,
  budget: number
): SlicedWork<number> {
  const ends = new WorkEnds(view)
  let tail = 0
  let split = pending
  let strongest: WorkEnd = WorkEnd.none
  for (let index = view.length - 1; index >= start; index -= 1) {
    tail += size(index)
    if (index >= pending) continue
    if (tail > budget) break
    const hasUsedBudget = tail >= budget * minUsedBudget
    if (hasUsedBudget) yield 300
    const end = hasUsedBudget ? ends.before(index) : WorkEnd.none
    if (!view.isClean(index) || end < strongest) continue
    split = index
    strongest = end
  }
  return split
}
