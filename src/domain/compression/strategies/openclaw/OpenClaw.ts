/** The strategy `openclaw`: its constants and how it plans, as OpenClaw 2026.9; those marked "Ours" differ from it. */

import type { AgentDefaults } from "../../AgentDefaults.ts"
import type { Strategy } from "../../Strategy.ts"
import type { SummaryStrategy } from "../../SummaryPlan.ts"

/** The agent's defaults under strategy `openclaw`, as in OpenClaw 2026.9. */
export const openclawAgentDefaults = {
  subagents: { depth: 5, children: 5, running: 8, prompt: "minimal", forkTokens: 100_000 },
  memoryFlush: true,
  repeatRules: { headings: ["Session Startup", "Red Lines"], chars: 2_000 },
  memory: { fileChars: 20_000, totalChars: 60_000 }
} as const satisfies AgentDefaults

const reserveTokens = 20_000

/** Returns the tokens that stay free in a window: 20,000, at most a quarter. */
const reserveIn = (window: number): number => Math.min(reserveTokens, Math.floor(window / 4))

const keepRecentTokens = 20_000

/** Factor on every estimate, because estimates are low. */
export const safetyMargin = 1.2

/** The share of the window that what is summarised may take; the oldest of it beyond that gets a summary of its own. */
export const historyShare = 0.5

/** Turns of the user that are shown word for word after the summary, and characters of each message. */
export const recentTurns = { count: 3, messageChars: 600 }

/** Tool failures that are listed, and characters of each. */
export const toolFailures = { count: 8, chars: 240 }

/** Characters of one list of files. */
export const fileListChars = 900

/** Characters of the whole summary, of which the model's text keeps at least half. */
export const maxSummaryChars = 16_000

/** Characters of the request that is still open when the messages with it leave. */
export const openRequestChars = 800

/** Tool results as the summarizing model sees them, in characters. */
export const serialization = { maxResultChars: 2_000, maxErrorTailChars: 600, thoughts: false, media: true }

/** How often a summary that fails its audit is asked for again. */
export const auditRetries = 1

/** Milliseconds that one request for a summary may take. */
export const requestMillis = 180_000

/**
 * The strategy `openclaw`: compaction as in OpenClaw 2026.9, in its safeguard mode. Before each request it prunes old tool
 * results; a compaction has summaries written in stages, audits them, and adds what code knows. `docs/strategies.md` lists
 * where it differs, and why.
 */
export const openclaw = {
  name: "openclaw",
  description: "like OpenClaw",
  defaults: { minGain: 0, outputForm: "last-lines" },
  agentDefaults: openclawAgentDefaults,
  countsByReport: false,
  waitsForGrowth: true,
  trigger: (window) => Math.max(1, window - reserveIn(window)),
  overflowAttempts: 3,
  heedsHooks: true,
  hasSnapshotBudget: true
} as const satisfies Strategy

/** How this strategy plans. Ours: at most half of what triggers a compaction is kept. */
export const openclawPlan: SummaryStrategy = {
  name: openclaw.name,
  keepRecent: (window) => Math.min(keepRecentTokens, Math.floor((window - reserveIn(window)) / 2)),
  maxSummaryTokens: Math.floor(maxSummaryChars / 2)
}
