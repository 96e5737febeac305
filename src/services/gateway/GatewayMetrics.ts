/** The counters of the gateway's `/metrics`. They are sums over all clients and contain no keys. */

import { Metric } from "effect"

const counter = (name: string, description: string) =>
  Metric.counter(`palimpsest_gateway_${name}`, { description, incremental: true })

/** Returns the attribute of a named tenant. Keys without a tenant have none. */
export const tenantAttribute = (tenant: string | undefined): Readonly<Record<string, string>> =>
  tenant === undefined ? {} : { tenant }

/** Requests of the dialects, with the attributes `dialect` and `view`: `unchanged`, `compressed`, or `other` for any other path. */
export const requestsPassed = counter("requests_total", "Requests that went to a provider")
/** Estimated tokens that did not have to be sent. */
export const tokensSaved = counter("tokens_saved_total", "Estimated tokens that compressed requests did not send")
/** Tokens as providers counted them, with the attribute `kind`: `input`, `cached`, `written`, `output`. */
export const tokensCounted = counter("tokens_total", "Tokens as the providers counted them")
/** Cost by the price table, in millionths of a dollar. */
export const microDollars = counter(
  "cost_microdollars_total",
  "Cost of the answers by the price table, in millionths of a US dollar"
)
/** Compressions, with the attribute `by`: `code` or `model`. */
export const compressionsDone = counter("compressions_total", "Compressions on the way")
/** Conversations that start with a summary by the client, with the attribute `client`. */
export const clientCompactions = counter("client_compactions_total", "Conversations that a client compacted itself")
/** Calls of the gateway's tool. */
export const recallsAnswered = counter("recalls_total", "Calls of the recall tool that the gateway answered")
/** Requests that were rejected, because the key is not in the settings or has used up its budget. */
export const requestsRefused = counter("refused_total", "Requests that the gateway refused, by key or budget")
/** Failures of the gateway itself. The requests went through unchanged. */
export const failuresPassed = counter(
  "failures_total",
  "Failures of the gateway itself, whose requests went through unchanged"
)
