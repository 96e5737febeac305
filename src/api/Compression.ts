/** One compression: the policy, the workflow, the plan and the outcome. */
export {
  AuditResult,
  CompressionStatus,
  Decision,
  Degraded,
  NoopReason,
  Outcome,
  Plan,
  PlanStep,
  adopt,
  patchOf,
  statusOf,
  tokensOf
} from "../domain/compression/Compression.ts"
export { InvalidOption } from "../domain/compression/InvalidOption.ts"
export { ModelNames, PolicyOptions } from "../domain/compression/PolicyOptions.ts"
export { HandleIndex } from "../services/session/EntryBuilder.ts"
export type { Snapshot } from "../domain/compression/Snapshot.ts"
export type { Strategy } from "../domain/compression/Strategy.ts"
export { Policy, defaultPolicy } from "../domain/compression/strategies/Policy.ts"
export { OwnStrategyName, StrategyName, strategyDefaults } from "../domain/compression/strategies/Strategies.ts"
export { Compression } from "../services/compression/Compression.ts"
export { applyWith, compressWith } from "../services/compression/CompressionWorkflow.ts"
export { requestFor } from "../services/conversation/KnownConversation.ts"
export {
  PlanRefused,
  type CompressionResult,
  type CompressRequest
} from "../services/compression/strategies/CompressRequest.ts"
export type {
  Assembled,
  AssembleRequest,
  ShownPart,
  StrategyRunner,
  StrategySession
} from "../services/compression/strategies/StrategyRunner.ts"
export {
  Summarizer,
  SummarizerError,
  type Summary,
  type SummaryRequest
} from "../services/compression/summary/Summarizer.ts"
export { layer as layerModelSummarizer } from "../services/compression/summary/ModelSummarizer.ts"
export { type OwnStrategy, ownRunner } from "../services/compression/strategies/OwnRunner.ts"
export { OwnStrategies, runners } from "../services/compression/strategies/StrategyRunners.ts"
export { thresholdOf } from "../domain/compression/strategies/Threshold.ts"
export type { AgentDefaults } from "../domain/compression/AgentDefaults.ts"
export type { SummaryCall } from "../domain/compression/Compression.ts"
export type { ItemText, SectionName, SnapshotItem, UserWords } from "../domain/compression/Snapshot.ts"
export type { Span, UserWordsWitness } from "../domain/compression/evidence/UserRequests.ts"
export type { Kind as SecretKind } from "../domain/text/Finding.ts"
export type { Secret } from "../domain/text/Redaction.ts"
export type { RunnerServices } from "../services/compression/strategies/StrategyRunner.ts"
export type { AskRequest, CountRequest } from "../services/compression/summary/Summarizer.ts"
