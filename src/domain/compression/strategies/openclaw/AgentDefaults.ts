import type { AgentDefaults } from "../../AgentDefaults.ts"

/** The agent's defaults under strategy `openclaw`, as in OpenClaw 2026.9. */
export const openclawAgentDefaults = {
  subagents: { depth: 5, children: 5, running: 8, prompt: "minimal", forkTokens: 100_000 },
  memoryFlush: true,
  repeatRules: { headings: ["Session Startup", "Red Lines"], chars: 2_000 },
  memory: { fileChars: 20_000, totalChars: 60_000 }
} as const satisfies AgentDefaults
