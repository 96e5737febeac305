import { Cause, Effect, Metric } from "effect"
import { errorText } from "../../domain/text/ErrorText.ts"
import { failuresPassed } from "../../services/gateway/GatewayMetrics.ts"

const reported = new Set<string>()

/** Reports a failure of the gateway, each message once. `meanwhile` names the consequence. */
export const reportFailure = (cause: Cause.Cause<unknown>, meanwhile = "requests go through unchanged") =>
  Effect.suspend(() => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.void
    const error = Cause.squash(cause)
    const message = errorText(error)
    const counted = Metric.update(failuresPassed, 1)
    if (reported.has(message)) return counted
    reported.add(message)
    return Effect.andThen(counted, Effect.logWarning(`gateway: ${message}; ${meanwhile}`))
  })
