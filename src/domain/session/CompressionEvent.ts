import { callsOf, type Outcome, patchOf, statusOf, summarizedRangeOf, tokensOf } from "../compression/Compression.ts"
import type { Handle } from "../content/Handle.ts"
import { TokenCount } from "../tokens/Tokens.ts"
import type { SessionEvent } from "./Session.ts"

/** What a session records of a compression, besides its outcome. */
export interface CompressionRecord {
  readonly at: number
  readonly strategy: string
  readonly forced: boolean
  /** The handle of everything that was dropped. */
  readonly dropped: Handle | undefined
  /** The summarizing models that gave nothing usable. */
  readonly unusable: ReadonlyArray<string>
  /** The log has its model calls already. */
  readonly isPaid?: boolean | undefined
  readonly request?: string | undefined
}

/** Whether a compression with this status failed, so that the failure is remembered. */
export const isFailure = (status: string): boolean =>
  status.startsWith("COMPRESSION_FAILED") || status === "FAILED_SUMMARIZER"

/** Returns the event of a compression: its patch, or its failure. Undefined when it left nothing to remember. */
export const compressionEvent = (
  outcome: Outcome,
  { at, dropped, forced, isPaid = false, request, strategy, unusable }: CompressionRecord
): SessionEvent | undefined => {
  const patch = patchOf(outcome)
  const status = statusOf(outcome)
  const { after, before } = tokensOf(outcome)
  const paid = isPaid ? [] : callsOf(outcome).map(({ model, usage }) => ({ model, usage }))
  const common = {
    at,
    status,
    strategy,
    ...(unusable.length === 0 ? {} : { unusable }),
    ...(paid.length === 0 ? {} : { calls: paid })
  }
  if (patch !== undefined) {
    return {
      _tag: "Compressed",
      ...common,
      // In the log, `manual` means forced: by the user, or because nothing else would fit.
      trigger: forced ? "manual" : "auto",
      before: TokenCount.make(before),
      after: TokenCount.make(after),
      patch,
      ...(dropped === undefined ? {} : { dropped }),
      ...(request === undefined ? {} : { request })
    }
  }
  if (!isFailure(status)) return undefined
  const tried = summarizedRangeOf(outcome)
  return {
    _tag: "CompressionFailed",
    ...common,
    forced,
    tokens: TokenCount.make(before),
    ...(tried === undefined ? {} : { tried })
  }
}
