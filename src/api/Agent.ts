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
export type {
  AgentAuth,
  AgentOutput,
  DefinitionProblem,
  FieldProblem,
  FrontMatterProblem
} from "../domain/agent/AgentDefinition.ts"
export type { Loop as DetectedLoop } from "../domain/agent/LoopDetection.ts"
export type { SkillProblem } from "../domain/agent/Skill.ts"
export type { OutgoingMessage } from "../services/agent/AgentConversation.ts"
export type { AgentSource } from "../services/agent/AgentDefinitions.ts"
export type { Emit as EmitEvent, LastingCalls, TurnAhead } from "../services/agent/AgentRun.ts"
export type { ExternalRunner, ParentShare, Running as RunningAgent } from "../services/agent/AgentRunner.ts"
export type { AgentSlots, SharedSlots } from "../services/agent/AgentSlots.ts"
export type { AgentTool, Runtime as LocalAgentParts } from "../services/agent/LocalAgentStart.ts"
export type { LoopDetector } from "../services/agent/LoopDetector.ts"
export type { RunBounds, Stop as RunStop } from "../services/agent/RunBounds.ts"
export type { Subagents } from "../services/agent/Subagents.ts"
export type { CallAnswer, PendingCall } from "../services/agent/ToolAnswer.ts"
export type { ActiveSkill, KnownSkills, Skill, Skills } from "../services/tools/Skills.ts"
