/** The contract of a strategy that runs: what it gets, what it returns, and its session with a conversation. */

import type { Effect, Scope } from "effect"
import type { Decision, Plan } from "../../../domain/compression/Compression.ts"
import type { PolicyOptions } from "../../../domain/compression/PolicyOptions.ts"
import type { Strategy } from "../../../domain/compression/Strategy.ts"
import type { Part } from "../../../domain/content/Content.ts"
import type { Conversation, EntryId, ViewItem } from "../../../domain/conversation/Conversation.ts"
import type { MaskLimits } from "../../../domain/conversation/Masking.ts"
import type { TempStore } from "../../session/TempStore.ts"
import type { TokenCountError, TokenCounter } from "../../tokens/TokenCounter.ts"
import type { Summarizer } from "../summary/Summarizer.ts"
import type { CompressionResult, CompressRequest, PlanRefused } from "./CompressRequest.ts"

/** The services that a strategy may use. */
export type RunnerServices = Summarizer | TempStore | TokenCounter

/** What is known about the next request before it is built. */
export interface AssembleRequest {
  readonly conversation: Conversation
  /** The model's window, in its tokens. */
  readonly window: number
  /** The model's tokens for one estimated token. */
  readonly scale: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** What the settings say about compression. */
  readonly policy: Partial<PolicyOptions> | undefined
  /** When old tool results are masked, as the settings say. */
  readonly masking: Partial<MaskLimits> | false | undefined
  /** Tools whose results are never masked, in addition to the built-in list. */
  readonly unmaskedTools: ReadonlyArray<string>
}

/** What the next request leaves out or shows shorter. It stays so in later requests, and everything can be recalled. */
export interface Assembled {
  /** Tool results and media that are shown in another form. */
  readonly shorten: ReadonlyArray<ShownPart>
  /** The last of the oldest messages that leave the window. A note with their handle replaces them. */
  readonly dropThrough?: EntryId | undefined
}

/** A part that is shown in another form. Only tool results and media can be. */
export interface ShownPart {
  readonly entry: EntryId
  readonly part: number
  readonly replacement: Part
}

/** The session of a strategy with one conversation, including its state between requests. */
export interface StrategySession {
  /**
   * Called with a message and its attachments before their first request. Returns which of their media are shown in
   * another form.
   */
  readonly ingest?: (items: ReadonlyArray<ViewItem>) => Effect.Effect<ReadonlyArray<ShownPart>>
  /**
   * Called before each request. Undefined: nothing changes. A result stays in effect, so that the beginning of later
   * requests is the same.
   */
  readonly assemble?: (request: AssembleRequest) => Effect.Effect<Assembled | undefined, TokenCountError>
  /** Called after each turn with the current conversation, which it cannot change. */
  readonly afterTurn?: (conversation: Conversation) => Effect.Effect<void>
}

/**
 * Plans compressions with a strategy and carries out the plans.
 *
 * *Details*: a runner changes nothing; its result carries a patch. It does not handle hooks: the workflow fires them,
 * obeys a veto, and adds a focus to the policy before it calls a runner.
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
  /** Called when a conversation is opened, and again when it is opened later. The scope closes with the conversation. */
  readonly open?: (conversation: Conversation) => Effect.Effect<StrategySession, never, RunnerServices | Scope.Scope>
}
