import type { Strategy } from "../../Strategy.ts"

/**
 * The strategy `gemini`: compression as in Gemini CLI of March 2026, including its faults. There are two deviations: the
 * outcome ContentTruncated is reported only when the history got smaller, and a placeholder never splits a character.
 */
export const gemini = {
  name: "gemini",
  description: "like Gemini CLI",
  defaults: { minGain: 0, outputForm: "head-tail-chars" },
  countsByReport: true,
  waitsForGrowth: false,
  heedsHooks: false,
  hasSnapshotBudget: false
} as const satisfies Strategy
