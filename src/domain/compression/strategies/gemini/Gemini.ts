import type { Strategy } from "../../Strategy.ts"

/**
 * The strategy `gemini`: compression as in Gemini CLI of March 2026. The deviations stand in the titles of its rules in
 * `test/domain/compression/strategies/gemini/Rules.test.ts`. A shortened output shows its last lines, as Gemini CLI did until
 * 2026-02-06; `toolOutput.form` selects the later form (`head-tail-chars`).
 */
export const gemini = {
  name: "gemini",
  description: "like Gemini CLI",
  defaults: { minGain: 0, outputForm: "last-lines" },
  countsByReport: true,
  waitsForGrowth: false,
  trigger: (window) => window * 0.5,
  overflowAttempts: 1,
  heedsHooks: false,
  hasSnapshotBudget: false
} as const satisfies Strategy
