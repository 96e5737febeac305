import { Effect } from "effect"
import type { Conversation } from "../../domain/conversation/Conversation.ts"
import { emptyOutcome, HookOutcome, type Trigger } from "../../domain/hooks/Hook.ts"
import type { Hooked } from "../hooks/Hooked.ts"
import { CompressionSteps } from "./summary/CompressionSteps.ts"

/** The input of the PreCompress event. */
export interface PreCompressRequest {
  readonly conversation: Conversation
  readonly forced: boolean
  readonly mustFit?: boolean | undefined
}

/**
 * Returns the trigger: `manual` when a user asked for the compression. A compression that is only needed to make a request
 * fit is automatic.
 */
export const triggerOf = ({ forced, mustFit = false }: Pick<PreCompressRequest, "forced" | "mustFit">): Trigger =>
  forced && !mustFit ? "manual" : "auto"

/**
 * Fires PreCompress. No other code does. The hooks' decision travels on as data (`CompressRequest.hookDecision`).
 *
 * A turn fires it before it knows whether it needs a compression, as Gemini CLI does. A compression for which it was not
 * fired yet fires it before it plans. It is never fired for an empty conversation.
 */
export const firePreCompress = (
  hooks: Pick<Hooked, "fire" | "has">,
  request: PreCompressRequest
): Effect.Effect<HookOutcome> =>
  request.conversation.view === undefined || !hooks.has("PreCompress")
    ? Effect.succeed(emptyOutcome)
    : CompressionSteps.use(({ step }) =>
        step({ name: "hook", result: HookOutcome }, hooks.fire({ _tag: "PreCompress", trigger: triggerOf(request) }))
      )
