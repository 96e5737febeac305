import { Effect, Metric } from "effect"
import { usageOf } from "../../domain/gateway/AnswerUsage.ts"
import { priceOf, requestCost } from "../../domain/tokens/Prices.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import { microDollars, tenantAttribute, tokensCounted } from "../../services/gateway/GatewayMetrics.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { reportFailure } from "./GatewayFailures.ts"
import type { ProxiedRequest } from "./ProxiedRequest.ts"

/** Records the cost of an answer, and calibrates the estimate with its counts. */
export const accountAnswer = Effect.fnUntraced(
  function* (
    { account, route, tenant }: ProxiedRequest,
    model: string,
    estimated: number | undefined,
    counts: unknown
  ) {
    const usage = route === undefined ? undefined : usageOf(route.dialect, counts)
    if (usage === undefined) return
    const { learn, prices } = yield* Gateway
    const limiter = yield* TenantLimiter
    if (estimated !== undefined) learn(model, estimated, usage.prompt)
    const { answer, cached, cacheWrite = 0, prompt, thoughts } = usage
    yield* limiter.tokens(account, prompt + answer + thoughts)
    const kinds = { input: prompt - cached - cacheWrite, cached, written: cacheWrite, output: answer + thoughts }
    for (const [kind, tokens] of Object.entries(kinds)) {
      if (tokens > 0)
        yield* Metric.update(Metric.withAttributes(tokensCounted, { kind, ...tenantAttribute(tenant) }), tokens)
    }
    const price = priceOf(prices.table, model)
    if (price !== undefined)
      yield* Metric.update(
        Metric.withAttributes(microDollars, tenantAttribute(tenant)),
        Math.round(requestCost(price, usage))
      )
  },
  Effect.catchCause((cause) => reportFailure(cause))
)
