/** One compression: the policy, the workflow, the plan and the outcome. */

/** @category Services @since 0.1.0 */
export { Compression } from "../services/compression/Compression.ts"
/** @category Services @since 0.1.0 */
export { Summarizer } from "../services/compression/summary/Summarizer.ts"
/** @category Functions @since 0.1.0 */
export { adopt, patchOf, statusOf, tokensOf } from "../domain/compression/Compression.ts"
/** @category Functions @since 0.1.0 */
export { strategyDefaults } from "../domain/compression/strategies/Strategies.ts"
/** @category Functions @since 0.1.0 */
export { applyWith, compressWith } from "../services/compression/CompressionWorkflow.ts"
/** @category Functions @since 0.1.0 */
export { requestFor } from "../services/conversation/KnownConversation.ts"
/** @category Functions @since 0.1.0 */
export { ownRunner } from "../services/compression/strategies/OwnRunner.ts"
/** @category Functions @since 0.1.0 */
export { thresholdOf } from "../domain/compression/strategies/Threshold.ts"
/** @category Layers @since 0.1.0 */
export { layer as layerModelSummarizer } from "../services/compression/summary/ModelSummarizer.ts"
/** @category Constants @since 0.1.0 */
export { defaultPolicy } from "../domain/compression/strategies/Policy.ts"
/** @category Constants @since 0.1.0 */
export { runners } from "../services/compression/strategies/StrategyRunners.ts"
/** @category References @since 0.1.0 */
export { OwnStrategies } from "../services/compression/strategies/StrategyRunners.ts"
/** @category Models @since 0.1.0 */
export {
  AuditResult,
  CompressionStatus,
  Decision,
  Degraded,
  NoopReason,
  Outcome,
  Plan,
  PlanStep,
  type SummaryCall
} from "../domain/compression/Compression.ts"
/** @category Models @since 0.1.0 */
export { ModelNames, PolicyOptions } from "../domain/compression/PolicyOptions.ts"
/** @category Models @since 0.1.0 */
export { HandleIndex } from "../services/session/EntryBuilder.ts"
/** @category Models @since 0.1.0 */
export type { Snapshot, ItemText, SectionName, SnapshotItem, UserWords } from "../domain/compression/Snapshot.ts"
/** @category Models @since 0.1.0 */
export type { Strategy } from "../domain/compression/Strategy.ts"
/** @category Models @since 0.1.0 */
export { Policy } from "../domain/compression/strategies/Policy.ts"
/** @category Models @since 0.1.0 */
export { OwnStrategyName, StrategyName } from "../domain/compression/strategies/Strategies.ts"
/** @category Models @since 0.1.0 */
export type { CompressionResult, CompressRequest } from "../services/compression/strategies/CompressRequest.ts"
/** @category Models @since 0.1.0 */
export type {
  Assembled,
  AssembleRequest,
  ShownPart,
  StrategyRunner,
  StrategySession,
  RunnerServices
} from "../services/compression/strategies/StrategyRunner.ts"
/** @category Models @since 0.1.0 */
export type { Summary, SummaryRequest, AskRequest, CountRequest } from "../services/compression/summary/Summarizer.ts"
/** @category Models @since 0.1.0 */
export type { OwnStrategy } from "../services/compression/strategies/OwnRunner.ts"
/** @category Models @since 0.1.0 */
export type { AgentDefaults } from "../domain/compression/AgentDefaults.ts"
/** @category Models @since 0.1.0 */
export type { Span, UserWordsWitness } from "../domain/compression/evidence/UserRequests.ts"
/** @category Models @since 0.1.0 */
export type { Kind as SecretKind } from "../domain/text/Finding.ts"
/** @category Models @since 0.1.0 */
export type { Secret } from "../domain/text/Redaction.ts"
/** @category Errors @since 0.1.0 */
export { InvalidOption } from "../domain/compression/InvalidOption.ts"
/** @category Errors @since 0.1.0 */
export { PlanRefused } from "../services/compression/strategies/CompressRequest.ts"
/** @category Errors @since 0.1.0 */
export { SummarizerError } from "../services/compression/summary/Summarizer.ts"
