/** Carries a compression over to a later state of its conversation. */

import { type Conversation, entryId, type Patch, view } from "../conversation/Conversation.ts"

/** Whether the later view is the earlier one with more at its end. Walks over what was added only. */
const extendsView = (later: Conversation, earlier: Conversation): boolean => {
  let node = later.view
  while (node !== undefined && node.length > (earlier.view?.length ?? 0)) node = node.before
  return node === earlier.view
}

/**
 * Returns a compression that was made for `from` as one of `to`, the same conversation later: inserted entries get the ids
 * that are next now, and everything that was added stays behind them.
 *
 * Undefined when more happened than messages at the end and results that were masked: the conversation was compressed, undone
 * or taken back to an earlier message. A part that was masked meanwhile keeps that form.
 */
export const rebased = (patch: Patch, from: Conversation, to: Conversation): Patch | undefined => {
  if (to.undoable !== from.undoable || to.redoable !== from.redoable) return undefined
  const insert = patch.insert.map((entry, index) => ({ ...entry, id: entryId(to.next + index) }))
  if (extendsView(to, from)) return { ...patch, insert }
  const before = view(from)
  const now = view(to)
  if (before.some(({ entry }, index) => now[index]?.entry !== entry)) return undefined
  const indexOf = new Map<string, number>(before.map(({ entry }, index) => [entry.id, index]))
  return {
    ...patch,
    insert,
    shorten: patch.shorten.filter(({ entry, part }) => {
      const index = indexOf.get(entry) ?? -1
      return before[index]?.shortened.get(part) === now[index]?.shortened.get(part)
    })
  }
}
