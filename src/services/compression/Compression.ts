import { Context, Effect, Layer, type Scope } from "effect"
import type * as Domain from "../../domain/compression/Compression.ts"
import type { InvalidOption } from "../../domain/compression/InvalidOption.ts"
import type { Conversation } from "../../domain/conversation/Conversation.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import type { CompressionResult, CompressRequest, PlanRefused } from "./strategies/CompressRequest.ts"
import type { RunnerServices, StrategyRunner, StrategySession } from "./strategies/StrategyRunner.ts"

/**
 * The compression workflow: hooks, plan, summary, audit, outcome.
 *
 * *When to use*: to plan or run a compression without a `Chat`.
 *
 * *Details*: the workflow changes nothing itself. The outcome carries a patch, which only `Chat` applies to the
 * conversation. Every step can be interrupted.
 */
export class Compression extends Context.Service<
  Compression,
  {
    /** Returns the runner of the strategy with this name. The other methods die of a name that none has. */
    readonly runner: (name: string) => Effect.Effect<StrategyRunner, InvalidOption>
    /** Opens a conversation with a strategy (`StrategyRunner.open`). The scope closes with the conversation. */
    readonly open: (name: string, conversation: Conversation) => Effect.Effect<StrategySession, never, Scope.Scope>
    /** Returns the plan for a request without carrying it out. */
    readonly plan: (request: CompressRequest) => Effect.Effect<Domain.Decision>
    /**
     * Plans, carries out the plan, and returns the outcome. Never fails: a failure becomes an outcome, or is part of a
     * successful one that used a fallback (`degraded`). With `policy.ladder`, stronger plans follow until the result fits
     * the window.
     */
    readonly compress: (request: CompressRequest) => Effect.Effect<CompressionResult>
    /** Carries out an existing plan. Fails when the conversation or the settings changed since the plan was made. */
    readonly apply: (request: CompressRequest, plan: Domain.Plan) => Effect.Effect<CompressionResult, PlanRefused>
  }
>()("palimpsest/services/compression/Compression") {
  /**
   * Provides the workflow. It keeps no state between compressions. The strategies are loaded with it, so that a bundle of functions that
   * need them is small; so it is not built by `Effect.runSync`.
   */
  static readonly layer: Layer.Layer<Compression, never, HookSystem | RunnerServices> = Layer.effect(
    Compression,
    Effect.flatMap(
      Effect.promise(() => import("./CompressionWorkflow.ts")),
      ({ make }) => make
    )
  )
}
