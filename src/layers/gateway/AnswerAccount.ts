/** Accounts for each answer that the gateway passes on: the tenant's budget, the metrics, the calibration. */

import { Effect, Metric } from "effect"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { priceOf, requestCost } from "../../domain/tokens/Prices.ts"
import { estimateText, type Usage } from "../../domain/tokens/Tokens.ts"
import { usageOf } from "../../domain/wire/AnswerUsage.ts"
import type { ReadAnswer } from "../../domain/wire/RelayedAnswer.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import { orReported } from "../../services/gateway/GatewayFailures.ts"
import { microDollars, tenantAttribute, tokensCounted } from "../../services/gateway/GatewayMetrics.ts"
import type { SentView } from "../../services/gateway/GatewayPlan.ts"
import type { RequestTokens } from "../../services/gateway/MessageCounts.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import type { Metered } from "./AnswerMeter.ts"
import type { ProxiedRequest } from "./ProxiedRequest.ts"

/** What one request to a provider used. */
export interface Used extends Metered {
  readonly model: string
  /** The estimated tokens of the request, if it was estimated. */
  readonly estimated: RequestTokens | undefined
}

/** Returns what a round of an answer used. The estimate is that of the first round. */
export const countedRound = (
  { body: { model }, tokens }: SentView,
  isFirst: boolean,
  { usage, visible }: ReadAnswer
): Used => ({
  model,
  estimated: isFirst ? tokens : undefined,
  counts: usage,
  tokens: visible.reduce((sum, { text }) => sum + estimateText(text), 0)
})

/** For a request that was not estimated. */
const bytesPerToken = 4

/**
 * Records what a request used, and calibrates the estimate with the provider's counts. Where the provider counts nothing, or the client left
 * before the counts came, the estimate is charged.
 */
export const accountAnswer = Effect.fnUntraced(
  function* ({ account, bodyBytes, route, tenant }: ProxiedRequest, { counts, estimated, model, tokens }: Used) {
    if (route?.asks !== "answer") return
    const { learn, prices } = yield* Gateway
    const limiter = yield* TenantLimiter
    const counted = usageOf(wire[route.dialect].answers.usage, counts)
    const usage: Usage = counted ?? {
      prompt: Math.ceil(estimated === undefined ? bodyBytes / bytesPerToken : estimated.total),
      answer: tokens,
      thoughts: 0,
      cached: 0
    }
    const { answer, cached, cacheWrite = 0, prompt, thoughts } = usage
    yield* limiter.tokens(account, prompt + answer + thoughts)
    // After the charge, as it takes longer for a large request.
    if (estimated !== undefined && counted !== undefined) yield* learn(model, estimated, counted.prompt)
    const kinds = { input: prompt - cached - cacheWrite, cached, written: cacheWrite, output: answer + thoughts }
    for (const [kind, amount] of Object.entries(kinds)) {
      if (amount > 0)
        yield* Metric.update(Metric.withAttributes(tokensCounted, { kind, ...tenantAttribute(tenant) }), amount)
    }
    const price = priceOf(prices.table, model)
    if (price !== undefined)
      yield* Metric.update(
        Metric.withAttributes(microDollars, tenantAttribute(tenant)),
        Math.round(requestCost(price, usage))
      )
  },
  orReported("this request is not counted", undefined)
)
