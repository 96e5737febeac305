/** The strategy `pi`: its constants, its defaults and how it plans. */

import type { AgentDefaults } from "../../AgentDefaults.ts"
import type { Strategy } from "../../Strategy.ts"
import type { SummaryStrategy } from "../../SummaryPlan.ts"

/** The agent's defaults under strategy `pi`, as in Pi 0.73. */
export const piAgentDefaults = {
  prompt: { size: "brief" },
  subagents: { tasks: 8, parallel: 4, runner: "process" },
  // Characters for its 50 KB.
  toolOutput: { most: 51_200 },
  memory: {
    fileNames: ["AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"],
    firstFound: true,
    downward: false,
    onTouch: false
  }
} as const satisfies AgentDefaults

/** Tokens that stay free for the answer (Pi 0.73). Ours: at most a quarter of the window, so that small windows work. */
const reserveTokens = 16_384

/** Returns the tokens that this strategy keeps free in a window. */
const reserveIn = (window: number): number => Math.min(reserveTokens, Math.floor(window / 4))

/** Tokens of the newest messages that stay (Pi 0.73). */
const keepRecentTokens = 20_000

/** Returns the tokens of the newest messages that stay. Ours: at most half of what triggers a compression. */
export const keepRecentIn = (window: number): number =>
  Math.min(keepRecentTokens, Math.floor((window - reserveIn(window)) / 2))

/** Upper bounds of the summaries, in tokens (Pi 0.73: shares of its reserve). */
export const summaryTokens = {
  /** Of everything that leaves: 0.8 of the reserve. */
  history: Math.floor(reserveTokens * 0.8),
  /** Of the beginning of a turn that is split: half of the reserve. */
  prefix: Math.floor(reserveTokens * 0.5)
}

/** Characters of a tool result that the summarizing model sees (Pi 0.73). */
export const maxResultChars = 2_000

/**
 * The strategy `pi`: compaction as in Pi 0.73. It keeps the newest 20,000 tokens, cuts before any message that is no tool
 * result, and summarises a split turn's beginning on its own. `docs/strategies.md` lists where it differs, and why.
 */
export const pi = {
  name: "pi",
  description: "like Pi",
  defaults: { minGain: 0, outputForm: "last-lines" },
  agentDefaults: piAgentDefaults,
  countsByReport: false,
  waitsForGrowth: true,
  // Pi compacts above the window without the reserve, strictly.
  trigger: (window) => Math.min(window, window - reserveIn(window) + 1),
  overflowAttempts: 1,
  heedsHooks: true,
  hasSnapshotBudget: true
} as const satisfies Strategy

/** How this strategy plans. */
export const piPlan: SummaryStrategy = {
  name: pi.name,
  keepRecent: keepRecentIn,
  maxSummaryTokens: summaryTokens.history
}
