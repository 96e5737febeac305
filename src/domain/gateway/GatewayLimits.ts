import { defaultPolicy, type Policy } from "../compression/strategies/Policy.ts"
import { modelLimits, reserveFor, tokenLimit } from "../tokens/ModelLimits.ts"
import { TokenCount } from "../tokens/Tokens.ts"

/** When the gateway compresses, and how much it then keeps. */
export interface GatewayWindows {
  /** The window of every model, in tokens. Absent: that of the table of models. */
  readonly window?: number | undefined
  /** Windows of single models. */
  readonly windows?: Readonly<Record<string, number>> | undefined
  /** Share of the window from which a conversation is compressed. */
  readonly threshold: number
}

/** The default share: clients compact themselves from about 0.8 on. */
export const defaultThreshold = 0.75

/** An answer may take at most this share of a window. */
const maxReserveShare = 0.5

/** The most tokens that a request may have: the window without what the answer needs. */
export const requestLimit = (
  { window, windows = {} }: GatewayWindows,
  model: string,
  maxAnswer: number | undefined
): number => {
  const size = (Object.hasOwn(windows, model) ? windows[model] : undefined) ?? window ?? tokenLimit(model)
  const reserve = reserveFor(modelLimits(model), size, maxAnswer)
  return Math.floor(size - Math.min(reserve, size * maxReserveShare))
}

/** The size of a snapshot: a share of the window within bounds, so that the next compression is far away. */
const snapshotSize = { share: 0.1, min: 400, max: 8_000 }

/** The policy of a compression on the way. Kept messages stay as the client wrote them, unless the request would not fit. */
export const gatewayPolicy = (limit: number, threshold: number, overhead: number): Policy => ({
  ...defaultPolicy,
  limit: TokenCount.make(limit),
  threshold,
  overhead: TokenCount.make(Math.ceil(overhead)),
  toolBudget: TokenCount.make(limit),
  snapshotBudget: TokenCount.make(
    Math.round(Math.min(snapshotSize.max, Math.max(snapshotSize.min, limit * snapshotSize.share)))
  )
})
