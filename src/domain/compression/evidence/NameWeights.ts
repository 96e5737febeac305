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
  /** The file in which it was seen last. */
  readonly file: string | undefined
}

/**
 * Fitted on recorded conversations: the number of parts after which a use counts half, and the weight of a mention by the
 * user, a program or a tool.
 */
export const ranking = { agentHalfLife: 75, toolHalfLife: 25, user: 2, program: 0.5, tool: 0.05, earlierIndex: 0.5 }

/** Characters of one tool output that are searched. */
export const maxScannedChars = 100_000

interface Weighing {
  kind: AnchorKind
  used: number
  usedAt: number
  aimed: number
  shown: number
  shownAt: number
  file: string | undefined
}

/** The names so far. `now` counts parts. */
export interface NameWeights {
  readonly names: Map<string, Weighing>
  /** Whether the conversation is about a folder on Windows. */
  readonly isOnWindows: boolean
  now: number
}

/** A use of names. */
export interface Use {
  readonly amount: number
  /** The file that the text was written to. */
  readonly file?: string | undefined
  /** Whether a call refers to something by this text. */
  readonly isAim?: boolean
}

/** Counts the names that somebody used. */
export const countUse = (
  { isOnWindows, names, now }: NameWeights,
  text: string,
  { amount, file, isAim = false }: Use
): void =>
  eachAnchor(
    text,
    (name, kind) => {
      const known = names.get(name)
      const aimed = isAim ? 1 : 0
      if (known === undefined) names.set(name, { kind, used: amount, usedAt: now, aimed, shown: 0, shownAt: now, file })
      else {
        known.used = known.used * 0.5 ** ((now - known.usedAt) / ranking.agentHalfLife) + amount
        known.usedAt = now
        known.aimed += aimed
        known.file = file ?? known.file
      }
    },
    isOnWindows
  )

/** Counts the names that a tool showed. `file`: the file that was read. */
export const countShown = ({ isOnWindows, names, now }: NameWeights, text: string, file?: string): void =>
  eachAnchor(
    text.slice(0, maxScannedChars),
    (name, kind) => {
      const known = names.get(name)
      if (known === undefined) names.set(name, { kind, used: 0, usedAt: now, aimed: 0, shown: 1, shownAt: now, file })
      else {
        known.shown = known.shown * 0.5 ** ((now - known.shownAt) / ranking.toolHalfLife) + 1
        known.shownAt = now
        known.file = file ?? known.file
      }
    },
    isOnWindows
  )

/** Returns the names with their weights at the end. */
export function* weightsOf({ names, now }: NameWeights): SlicedWork<ReadonlyMap<string, Anchor>> {
  const anchors = new Map<string, Anchor>()
  for (const [name, { aimed, file, kind, shown, shownAt, used, usedAt }] of names) {
    const weight =
      used * 0.5 ** ((now - usedAt) / ranking.agentHalfLife) +
      ranking.tool * shown * 0.5 ** ((now - shownAt) / ranking.toolHalfLife)
    anchors.set(name, { kind, weight, used: used > 0, aimed, file })
    yield
  }
  return anchors
}
