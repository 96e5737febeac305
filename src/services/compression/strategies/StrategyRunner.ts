import type { Effect } from "effect"
import type { Decision, Plan } from "../../../domain/compression/Compression.ts"
import type { Strategy } from "../../../domain/compression/Strategy.ts"
import type { TempStore } from "../../session/TempStore.ts"
import type { TokenCounter } from "../../tokens/TokenCounter.ts"
import type { Summarizer } from "../summary/Summarizer.ts"
import type { CompressionResult, CompressRequest, PlanRefused } from "./CompressRequest.ts"

/** The services that a strategy may use. */
export type RunnerServices = Summarizer | TempStore | TokenCounter

/**
 * Plans compressions with a strategy and carries the plans out. A runner changes nothing: its result carries a patch. It
 * does not deal with hooks: the workflow fires them, obeys a veto, and puts a focus into the policy before it calls a
 * runner.
 */
export interface StrategyRunner {
  readonly strategy: Strategy
  /** Returns the plan for a request, or why there is none. */
  readonly decide: (request: CompressRequest) => Effect.Effect<Decision>
  /** Plans, carries out the plan, and returns the outcome. Failures are outcomes. */
  readonly compress: (request: CompressRequest) => Effect.Effect<CompressionResult, never, RunnerServices>
  /** Carries out a plan of `decide` for the same version of the conversation. */
  readonly apply: (
    request: CompressRequest,
    plan: Plan
  ) => Effect.Effect<CompressionResult, PlanRefused, RunnerServices>
}
