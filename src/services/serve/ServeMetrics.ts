import { Metric } from "effect"

/** What `/metrics` counts: sums of all tenants, without their names. */

/** Requests with a valid token. */
export const requestsServed = Metric.counter("palimpsest_requests_total", {
  description: "Requests with a valid token",
  incremental: true
})

/** Turns that ended, by how they ended. */
export const turnsEnded = Metric.counter("palimpsest_turns_total", {
  description: "Turns that ended",
  incremental: true
})
/** Tokens of models. */
export const tokensUsed = Metric.counter("palimpsest_tokens_total", {
  description: "Tokens of models, sent and answered, as providers counted them",
  incremental: true
})
/** Turns that run. */
export const runningTurns = Metric.gauge("palimpsest_running_turns", { description: "Turns that run now" })
/** Sessions that are open. */
export const openSessions = Metric.gauge("palimpsest_open_sessions", { description: "Sessions that are open now" })
/** Event streams that are open. */
export const openStreams = Metric.gauge("palimpsest_open_streams", { description: "Event streams that are open now" })
