import { Effect } from "effect"
import type { Conversation } from "../../domain/conversation/Conversation.ts"
import {
  appliedCompactions,
  type Compaction,
  compactionsOf,
  type DroppedFacts,
  type SizedCompaction
} from "../../domain/evaluation/Compactions.ts"
import { type InspectionContext, MessageInspection } from "../../domain/evaluation/Inspection.ts"
import * as Work from "../../domain/text/SlicedWork.ts"

/** Inspects conversations of any length so that it can be interrupted. */

/** Returns the facts that a compression lost, the most used first. */
export const lostFacts = Effect.fnUntraced(function* (dropped: DroppedFacts): Effect.fn.Return<ReadonlyArray<string>> {
  const isKept = yield* Work.run(Work.eachItem(dropped.facts, (fact) => dropped.isKept(fact)))
  return dropped.facts.filter((_, index) => isKept[index] === false)
})

const withFacts = Effect.fnUntraced(function* ({ compaction, facts }: SizedCompaction) {
  if (facts === null) return { ...compaction, facts }
  const dropped = facts.facts.length
  return { ...compaction, facts: { dropped, kept: dropped - (yield* lostFacts(facts)).length } }
})

/** Inspects where the tokens of a conversation go. */
export const inspect = Effect.fn("Inspect.inspect")(function* (
  conversation: Conversation,
  about: InspectionContext = {}
) {
  const messages = new MessageInspection(conversation, about)
  yield* Work.run(Work.eachItem(messages.all.entries(), ([item, entry]) => messages.read(entry, item)))
  const applied = appliedCompactions(conversation, messages.log)
  const compactions: Array<Compaction> = []
  for (const sized of compactionsOf(conversation, messages.log, applied, about.events ?? [])) {
    compactions.push(yield* withFacts(sized))
    yield* Effect.yieldNow
  }
  return messages.inspection(applied, compactions.reverse())
})
