/** When a conversation is compressed: the same for chats, prompts of `effect/ai`, `Compress.*` and the gateway. */

import type { Strategy } from "../Strategy.ts"

/**
 * Returns the share of the window above which a conversation is compressed: the local setting, else the experiment's. A 0
 * counts as unset. At 1, only `WindowGuard` keeps requests within the window. Undefined: the strategy decides
 * (`Strategy.trigger`).
 */
export const thresholdOf = (local: number | undefined, experiment: number | undefined): number | undefined => {
  const set = [local, experiment].find((share) => share !== undefined && share > 0)
  return set === undefined ? undefined : Math.min(1, set)
}

/** Returns the tokens from which a request is compressed in this window: by the threshold that was set, else the strategy's. */
export const triggerTokens = (
  strategy: Pick<Strategy, "trigger">,
  window: number,
  threshold: number | undefined
): number => (threshold === undefined ? strategy.trigger(window) : threshold * window)

/** Returns `triggerTokens` as a share of the window, as a policy has it. */
export const triggerShare = (
  strategy: Pick<Strategy, "trigger">,
  window: number,
  threshold: number | undefined
): number => Math.min(1, triggerTokens(strategy, window, threshold) / Math.max(1, window))
