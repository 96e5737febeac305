/** Makes a strategy runner of two functions of a program: one cuts, one writes the text in place of the rest. */

import { Effect } from "effect"
import type { PolicyOptions } from "../../../domain/compression/PolicyOptions.ts"
import type { Strategy } from "../../../domain/compression/Strategy.ts"
import { cleanCuts } from "../../../domain/conversation/CleanCuts.ts"
import type { Entry, ViewItem } from "../../../domain/conversation/Conversation.ts"
import type { Summarizer } from "../summary/Summarizer.ts"
import { unverified } from "../summary/WrittenSnapshot.ts"
import type { CompressRequest } from "./CompressRequest.ts"
import type { StrategyRunner } from "./StrategyRunner.ts"
import { summaryRunner } from "./SummaryRunner.ts"

type Described = Pick<Strategy, "description" | "name">

/** A strategy of your own: which messages stay, and the text that replaces the others. */
export interface OwnStrategy extends Described, Partial<Omit<Strategy, keyof Described>> {
  /**
   * Returns the index of the first message that stays; 0 or less when all stay. If a call would be separated from its
   * response, fewer messages leave. `items`: the messages in the window, without the environment message.
   */
  readonly cut: (items: ReadonlyArray<ViewItem>, policy: PolicyOptions) => number
  /**
   * Writes the text that replaces the messages that leave. They are passed without secrets, as they were before any
   * shortening.
   */
  readonly write: (gone: ReadonlyArray<Entry>, request: CompressRequest) => Effect.Effect<string, unknown, Summarizer>
  readonly open?: StrategyRunner["open"]
}

const defaults: Omit<Strategy, keyof Described> = {
  defaults: { minGain: 0, outputForm: "last-lines" },
  countsByReport: false,
  waitsForGrowth: true,
  trigger: (window) => window / 2,
  overflowAttempts: 1,
  heedsHooks: true,
  hasSnapshotBudget: false
}

/** Returns the last index up to this one at which no call is separated from its response and a message stays. */
const safeCut = (items: ReadonlyArray<ViewItem>, at: number): number => {
  const clean = cleanCuts(items)
  let index = Math.min(at, items.length - 1)
  while (index > 0 && clean[index] !== true) index -= 1
  return Math.max(0, index)
}

/** Maximum length of the text that replaces messages, in tokens. A longer text is cut. */
const maxSummaryTokens = 16_384

/**
 * Makes the runner of a strategy of your own. Thresholds, plans, hooks, secrets, handles and the gain check are
 * handled for you.
 *
 * *When to use*: for a strategy that replaces the oldest messages by one text. For any other, write a
 * `StrategyRunner`.
 */
export const ownRunner = ({ cut, open, write, ...own }: OwnStrategy): StrategyRunner => {
  const strategy: Strategy = { ...defaults, ...own }
  const planning = {
    name: own.name,
    keepRecent: () => 0,
    maxSummaryTokens,
    cut: (items: ReadonlyArray<ViewItem>, policy: PolicyOptions) => safeCut(items, cut(items, policy))
  }
  const runner = summaryRunner(strategy, planning, (request, { entries }) =>
    Effect.map(Effect.orDie(write(entries, request)), (text) => ({
      ...unverified(text, []),
      by: "extractive" as const
    }))
  )
  // Snapshots come from the strategy itself, whatever summarizer the policy names.
  const written = (request: CompressRequest): CompressRequest => ({
    ...request,
    policy: { ...request.policy, summarizer: "model" }
  })
  return {
    strategy,
    decide: (request) => runner.decide(written(request)),
    compress: (request) => runner.compress(written(request)),
    apply: (request, plan) => runner.apply(written(request), plan),
    ...(open === undefined ? {} : { open })
  }
}
