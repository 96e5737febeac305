import type { AgentDefaults } from "./AgentDefaults.ts"
import type { PolicyOptions } from "./PolicyOptions.ts"

/**
 * A compression strategy: decides which messages are kept, shortened and summarised.
 *
 * The fields say how a strategy differs from the others, so that no code outside its folder compares names. Its runner
 * (`StrategyRunner`) plans and carries out plans.
 */
export interface Strategy {
  /** The name in settings, flags, logs and plans. It never changes, because stored sessions contain it. */
  readonly name: string
  /** Completes the sentence "Conversations are compressed …" in the description of the setting. */
  readonly description: string
  /** Defaults of a policy that differ from one strategy to another. */
  readonly defaults: Pick<PolicyOptions, "minGain" | "outputForm">
  /** Defaults of settings outside of compression that differ from one strategy to another. Absent: none differs. */
  readonly agentDefaults?: AgentDefaults
  /**
   * Whether the strategy uses the prompt tokens that the API reported for the last request, in the model's own tokens, with
   * the whole window as its limit. Others use the expected cost of the next request.
   */
  readonly countsByReport: boolean
  /** Whether the next automatic attempt after a failed compression waits for the conversation to grow. */
  readonly waitsForGrowth: boolean
  /**
   * Returns the tokens of a request from which it is compressed in a window of this many tokens, unless the user set a
   * threshold. Between 0 and the window.
   */
  readonly trigger: (window: number) => number
  /** How often a request that the model refuses as too long is made smaller and sent again. */
  readonly overflowAttempts: number
  /** Whether a PreCompress hook may veto a compression or give it a focus. */
  readonly heedsHooks: boolean
  /** Whether the snapshot keeps within a budget (`snapshotBudget`), so that it can be measured at several sizes. */
  readonly hasSnapshotBudget: boolean
}
