import { defaultPolicy } from "./Policy.ts"

/**
 * Returns the share of the window above which a conversation is compressed: the local setting, else the experiment's, else
 * 0.5. A 0 counts as unset; 1 leaves the window to the guard alone.
 */
export const thresholdOf = (local: number | undefined, experiment: number | undefined): number => {
  const set = [local, experiment].find((share) => share !== undefined && share > 0)
  return set === undefined ? defaultPolicy.threshold : Math.min(1, set)
}
