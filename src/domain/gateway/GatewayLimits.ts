/** Decides when the gateway compresses a conversation, and how much it keeps. */

import { defaultPolicy, type Policy } from "../compression/strategies/Policy.ts"
import { defaultStrategy } from "../compression/strategies/Strategies.ts"
import { triggerTokens } from "../compression/strategies/Threshold.ts"
import { retryFrom } from "../conversation/FailureMemory.ts"
import { modelLimits, reserveFor, tokenLimit } from "../model/ModelLimits.ts"
import { TokenCount } from "../tokens/Tokens.ts"

/** The windows of models, and the share of them at which a conversation is compressed. */
export interface GatewayWindows {
  /** The window of every model, in tokens. Default: the one in the table of models. */
  readonly window?: number | undefined
  /** Windows of individual models. */
  readonly windows?: Readonly<Record<string, number>> | undefined
  /** The share of the window at which a conversation is compressed. */
  readonly threshold: number
}

/** The default share. Clients compact their history themselves at about 0.8. */
export const defaultThreshold = 0.75

/** The largest share of a window that is reserved for the answer. */
const maxReserveShare = 0.5

/** Returns the maximum number of tokens of a request: the window without the reserve for the answer. */
export const requestLimit = (
  { window, windows = {} }: GatewayWindows,
  model: string,
  maxAnswer: number | undefined
): number => {
  const size = (Object.hasOwn(windows, model) ? windows[model] : undefined) ?? window ?? tokenLimit(model)
  const reserve = reserveFor(modelLimits(model), size, maxAnswer)
  return Math.floor(size - Math.min(reserve, size * maxReserveShare))
}

/** Tokens of a request from which a conversation is compressed. */
export const triggerOf = ({ threshold }: GatewayWindows, limit: number): number =>
  triggerTokens(defaultStrategy, limit, threshold)

/** The largest share of the limit to which a conversation grows after a compression. Estimates are not exact. */
const maxFill = 0.95

/**
 * Tokens from which a conversation is compressed: the trigger. After a compression that left more than that, or found nothing to do, the conversation has to
 * grow first, as in a chat, but only as long as it fits: a system prompt that fills the window must not lead to a compression in every turn.
 */
export const dueFrom = (limit: number, trigger: number, tokensAfterLast = 0, retryAt = 0): number =>
  Math.max(trigger, Math.min(maxFill * limit, retryFrom(tokensAfterLast)), retryAt)

/** The size of a snapshot: a share of the window, within bounds, so that the next compression is not due soon. */
const snapshotSize = { share: 0.1, min: 400, max: 8_000 }

/**
 * The compression policy of the gateway. Kept messages stay as the client wrote them, unless the request would not
 * fit.
 */
export const gatewayPolicy = (limit: number, trigger: number, overhead: number): Policy => ({
  ...defaultPolicy,
  limit: TokenCount.make(limit),
  threshold: Math.min(1, trigger / Math.max(1, limit)),
  overhead: TokenCount.make(Math.ceil(overhead)),
  toolBudget: TokenCount.make(limit),
  snapshotBudget: TokenCount.make(
    Math.round(Math.min(snapshotSize.max, Math.max(snapshotSize.min, limit * snapshotSize.share)))
  )
})
