/** The agent loop: turns and tool calls until the model is done. */
export { type Limits, type Profile, type RunOptions, equip, run } from "../services/agent/Agent.ts"
export {
  AgentDefinitions,
  type AgentProblem,
  agentProblemText,
  type KnownAgent,
  type KnownAgents
} from "../services/agent/AgentDefinitions.ts"
export {
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
