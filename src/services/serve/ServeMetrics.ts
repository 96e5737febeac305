/** The counters of `/metrics`. They are sums over all tenants and contain no names. */

import { Metric } from "effect"

/** Requests with a valid token. */
export const requestsServed = Metric.counter("palimpsest_requests_total", {
  description: "Requests with a valid token",
  incremental: true
})

/** Turns that ended, by status. */
export const turnsEnded = Metric.counter("palimpsest_turns_total", {
  description: "Turns that ended",
  incremental: true
})
/** Tokens of model calls. */
export const tokensUsed = Metric.counter("palimpsest_tokens_total", {
  description: "Tokens of models, sent and answered, as providers counted them",
  incremental: true
})
/** Running turns. */
export const runningTurns = Metric.gauge("palimpsest_running_turns", { description: "Turns that run now" })
/** Open sessions. */
export const openSessions = Metric.gauge("palimpsest_open_sessions", { description: "Sessions that are open now" })
/** Open event streams. */
export const openStreams = Metric.gauge("palimpsest_open_streams", { description: "Event streams that are open now" })
