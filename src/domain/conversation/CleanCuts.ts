import { isCall, isResponse } from "../content/Content.ts"
import { CallPairs } from "./CallPairs.ts"
import { itemParts, type ViewItem } from "./Conversation.ts"

/** Returns for each index up to the length whether a cut before it keeps every call with its response. */
export const cleanCuts = (items: ReadonlyArray<ViewItem>): ReadonlyArray<boolean> => {
  const pairs = new CallPairs()
  const clean: Array<boolean> = Array.from({ length: items.length + 1 }, () => true)
  const earliest = items.map((item) => pairs.add({ role: item.entry.content.role, parts: itemParts(item) }))
  let openFrom = items.length
  for (let index = items.length - 1; index >= 0; index -= 1) {
    openFrom = Math.min(openFrom, earliest[index] ?? index)
    clean[index] = isCleanCut(items[index], index, openFrom)
  }
  return clean
}

/**
 * Whether a cut before the item at `index` keeps every call with its response. `openFrom`: the first message whose calls are
 * answered at `index` or later. Consecutive responses belong together, and with the calls before them.
 */
export const isCleanCut = (item: ViewItem | undefined, index: number, openFrom: number): boolean => {
  const content = item?.entry.content
  return openFrom >= index && !(content?.role === "user" && content.parts.some(isResponse))
}

/** Messages of a view, and where it may be cut. */
interface CuttableView {
  readonly length: number
  readonly at: (index: number) => ViewItem | undefined
  readonly isClean: (index: number) => boolean
}

const isAsking = (item: ViewItem | undefined): boolean =>
  item?.entry.content.role === "user" && item.entry.author !== "summary"

/**
 * Returns the first index from `start` on that has to stay: a message that the model has not answered yet, with the calls that
 * it responds to, or a call that waits for its result.
 */
export const pendingFrom = (view: CuttableView, start = 0): number => {
  const last = view.at(view.length - 1)
  if (last === undefined || (!isAsking(last) && !last.entry.content.parts.some(isCall))) return view.length
  let from = view.length - 1
  // Consecutive user messages are pending together.
  while (from > start && isAsking(view.at(from - 1)) && isAsking(view.at(from))) from -= 1
  while (from > start && !view.isClean(from)) from -= 1
  return from
}
