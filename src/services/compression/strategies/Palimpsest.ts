/** The ladder of the default strategy: the plan of the policy, then stronger ones while the result does not fit. */

import { Effect } from "effect"
import * as Domain from "../../../domain/compression/Compression.ts"
import type { PolicyOptions } from "../../../domain/compression/PolicyOptions.ts"
import { palimpsest as strategy } from "../../../domain/compression/strategies/palimpsest/Palimpsest.ts"
import { plan } from "../../../domain/compression/strategies/palimpsest/Plan.ts"
import { rungCount } from "../../../domain/compression/strategies/palimpsest/Shortening.ts"
import { unshrinkable } from "../../../domain/compression/Unshrinkable.ts"
import { compressed, view, viewTokens } from "../../../domain/conversation/Conversation.ts"
import { number } from "../../../domain/text/NumberText.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { planStep } from "../summary/CompressionSteps.ts"
import { carryOut } from "./CarryOutPlan.ts"
import { noop } from "./CompressionResults.ts"
import { type CompressionResult, type CompressRequest } from "./CompressRequest.ts"
import { masking } from "./MaskOutputs.ts"
import type { StrategyRunner } from "./StrategyRunner.ts"

const fitsLimit = (outcome: Domain.Outcome, policy: PolicyOptions): boolean =>
  (outcome._tag === "Compressed" || outcome._tag === "ContentTruncated") && outcome.after <= policy.limit

/** Returns why a rung was not enough. The outcome of the successful rung reports it. */
const reasonOf = (outcome: Domain.Outcome, request: CompressRequest): Domain.Degraded =>
  Domain.Outcome.matchOrElse(
    outcome,
    {
      // An earlier failure takes precedence over a plan that was too weak.
      Compressed: ({ after, degraded }) =>
        degraded ?? {
          reason: "over the limit",
          message: `the first try left ${number(after)} tokens, over the limit of ${number(request.policy.limit)}`
        },
      FailedInflatedTokenCount: ({ after, before, reason }) => ({
        reason,
        message: `the first try came from ${number(before)} to ${number(after)} tokens`
      }),
      FailedSummarizer: ({ message, reason }) => ({ reason, message })
    },
    () => ({ reason: Domain.statusOf(outcome), message: "the first try did not help" })
  )

/** Returns the outcome of a stronger rung, with the failure that led to it and every paid call. */
const asLadder = (
  made: CompressionResult,
  degraded: Domain.Degraded | null,
  calls: ReadonlyArray<Domain.SummaryCall>
): CompressionResult => ({
  ...made,
  outcome: Domain.Outcome.matchOrElse(
    made.outcome,
    {
      Compressed: (outcome): Domain.Outcome => Domain.Compressed.make({ ...outcome, by: "ladder", degraded, calls }),
      ContentTruncated: (outcome) => Domain.ContentTruncated.make({ ...outcome, degraded, calls }),
      FailedInflatedTokenCount: (outcome) => Domain.FailedInflatedTokenCount.make({ ...outcome, calls })
    },
    (outcome) => outcome
  )
})

/** Returns the best result, with the parts that keep it above the limit. */
const tooLarge = (best: CompressionResult, request: CompressRequest): CompressionResult => {
  const { outcome } = best
  if (outcome._tag !== "Compressed" && outcome._tag !== "ContentTruncated") return best
  const kept = new Set(view(compressed(request.conversation, outcome.patch)).map((item) => item.entry.id))
  const parts = unshrinkable(request.conversation, kept).map(({ entry, tokens, what }) => `${entry} ${what} ${tokens}`)
  const degraded = {
    reason: "over the limit",
    message: `${outcome.after} tokens are left, over the limit of ${request.policy.limit}${parts.length === 0 ? "" : `; what cannot be made to fit: ${parts.join(", ")}`}`
  }
  return {
    ...best,
    outcome:
      outcome._tag === "Compressed"
        ? Domain.Compressed.make({ ...outcome, degraded })
        : Domain.ContentTruncated.make({ ...outcome, degraded })
  }
}

/** Returns the result that changes something and leaves fewer tokens; of two that change nothing, the first. */
const better = (one: CompressionResult | undefined, other: CompressionResult): CompressionResult => {
  if (one === undefined) return other
  if (Domain.patchOf(other.outcome) === undefined) return one
  if (Domain.patchOf(one.outcome) === undefined) return other
  return Domain.tokensOf(other.outcome).after < Domain.tokensOf(one.outcome).after ? other : one
}

const decide = (request: CompressRequest, rung: number) =>
  Work.run(plan(request.conversation, request.policy, { ...request, rung }))

/** Tries rungs until a result fits the limit. Of results that do not fit, the smallest is used. */
const climb = Effect.fnUntraced(function* (request: CompressRequest) {
  let best: CompressionResult | undefined
  let degraded: Domain.Degraded | null = null
  let unusable: CompressionResult["unusable"]
  const calls: Array<Domain.SummaryCall> = []
  const last = request.policy.ladder ? rungCount : 1
  for (let rung = 0; rung < last; rung += 1) {
    const decision = yield* planStep(decide(request, rung), rung)
    if (decision._tag === "Skip") {
      // A stronger plan can only help when this one found nothing to compress.
      if (decision.reason !== "nothing to compress") return noop(decision.reason, decision.before)
      best ??= noop(decision.reason, decision.before)
      continue
    }
    const result = yield* carryOut(request, decision.plan)
    calls.push(...Domain.callsOf(result.outcome))
    const shown = rung === 0 ? result : asLadder(result, degraded, calls)
    // Only the first rung asks a model.
    unusable ??= result.unusable
    const reported = unusable === undefined ? shown : { ...shown, unusable }
    if (fitsLimit(reported.outcome, request.policy)) return reported
    degraded ??= reasonOf(reported.outcome, request)
    best = better(best, reported)
  }
  return best === undefined ? noop("nothing to compress", viewTokens(request.conversation)) : tooLarge(best, request)
})

/** The runner of the strategy `palimpsest`. */
export const palimpsest: StrategyRunner = {
  strategy,
  decide: (request) => decide(request, 0),
  compress: climb,
  apply: carryOut,
  open: masking
}
