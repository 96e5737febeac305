/** Inspects conversations of any length so that it can be interrupted. */

import { Effect } from "effect"
import type { Conversation } from "../../domain/conversation/Conversation.ts"
import { appliedCompactions, compactionsOf } from "../../domain/evaluation/Compactions.ts"
import { type InspectionContext, MessageInspection } from "../../domain/evaluation/Inspection.ts"
import * as Work from "../../domain/text/SlicedWork.ts"

/** Inspects where the tokens of a conversation go. */
export const inspect = Effect.fn("Inspect.inspect")(function* (
  conversation: Conversation,
  about: InspectionContext = {}
) {
  const messages = new MessageInspection(conversation, about)
  yield* Work.run(Work.eachItem(messages.all.entries(), ([item, entry]) => messages.read(entry, item)))
  const applied = appliedCompactions(conversation, messages.log)
  const compactions = yield* Work.run(compactionsOf(conversation, messages.log, applied, about.events ?? []))
  return messages.inspection(applied, compactions)
})
