/** Makes the session events of compressions, successful and failed. */

import {
  callsOf,
  type CompressionStatus,
  type Outcome,
  paidCalls,
  patchOf,
  statusOf,
  summarizedRangeOf,
  tokensOf
} from "../compression/Compression.ts"
import type { Handle } from "../content/Handle.ts"
import { TokenCount } from "../tokens/Tokens.ts"
import type { SessionEvent } from "./Session.ts"

/** What a session records of a compression, besides its outcome. */
export interface CompressionRecord {
  readonly at: number
  readonly strategy: string
  readonly forced: boolean
  /** The handle of everything that was dropped. */
  readonly dropped?: Handle | undefined
  /** The summarizing models that gave nothing usable. */
  readonly unusable: ReadonlyArray<string>
  /** The log has its model calls already. */
  readonly isPaid?: boolean | undefined
  readonly request?: string | undefined
}

/** Whether a compression with this status failed, so that the failure is remembered. */
export const isFailure = (status: string): boolean =>
  status.startsWith("COMPRESSION_FAILED") || status === "FAILED_SUMMARIZER"

const commonOf = (
  outcome: Outcome,
  { at, isPaid = false, strategy, unusable }: CompressionRecord,
  status = statusOf(outcome)
) => ({
  at,
  status,
  strategy,
  ...(unusable.length === 0 ? {} : { unusable }),
  ...paidCalls(isPaid ? [] : callsOf(outcome))
})

/** Returns the event of a compression that failed. `status`: why, where its outcome does not say it. */
export const failedEvent = (
  outcome: Outcome,
  record: CompressionRecord,
  status?: CompressionStatus
): Extract<SessionEvent, { _tag: "CompressionFailed" }> => {
  const tried = summarizedRangeOf(outcome)
  return {
    _tag: "CompressionFailed",
    ...commonOf(outcome, record, status),
    forced: record.forced,
    tokens: TokenCount.make(tokensOf(outcome).before),
    ...(tried === undefined ? {} : { tried })
  }
}

/** Returns the event of a compression: its patch, or its failure. Undefined when it left nothing to remember. */
export const compressionEvent = (outcome: Outcome, record: CompressionRecord): SessionEvent | undefined => {
  const patch = patchOf(outcome)
  if (patch === undefined) return isFailure(statusOf(outcome)) ? failedEvent(outcome, record) : undefined
  const { after, before } = tokensOf(outcome)
  const { dropped, forced, request } = record
  return {
    _tag: "Compressed",
    ...commonOf(outcome, record),
    // In the log, `manual` means forced: by the user, or because nothing else would fit.
    trigger: forced ? "manual" : "auto",
    before: TokenCount.make(before),
    after: TokenCount.make(after),
    patch,
    ...(dropped === undefined ? {} : { dropped }),
    ...(request === undefined ? {} : { request })
  }
}
