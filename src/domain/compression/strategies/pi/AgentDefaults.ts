import type { AgentDefaults } from "../../AgentDefaults.ts"

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
