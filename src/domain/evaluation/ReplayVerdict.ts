/** Describes a replay in at most three sentences: its cost, the facts that stayed in the context, and what to do. */

import { dollars, number, plural, share } from "../text/NumberText.ts"
import { type Figures, noRatio, type Ratio, valueOf } from "./Measure.ts"

/** The figures of one strategy. */
export interface PlayedStrategy {
  readonly strategy: string
  /** Tokens of all requests. */
  readonly sent: number
  /** US dollars; null without a price. */
  readonly cost: number | null
  /** Messages that no request could hold. */
  readonly refused: number
  /** Compressions that changed something. */
  readonly compressions: number
  /** Those of grounded actions and facts. */
  readonly figures: Figures
}

const strategyName = ({ strategy }: Pick<PlayedStrategy, "strategy">): string => `\`${strategy}\``

const costSentence = (played: ReadonlyArray<PlayedStrategy>, window: number, turns: number): string => {
  const isPriced = played.every(({ cost }) => cost !== null)
  const sizeOf = (one: PlayedStrategy) => (isPriced ? (one.cost ?? 0) : one.sent)
  const figure = (one: PlayedStrategy) => (isPriced ? dollars(one.cost ?? 0) : plural(one.sent, "token"))
  const [least, ...others] = [...played].sort((a, b) => sizeOf(a) - sizeOf(b))
  const dearest = others.at(-1)
  const place = `in a window of ${number(window)} tokens`
  if (least === undefined) return ""
  if (dearest === undefined) {
    const paid = isPriced ? `, ${figure(least)}` : ""
    return `${plural(turns, "turn")} ${place} took ${plural(least.compressions, "compression")} with ${strategyName(least)}: ${plural(least.sent, "token")} sent${paid}.`
  }
  if (sizeOf(dearest) === sizeOf(least))
    return `All strategies ${isPriced ? "cost" : "send"} the same ${place}: ${figure(least)}.`
  return `${strategyName(least)} ${isPriced ? "costs" : "sends"} least ${place}: ${figure(least)}, ${share(sizeOf(dearest) - sizeOf(least), sizeOf(dearest))} less than ${strategyName(dearest)} (${figure(dearest)}).`
}

const percent = ({ part, whole }: Ratio): string => share(part, whole)

const factsSentence = (played: ReadonlyArray<PlayedStrategy>): ReadonlyArray<string> => {
  const tested = played
    .map(({ figures: { factsKept = noRatio, factsReachable = noRatio }, strategy }) => ({
      kept: factsKept,
      reachable: factsReachable,
      strategy
    }))
    .filter(({ kept }) => kept.whole > 0)
    .sort((a, b) => (valueOf(b.kept) ?? 0) - (valueOf(a.kept) ?? 0))
  const [best, ...others] = tested
  if (best === undefined) return []
  const isComplete = tested.every(({ kept }) => kept.part === kept.whole)
  const isReachable = tested.every(({ reachable }) => reachable.part === reachable.whole)
  const recalled = isComplete
    ? ""
    : isReachable
      ? "; the others are one recall away"
      : `; with one recall, ${tested.map(({ reachable, strategy }) => `${percent(reachable)} with \`${strategy}\``).join(", ")}`
  // Each strategy is tested by the facts that it dropped, so their numbers differ.
  const stays = ({ kept }: typeof best) => `${percent(kept)} of ${number(kept.whole)}`
  const rest = others.map((one) => `${stays(one)} with ${strategyName(one)}`).join(", ")
  return [
    others.length === 0
      ? `Of ${plural(best.kept.whole, "name")} that the agent used again, ${percent(best.kept)} are still in the context with ${strategyName(best)}${recalled}.`
      : `Of the names that the agent used again, ${stays(best)} are still in the context with ${strategyName(best)}, ${rest}${recalled}.`
  ]
}

const advice = (played: ReadonlyArray<PlayedStrategy>): ReadonlyArray<string> => {
  const refusing = played.filter(({ refused }) => refused > 0)
  if (refusing.length > 0) {
    const counts = refusing.map((one) => `${number(one.refused)} with ${strategyName(one)}`).join(", ")
    return [`Messages that no request could hold: ${counts}; take a larger window.`]
  }
  return played.every(({ compressions }) => compressions === 0)
    ? ["Nothing was compressed; a smaller window shows what a strategy does."]
    : []
}

/** Returns the sentences. There is one at least when something was played. */
export const replayVerdict = (
  played: ReadonlyArray<PlayedStrategy>,
  { turns, window }: { readonly window: number; readonly turns: number }
): ReadonlyArray<string> =>
  played.length === 0 ? [] : [costSentence(played, window, turns), ...factsSentence(played), ...advice(played)]
