import { Schema } from "effect"
import { StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { Figures, sumFigures } from "../../domain/evaluation/Measure.ts"
import { RequestSize } from "../../domain/evaluation/Replay.ts"
import { repeatedInVain, StablePrefix, stablePrefix } from "../../domain/evaluation/ReplayFigures.ts"
import { costOf, type Prices } from "../../domain/tokens/Prices.ts"
import { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { ReplayedCompression, type ReplayResult } from "../../services/evaluation/Replay.ts"

/** The report of `replay`. */

/** The result of one strategy. Token counts are those of requests, by the estimator. */
export const Result = Schema.Struct({
  strategy: StrategyName,
  /** Tokens of a request above which it is compressed. */
  trigger: Schema.Natural,
  /** Number of replayed exchanges. */
  turns: Schema.Natural,
  requests: Schema.Natural,
  /** Exchanges, from 1, whose message could not be made to fit. The message was left out and its recorded answer kept. */
  refused: Schema.Array(Schema.Natural),
  largest: Schema.Natural,
  /** Requests larger than the window. Must be 0. */
  over: Schema.Natural,
  sent: Schema.Natural,
  /** The part of `sent` that each request shares with the beginning of the one before: what a prompt cache would serve. */
  prefix: Schema.Natural,
  /**
   * Of the requests that follow another one without a compression between them: the tokens with which the next request begins,
   * unchanged, of all tokens, and the least share of one request.
   */
  stable: StablePrefix,
  /** US dollars for all requests and answers. Null: the model has no price. */
  cost: Schema.NullOr(Schema.Finite),
  /** Number of compressions by status. */
  statuses: Schema.Record(Schema.String, Schema.Natural),
  /** Compressions that the guard forced because the request might not have fitted, and that made it fit. */
  rescued: Schema.Natural,
  /** Compressions right after another one that saved less than a tenth of the request. */
  inVain: Schema.Natural,
  compressions: Schema.Array(ReplayedCompression),
  /** The sums over all compressions. */
  figures: Figures,
  /** The tokens of each request, and the prefix that it shares with the one before. */
  sizes: Schema.Array(RequestSize),
  /** Time spent in the runtime itself. */
  milliseconds: Schema.Finite
})
export type Result = typeof Result.Type

/** The output of `--json`. */
export const Report = Schema.Struct({
  file: Schema.String,
  format: SourceFormat,
  messages: Schema.Natural,
  window: Schema.Natural,
  /** The share of the window above which the first strategy compresses: `--threshold`, else its own. */
  threshold: Schema.Finite,
  /** The model whose prices were taken; null when the recording names none. */
  model: Schema.NullOr(Schema.String),
  /** The source of the prices. */
  prices: Schema.String,
  strategies: Schema.Array(Result)
})
export type Report = typeof Report.Type

/** Whether a compression changed something. */
export const isChange = ({ status }: Pick<ReplayedCompression, "status">): boolean =>
  status === "COMPRESSED" || status === "CONTENT_TRUNCATED"

/** Whether the guard forced the compression and the request then could be sent. */
export const isRescue = (
  one: Pick<ReplayedCompression, "status" | "trigger" | "turn">,
  refused: ReadonlyArray<number>
): boolean => one.trigger === "guard" && isChange(one) && !refused.includes(one.turn)

/** A replay's settings. */
export interface Replayed {
  readonly strategy: StrategyName
  /** Tokens of a request above which it is compressed. */
  readonly trigger: number
  readonly window: number
  readonly turns: number
  /** The model whose prices are taken. */
  readonly model: string | undefined
  readonly prices: Prices
}

/** Returns the part of the report about one strategy. */
export const resultOf = (
  { model, prices, strategy, trigger, turns, window }: Replayed,
  played: ReplayResult
): Result => {
  const { compressions, millis, refused, requests, usages } = played
  const statuses: Record<string, number> = {}
  for (const { status } of compressions) statuses[status] = (statuses[status] ?? 0) + 1
  // What no cache held is written to it, where a provider has a price for that.
  const priced = usages.map((usage) => ({
    model: model ?? "unknown",
    usage: { ...usage, cacheWrite: usage.prompt - usage.cached }
  }))
  return {
    strategy,
    trigger,
    turns,
    requests: requests.length,
    refused,
    largest: requests.reduce((max, { tokens }) => Math.max(max, tokens), 0),
    over: requests.filter(({ tokens }) => tokens > window).length,
    sent: requests.reduce((total, { tokens }) => total + tokens, 0),
    prefix: requests.reduce((total, { prefix }) => total + prefix, 0),
    stable: stablePrefix(
      requests,
      compressions.filter(isChange).map(({ request }) => request)
    ),
    cost: costOf(priced, prices, true).total,
    statuses,
    rescued: compressions.filter((one) => isRescue(one, refused)).length,
    inVain: repeatedInVain(compressions),
    compressions,
    figures: sumFigures(compressions.map(({ figures }) => figures ?? {})),
    sizes: requests,
    milliseconds: millis
  }
}
