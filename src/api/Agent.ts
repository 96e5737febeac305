/** The agent loop: turns and tool calls until the model is done. */

/** @category Services @since 0.1.0 */
export { AgentDefinitions } from "../services/agent/AgentDefinitions.ts"
/** @category Services @since 0.1.0 */
export type { Skills } from "../services/tools/Skills.ts"
/** @category Functions @since 0.1.0 */
export { equip, run } from "../services/agent/Agent.ts"
/** @category Functions @since 0.1.0 */
export { parseDefinitions } from "../domain/agent/AgentDefinition.ts"
/** @category Functions @since 0.1.0 */
export { unusableFileText } from "../domain/agent/UnusableFile.ts"
/** @category References @since 0.1.0 */
export { AgentBounds } from "../services/agent/AgentRunner.ts"
/** @category Models @since 0.1.0 */
export type { Profile, RunOptions, Emit as EmitEvent, LastingCalls, TurnAhead } from "../services/agent/AgentRun.ts"
/** @category Models @since 0.1.0 */
export type { Limits, RunBounds, Stop as RunStop } from "../services/agent/RunBounds.ts"
/** @category Models @since 0.1.0 */
export type { KnownAgent, KnownAgents, AgentSource } from "../services/agent/AgentDefinitions.ts"
/** @category Models @since 0.1.0 */
export { type AgentResult, TerminateReason } from "../domain/agent/AgentResult.ts"
/** @category Models @since 0.1.0 */
export {
  AgentContextMode,
  type AgentLimits,
  type AgentRunner,
  type OfferedAgent,
  type Task,
  type ExternalRunner,
  type ParentShare,
  type Running as RunningAgent
} from "../services/agent/AgentRunner.ts"
/** @category Models @since 0.1.0 */
export type {
  AgentDefinition,
  LocalAgent,
  RemoteAgent,
  AgentAuth,
  AgentOutput
} from "../domain/agent/AgentDefinition.ts"
/** @category Models @since 0.1.0 */
export type { UnusableFile } from "../domain/agent/UnusableFile.ts"
/** @category Models @since 0.1.0 */
export type { Loop as DetectedLoop } from "../domain/agent/LoopDetection.ts"
/** @category Models @since 0.1.0 */
export type { OutgoingMessage } from "../services/agent/AgentConversation.ts"
/** @category Models @since 0.1.0 */
export type { AgentSlots, SharedSlots } from "../services/agent/AgentSlots.ts"
/** @category Models @since 0.1.0 */
export type { AgentTool, Runtime as LocalAgentParts } from "../services/agent/LocalAgentStart.ts"
/** @category Models @since 0.1.0 */
export type { LoopDetector } from "../services/agent/LoopDetector.ts"
/** @category Models @since 0.1.0 */
export type { Subagents } from "../services/agent/Subagents.ts"
/** @category Models @since 0.1.0 */
export type { CallAnswer, PendingCall } from "../services/agent/ToolAnswer.ts"
/** @category Models @since 0.1.0 */
export type { ActiveSkill, KnownSkills, Skill } from "../services/tools/Skills.ts"
/** @category Errors @since 0.1.0 */
export { AgentFailure } from "../services/agent/AgentRunner.ts"
