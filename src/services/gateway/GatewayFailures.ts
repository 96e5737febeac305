/** Reports failures of the gateway in the log, each message once. */

import { Cause, Effect, Metric } from "effect"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import { failuresPassed } from "./GatewayMetrics.ts"

const maxMessages = 1_000

const reported = new BoundedMap<string, true>(maxMessages)

/** What follows from a failure before a request is sent. */
export const unchangedRequest = "the request goes out unchanged"

/** Reports a failure. `consequence` says what follows from it. */
export const reportFailure = (cause: Cause.Cause<unknown>, consequence: string) =>
  Effect.suspend(() => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.void
    const message = `${errorText(Cause.squash(cause))}; ${consequence}`
    const counted = Metric.update(failuresPassed, 1)
    if (reported.get(message) === true) return counted
    reported.set(message, true)
    return Effect.andThen(counted, Effect.logWarning(`gateway: ${message}`))
  })

/** Does work of the gateway itself, whose failure stops no request: it is reported, and `instead` is the result. */
export const orReported =
  <B>(consequence: string, instead: B) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A | B, never, R> =>
    Effect.catchCause(work, (cause) => Effect.as(reportFailure(cause, consequence), instead))
