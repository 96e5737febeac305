/** Finds the index that splits a conversation: messages before it are summarised, the others are kept. */

import type { IndexedView } from "../../../conversation/IndexedView.ts"
import type { SlicedWork } from "../../../text/SlicedWork.ts"
import { WorkEnd, workEnds } from "./WorkEnds.ts"

/** Share of the tail's budget that has to be used before a cut moves to the end of a piece of work. */
const minUsedBudget = 0.6

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
  const endBefore = workEnds(view)
  let tail = 0
  let split = pending
  let strongest: WorkEnd = WorkEnd.none
  for (let index = view.length - 1; index >= start; index -= 1) {
    tail += size(index)
    if (index >= pending) continue
    if (tail > budget) break
    yield
    const end = endBefore(index)
    if (!view.isClean(index)) continue
    const strength = tail < budget * minUsedBudget ? WorkEnd.none : end
    if (strength < strongest) continue
    split = index
    strongest = strength
  }
  return split
}
