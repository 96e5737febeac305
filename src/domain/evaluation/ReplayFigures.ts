/** The figures by which replays of strategies are compared. */

import { Schema } from "effect"
import { entries, type Conversation, view } from "../conversation/Conversation.ts"
import type { Session } from "../session/Session.ts"
import { rootsOf, shownEntry } from "./CompactionPoints.ts"
import { type Compaction, Ratio } from "./Measure.ts"
import type { RequestSize } from "./Replay.ts"

/** The beginning that requests share with the ones before them, where no compression lies between the two. */
export const StablePrefix = Schema.Struct({
  ...Ratio.fields,
  /** The smallest share of a request that the next one begins with; 1 when there is none to compare. */
  least: Schema.Finite
})
type StablePrefix = typeof StablePrefix.Type

/**
 * Returns how much of each request the next one begins with, unchanged. `breaks` are the requests, counted from 0, before
 * which the conversation was compressed.
 */
export const stablePrefix = (requests: ReadonlyArray<RequestSize>, breaks: Iterable<number>): StablePrefix => {
  const broken = new Set(breaks)
  let part = 0
  let whole = 0
  let least = 1
  for (const [index, { prefix }] of requests.entries()) {
    const before = requests[index - 1]
    if (before === undefined || before.tokens === 0 || broken.has(index)) continue
    part += prefix
    whole += before.tokens
    least = Math.min(least, prefix / before.tokens)
  }
  return { part, whole, least }
}

/** Share of a request that a compression has to save to count as progress. */
const minProgress = 0.1

/**
 * Returns the number of compressions without progress right after another one: at most one exchange later, saving less than a
 * tenth of the request.
 */
export const repeatedInVain = (
  compressions: ReadonlyArray<{ readonly turn: number; readonly before: number; readonly after: number }>
): number =>
  compressions.filter(({ after, before, turn }, index) => {
    const last = compressions[index - 1]
    return last !== undefined && turn - last.turn <= 1 && after > before * (1 - minProgress)
  }).length

/** A compression of a replay: the session before and after it. */
export interface ReplayMoment {
  readonly before: Session
  readonly after: Session
}

/** A compression of a replay as the measures of `eval` take it. */
export interface ReplayedCompaction {
  readonly compaction: Compaction
  readonly after: Session
}

/** Returns each compression with what followed it until the next one. `end` is the final conversation. */
export const replayedCompactions = (
  moments: ReadonlyArray<ReplayMoment>,
  end: Conversation
): ReadonlyArray<ReplayedCompaction> => {
  const all = entries(end)
  const counts = moments.map(({ before }) => entries(before.conversation).length)
  const [first] = moments
  const roots = first === undefined ? [] : rootsOf(first.before, all)
  return moments.map(({ after, before }, index) => ({
    compaction: {
      log: all.slice(0, counts[index]),
      before: view(before.conversation).map(shownEntry),
      after: all.slice(counts[index], counts[index + 1]),
      roots
    },
    after
  }))
}
