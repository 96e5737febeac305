/** Fires the hook `PreCompress` before a compression, and makes the event for its end. */

import { Effect } from "effect"
import { Cancelled, callsOf, type Outcome, statusOf, tokensOf } from "../../domain/compression/Compression.ts"
import type { Conversation } from "../../domain/conversation/Conversation.ts"
import { emptyOutcome, type HookEvent, HookOutcome, type Trigger } from "../../domain/hooks/Hook.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
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

/** Returns the event for the end of a compression. */
export const postCompress = (
  trigger: Trigger,
  outcome: Outcome = Cancelled.make({}),
  promptId?: string
): Extract<HookEvent, { readonly _tag: "PostCompress" }> => {
  const { after, before } = tokensOf(outcome)
  const paid = callsOf(outcome).map(({ model, promptId: id = promptId ?? "compress", purpose, usage }) => ({
    promptId: id,
    purpose,
    model,
    usage
  }))
  return {
    _tag: "PostCompress",
    trigger,
    status: statusOf(outcome),
    before: TokenCount.make(before),
    after: TokenCount.make(after),
    ...(promptId === undefined ? {} : { promptId, calls: paid })
  }
}

/**
 * Fires PreCompress. No other code does. The hooks' decision travels on as data (`CompressRequest.hookDecision`).
 *
 * A turn fires it before it knows whether it needs a compression, as Gemini CLI does. A compression for which it was not
 * fired yet fires it before it plans. It is never fired for an empty conversation.
 */
export const firePreCompress = (hooks: Pick<Hooked, "fire" | "has">, request: PreCompressRequest) =>
  request.conversation.view === undefined || !hooks.has("PreCompress")
    ? Effect.succeed(emptyOutcome)
    : CompressionSteps.use(({ step }) =>
        step({ name: "hook", result: HookOutcome }, hooks.fire({ _tag: "PreCompress", trigger: triggerOf(request) }))
      )
