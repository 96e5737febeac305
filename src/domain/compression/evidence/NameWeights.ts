/** How much the names, paths and numbers of a conversation were used, recent uses counting more. */

import type { SlicedWork } from "../../text/SlicedWork.ts"
import { type AnchorKind, eachAnchor } from "../Anchors.ts"

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

/** An amount that loses half of itself each so many parts. */
interface Decaying {
  amount: number
  at: number
}

interface Weighing {
  readonly kind: AnchorKind
  readonly used: Decaying
  readonly shown: Decaying
  aimed: number
}

const amountAt = ({ amount, at }: Decaying, now: number, halfLife: number): number =>
  // Within a part nothing decays, and the first use of a name has nothing to add to.
  at === now || amount === 0 ? amount : amount * 0.5 ** ((now - at) / halfLife)

const add = (one: Decaying, amount: number, now: number, halfLife: number): void => {
  one.amount = amountAt(one, now, halfLife) + amount
  one.at = now
}

/** The names so far. `now` counts parts; before the first one, no name counts. */
export interface NameWeights {
  readonly names: Map<string, Weighing>
  /** Whether the conversation is about a folder on Windows. */
  readonly isOnWindows: boolean
  now: number
}

/** Calls `visit` with the weighing of each name in a text. Before the first part, no name counts. */
const eachName = ({ isOnWindows, names, now }: NameWeights, text: string, visit: (name: Weighing) => void): void => {
  if (now === 0) return
  const weigh = (name: string, kind: AnchorKind) => {
    const known = names.get(name)
    const weighing = known ?? { kind, used: { amount: 0, at: now }, shown: { amount: 0, at: now }, aimed: 0 }
    if (known === undefined) names.set(name, weighing)
    visit(weighing)
  }
  eachAnchor(text, weigh, isOnWindows)
}

/** Counts the names that somebody used. `isAim`: a call refers to something by this text. */
export const countUse = (weights: NameWeights, text: string, amount = 1, isAim = false): void =>
  eachName(weights, text, (name) => {
    add(name.used, amount, weights.now, ranking.agentHalfLife)
    if (isAim) name.aimed += 1
  })

/** Counts the names that a tool showed. */
export const countShown = (weights: NameWeights, text: string): void =>
  eachName(weights, text.slice(0, maxScannedChars), ({ shown }) => add(shown, 1, weights.now, ranking.toolHalfLife))

/** Returns the names with their weights at the end. */
export function* weightsOf({ names, now }: NameWeights): SlicedWork<ReadonlyMap<string, Anchor>> {
  const anchors = new Map<string, Anchor>()
  for (const [name, { aimed, kind, shown, used }] of names) {
    const weight =
      amountAt(used, now, ranking.agentHalfLife) + ranking.tool * amountAt(shown, now, ranking.toolHalfLife)
    anchors.set(name, { kind, weight, used: used.amount > 0, aimed })
    yield
  }
  return anchors
}
