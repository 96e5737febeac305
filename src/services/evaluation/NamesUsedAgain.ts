import { Effect } from "effect"
import { type Conversation, entries, view } from "../../domain/conversation/Conversation.ts"
import { shownText } from "../../domain/evaluation/CompactionPoints.ts"
import {
  anchorsIn,
  type NamesUsedAgain,
  placeOf,
  reachableTexts,
  reusedAnchors
} from "../../domain/evaluation/Retention.ts"
import type { Session } from "../../domain/session/Session.ts"
import { eachItem } from "./Steps.ts"

/**
 * Finds the names that the agent used again after each compression, before the next one and before another message showed
 * them again, and reports where the compression had left them. `moments` are the session right after each compression, in
 * order; `end` is the final conversation. A name is behind a handle when a handle in the context leads to it, possibly
 * through other handles.
 */
export const namesUsedAgain = Effect.fnUntraced(function* (
  moments: ReadonlyArray<Session>,
  end: Conversation
): Effect.fn.Return<NamesUsedAgain> {
  const kept = { used: 0, inContext: 0, behindHandle: 0, lost: 0 }
  const occurred = new Set<string>()
  const lengths = [...moments.map(({ conversation }) => entries(conversation).length), undefined]
  const log = entries(end)
  // What follows one compression comes before the next.
  let earlier = yield* eachItem(log.slice(0, lengths[0] ?? 0), anchorsIn)
  for (const [index, session] of moments.entries()) {
    for (const { anchor } of earlier.flat()) occurred.add(anchor)
    const after = log.slice(lengths[index], lengths[index + 1])
    earlier = yield* eachItem(after, anchorsIn)
    // Summaries that a compression inserted show and use nothing.
    const used = reusedAnchors(
      occurred,
      earlier.filter((_, at) => after[at]?.author !== "summary")
    )
    if (used.size === 0) continue
    const context = shownText(view(session.conversation))
    const reachable = yield* eachItem(reachableTexts(session, context), (text) => text)
    const places = yield* eachItem(used, ([anchor, kind]) => placeOf(anchor, kind, { context, reachable }))
    kept.used += used.size
    for (const place of places) kept[place] += 1
  }
  return kept
})
