import type { AgentDefaults } from "../../AgentDefaults.ts"

/** The agent's defaults under strategy `pi`, as in Pi 0.73: eight tasks in a call, four at once. */
export const piAgentDefaults = {
  subagents: { tasks: 8, parallel: 4 }
} as const satisfies AgentDefaults
