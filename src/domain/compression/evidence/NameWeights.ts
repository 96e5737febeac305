import type { SlicedWork } from "../../text/SlicedWork.ts"
import { type AnchorKind, eachAnchor } from "../Anchors.ts"

/** How much the names, paths and numbers of a conversation were used, recent uses counting more. */

/** An exact fact and its weight. */
export interface Anchor {
  readonly kind: AnchorKind
  /**
   * Weight by uses: those of the agent and the user count fully and recent ones more; a fact that only tools showed counts a
   * little.
   */
  readonly weight: number
  /** Whether the agent or the user used it. False when only a tool showed it. */
  readonly used: boolean
  /** How often a call aimed at it: it stood in an argument of one line. */
  readonly aimed: number
}

/**
 * Fitted on recorded conversations: the number of parts after which a use counts half, and the weight of a mention by a
 * program, a tool or an earlier index.
 */
export const ranking = { agentHalfLife: 75, toolHalfLife: 25, program: 0.5, tool: 0.05, earlierIndex: 0.5 }

/** Characters of one tool output that are searched. */
export const maxScannedChars = 100_000

interface Weighing {
  kind: AnchorKind
  used: number
  usedAt: number
  aimed: number
  shown: number
  shownAt: number
}

/** The names so far. `now` counts parts; before the first one, no name counts. */
export interface NameWeights {
  readonly names: Map<string, Weighing>
  /** Whether the conversation is about a folder on Windows. */
  readonly isOnWindows: boolean
  now: number
}

/** A use of names. */
export interface Use {
  readonly amount: number
  /** Whether a call refers to something by this text. */
  readonly isAim?: boolean
}

/** Counts the names that somebody used. */
export const countUse = (
  { isOnWindows, names, now }: NameWeights,
  text: string,
  { amount, isAim = false }: Use
): void => {
  if (now === 0) return
  const count = (name: string, kind: AnchorKind) => {
    const known = names.get(name)
    const aimed = isAim ? 1 : 0
    if (known === undefined) names.set(name, { kind, used: amount, usedAt: now, aimed, shown: 0, shownAt: now })
    else {
      known.used = known.used * 0.5 ** ((now - known.usedAt) / ranking.agentHalfLife) + amount
      known.usedAt = now
      known.aimed += aimed
    }
  }
  eachAnchor(text, count, isOnWindows)
}

/** Counts the names that a tool showed. */
export const countShown = ({ isOnWindows, names, now }: NameWeights, text: string): void => {
  if (now === 0) return
  const count = (name: string, kind: AnchorKind) => {
    const known = names.get(name)
    if (known === undefined) names.set(name, { kind, used: 0, usedAt: now, aimed: 0, shown: 1, shownAt: now })
    else {
      known.shown = known.shown * 0.5 ** ((now - known.shownAt) / ranking.toolHalfLife) + 1
      known.shownAt = now
    }
  }
  eachAnchor(text.slice(0, maxScannedChars), count, isOnWindows)
}

/** Returns the names with their weights at the end. */
export function* weightsOf({ names, now }: NameWeights): SlicedWork<ReadonlyMap<string, Anchor>> {
  const anchors = new Map<string, Anchor>()
  for (const [name, { aimed, kind, shown, shownAt, used, usedAt }] of names) {
    const weight =
      used * 0.5 ** ((now - usedAt) / ranking.agentHalfLife) +
      ranking.tool * shown * 0.5 ** ((now - shownAt) / ranking.toolHalfLife)
    anchors.set(name, { kind, weight, used: used > 0, aimed })
    yield
  }
  return anchors
}
