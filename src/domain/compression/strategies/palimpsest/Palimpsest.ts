import type { Strategy } from "../../Strategy.ts"

/**
 * The default strategy, `palimpsest`. It works in three phases: shorten old tool outputs, split after a completed pair of
 * call and response, and replace everything before the split by a snapshot. The environment message is neither counted nor
 * summarised. Sizes before and after are counted the same way. The target is below the threshold, so that the next request
 * does not compress again. Stronger rungs follow when the result does not fit.
 */
export const palimpsest = {
  name: "palimpsest",
  description: "by shortening old tool outputs and writing a snapshot of the rest",
  defaults: { minGain: 0.1, outputForm: "last-lines" },
  countsByReport: false,
  waitsForGrowth: true,
  trigger: (window) => window * 0.5,
  overflowAttempts: 1,
  heedsHooks: true,
  hasSnapshotBudget: true
} as const satisfies Strategy
