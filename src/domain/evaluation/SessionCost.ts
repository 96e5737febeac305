/** Adds up the tokens and the cost of recorded requests. */

import { Schema } from "effect"
import { priceOf, type Prices, requestCost } from "../tokens/Prices.ts"
import type { RecordedRequest } from "../transcripts/facts/ScanState.ts"

/** What recorded requests took and cost. */
export const Spent = Schema.Struct({
  requests: Schema.Natural,
  /** Prompt tokens, including those from a cache. */
  sent: Schema.Natural,
  /** Prompt tokens that a cache served. */
  cached: Schema.Natural,
  /** Prompt tokens that were written to a cache. */
  written: Schema.Natural,
  /** Tokens answered, thoughts included. */
  answered: Schema.Natural,
  /** US dollars of the requests with a price. */
  cost: Schema.Finite,
  /** Number of requests whose cost the agent recorded. */
  recorded: Schema.Natural,
  /** Number of requests without a recorded cost and without a price. */
  unpriced: Schema.Natural
})
export type Spent = typeof Spent.Type

/** Nothing spent. */
export const nothingSpent: Spent = {
  requests: 0,
  sent: 0,
  cached: 0,
  written: 0,
  answered: 0,
  cost: 0,
  recorded: 0,
  unpriced: 0
}

/** The cost of a request in US dollars: as the agent recorded it, else by a table; undefined without a price. */
export const costOfRequest = ({ model, usage }: RecordedRequest, prices: Prices): number | undefined => {
  if (usage.cost !== undefined) return usage.cost
  const price = priceOf(prices.table, model)
  return price === undefined ? undefined : requestCost(price, usage) / 1e6
}

/** Adds one request. */
export const spend = (spent: Spent, request: RecordedRequest, prices: Prices): Spent => {
  const cost = costOfRequest(request, prices)
  const { answer, cached, cacheWrite = 0, prompt, thoughts } = request.usage
  return {
    requests: spent.requests + 1,
    sent: spent.sent + prompt,
    cached: spent.cached + cached,
    written: spent.written + cacheWrite,
    answered: spent.answered + answer + thoughts,
    cost: spent.cost + (cost ?? 0),
    recorded: spent.recorded + (request.usage.cost === undefined ? 0 : 1),
    unpriced: spent.unpriced + (cost === undefined ? 1 : 0)
  }
}

/** Adds up requests. */
export const spentOn = (requests: Iterable<RecordedRequest>, prices: Prices): Spent => {
  let spent = nothingSpent
  for (const request of requests) spent = spend(spent, request, prices)
  return spent
}
