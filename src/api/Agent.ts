/** The agent loop: turns and tool calls until the model is done. */
export { equip, run } from "../services/agent/Agent.ts"
export type { Profile, RunOptions } from "../services/agent/AgentRun.ts"
export type { Limits } from "../services/agent/RunBounds.ts"
export { AgentDefinitions, type KnownAgent, type KnownAgents } from "../services/agent/AgentDefinitions.ts"
export {
  AgentBounds,
  AgentContextMode,
  AgentFailure,
  type AgentLimits,
  type AgentResult,
  type AgentRunner,
  type Task,
  TerminateReason
} from "../services/agent/AgentRunner.ts"
export {
  type AgentDefinition,
  type LocalAgent,
  type RemoteAgent,
  parseDefinitions
} from "../domain/agent/AgentDefinition.ts"
export { type UnusableFile, unusableFileText } from "../domain/agent/UnusableFile.ts"
