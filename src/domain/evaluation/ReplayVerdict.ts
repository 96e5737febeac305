import { dollars, number, plural, share } from "../text/NumberText.ts"
import type { NamesUsedAgain } from "./Retention.ts"

/** Describes a replay in at most three sentences: its cost, the facts that stayed in the context, and what to do. */

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
  readonly facts: NamesUsedAgain
}

const named = ({ strategy }: PlayedStrategy): string => `\`${strategy}\``

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
    return `${plural(turns, "turn")} ${place} took ${plural(least.compressions, "compression")} with ${named(least)}: ${plural(least.sent, "token")} sent${paid}.`
  }
  if (sizeOf(dearest) === sizeOf(least))
    return `All strategies ${isPriced ? "cost" : "send"} the same ${place}: ${figure(least)}.`
  return `${named(least)} ${isPriced ? "costs" : "sends"} least ${place}: ${figure(least)}, ${share(sizeOf(dearest) - sizeOf(least), sizeOf(dearest))} less than ${named(dearest)} (${figure(dearest)}).`
}

const factsSentence = (played: ReadonlyArray<PlayedStrategy>): ReadonlyArray<string> => {
  const tested = played.filter(({ facts }) => facts.used > 0)
  const kept = ({ facts }: PlayedStrategy) => facts.inContext / facts.used
  const [best, ...others] = [...tested].sort((a, b) => kept(b) - kept(a))
  if (best === undefined) return []
  const { behindHandle, inContext, lost, used } = best.facts
  // Each strategy is tested by the facts that it dropped, so their numbers differ.
  const stays = ({ facts }: PlayedStrategy) => `${share(facts.inContext, facts.used)} of ${number(facts.used)}`
  const rest = others.map((one) => `${stays(one)} with ${named(one)}`).join(", ")
  const gone = tested.reduce((sum, { facts }) => sum + facts.lost, 0)
  const isComplete = tested.every(({ facts }) => facts.inContext === facts.used)
  const missing = isComplete
    ? ""
    : gone === 0
      ? "; the others are one recall away"
      : others.length === 0
        ? `; ${number(behindHandle)} are one recall away, ${number(lost)} are lost`
        : `; lost are ${tested.map((one) => `${number(one.facts.lost)} with ${named(one)}`).join(", ")}`
  return [
    others.length === 0
      ? `Of ${plural(used, "name")} that the agent used again, ${share(inContext, used)} are still in the context with ${named(best)}${missing}.`
      : `Of the names that the agent used again, ${stays(best)} are still in the context with ${named(best)}, ${rest}${missing}.`
  ]
}

const advice = (played: ReadonlyArray<PlayedStrategy>): ReadonlyArray<string> => {
  const refusing = played.filter(({ refused }) => refused > 0)
  if (refusing.length > 0) {
    const counts = refusing.map((one) => `${number(one.refused)} with ${named(one)}`).join(", ")
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
