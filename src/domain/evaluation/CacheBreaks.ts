/**
 * Finds where a provider's prompt cache stopped serving the beginning of a conversation: requests for which fewer tokens came
 * from the cache than the request before them left there.
 */

import { number } from "../text/NumberText.ts"
import { priceOf, type Prices, rateOf } from "../tokens/Prices.ts"
import type { CacheChange, RecordedRequest } from "../transcripts/facts/ScanState.ts"

/** Why a cache did not serve a request. `system` and `message` are concluded from how much it still served; the others are recorded. */
export type BreakCause = CacheChange | "model" | "pause" | "date" | "system" | "message"

/** A request that a cache did not serve as far as it could have. */
export interface CacheBreak {
  /** The request. */
  readonly request: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly model: string
  readonly cause: BreakCause
  /** What changed, in words. */
  readonly detail: string
  /** What would have avoided it. */
  readonly avoid: string
  /** Tokens that the cache could have served, and those that it did. */
  readonly expected: number
  readonly served: number
  /** US dollars that the difference cost; undefined without a price. */
  readonly cost: number | undefined
}

/** A smaller loss is the usual rounding of a cache. */
const minLostTokens = 2_048
/** Caches that providers fill on their own serve what they can; a loss below this share says nothing. */
const minLostShare = { paid: 0.05, automatic: 0.5 }

const minute = 60_000
const lifeMillis = { short: 5 * minute, hour: 60 * minute, automatic: 10 * minute }

const avoidTexts: Readonly<Record<BreakCause, string>> = {
  model: "change the model in a new session: each model has a cache of its own",
  compaction: "nothing: what follows a compaction is a new prompt; compact at a pause, when the cache ends anyway",
  rewind: "nothing: the conversation went back; the cache serves only what comes before that point",
  pause: "continue before the cache expires, or start anew from a snapshot after a long pause",
  version: "update the agent between sessions",
  tools: "connect MCP servers and tools before the first prompt of a session",
  instructions: "change memory files and instructions between sessions",
  thinking: "keep the thinking level within a session",
  settings: "keep approval and sandbox settings within a session",
  folder: "stay in one folder within a session",
  restart: "keep the agent running, or resume before the cache expires",
  date: "begin a new session on a new day: the date stands in the system prompt",
  system: "keep the system prompt and the list of tools the same within a session",
  message: "keep earlier messages as they are: hooks and context editing that rewrite them end the cache there"
}

const changeTexts: Readonly<Record<CacheChange, string>> = {
  compaction: "the conversation was compacted",
  rewind: "the conversation went back to an earlier message",
  folder: "the working folder changed",
  version: "the agent was updated",
  tools: "the list of tools changed",
  thinking: "the thinking level changed",
  instructions: "the instructions changed",
  settings: "approval or sandbox settings changed",
  restart: "the agent was started again"
}

/** Changes in the order in which they explain a break. */
const explaining: ReadonlyArray<CacheChange> = [
  "compaction",
  "rewind",
  "tools",
  "instructions",
  "version",
  "thinking",
  "settings",
  "folder",
  "restart"
]

const pauseText = (millis: number): string =>
  millis < 90 * minute ? `${Math.round(millis / minute)} min` : `${(millis / (60 * minute)).toFixed(1)} h`

interface Explained {
  readonly cause: BreakCause
  readonly detail: string
}

const explain = (
  before: RecordedRequest,
  request: RecordedRequest,
  lifeMillis: number,
  day: (at: number) => string
): Explained => {
  if (before.model !== request.model) return { cause: "model", detail: `${before.model} → ${request.model}` }
  const changes = request.changes ?? []
  const first = explaining.find((change) => changes.includes(change))
  if (first === "compaction" || first === "rewind") return { cause: first, detail: changeTexts[first] }
  const pause = request.at - before.at
  if (pause > lifeMillis) {
    return { cause: "pause", detail: `${pauseText(pause)} without a request; the cache keeps ${pauseText(lifeMillis)}` }
  }
  if (first !== undefined) return { cause: first, detail: changeTexts[first] }
  if (day(before.at) !== day(request.at)) return { cause: "date", detail: `a new day began: ${day(request.at)}` }
  return request.usage.cached === 0
    ? {
        cause: "system",
        detail: "nothing was served: the system prompt or the tools changed, or the provider dropped it"
      }
    : {
        cause: "message",
        detail: `an earlier message was rewritten, or dropped by the provider: only the first ${number(request.usage.cached)} tokens were served`
      }
}

/** Returns what would have avoided a break. After a pause of at most an hour, a cache that lives for an hour would have. */
const avoidText = ({ cause }: Explained, pause: number, isPaid: boolean, wroteHour: boolean): string =>
  cause === "pause" && isPaid && !wroteHour && pause <= lifeMillis.hour
    ? "use a cache that lives for an hour instead of 5 minutes, or continue sooner"
    : avoidTexts[cause]

/**
 * Returns the breaks in the requests of one file, in order. `day` names the day of a time where the agent ran.
 */
export const cacheBreaks = (
  requests: ReadonlyArray<RecordedRequest>,
  prices: Prices,
  day: (at: number) => string
): ReadonlyArray<CacheBreak> => {
  const breaks: Array<CacheBreak> = []
  const last = new Map<string, RecordedRequest>()
  const caching = new Map<string, "paid" | "automatic">()
  for (const request of requests) {
    const thread = request.thread ?? ""
    const before = last.get(thread)
    last.set(thread, request)
    const { cached, cacheWrite = 0, prompt } = request.usage
    const kind = cacheWrite > 0 ? "paid" : (caching.get(thread) ?? (cached > 0 ? "automatic" : undefined))
    if (kind !== undefined) caching.set(thread, kind)
    if (before === undefined || kind === undefined || thread === "compression") continue
    const { usage } = before
    const kept = kind === "paid" ? usage.cached + (usage.cacheWrite ?? 0) : usage.cached > 0 ? usage.prompt : 0
    const expected = Math.min(kept, prompt)
    const lost = expected - cached
    if (lost < Math.max(minLostTokens, expected * minLostShare[kind])) continue
    const wroteHour = (usage.cacheWriteHour ?? 0) > 0 || (request.usage.cacheWriteHour ?? 0) > 0
    const life = kind === "automatic" ? lifeMillis.automatic : wroteHour ? lifeMillis.hour : lifeMillis.short
    const why = explain(before, request, life, day)
    const price = priceOf(prices.table, request.model)
    const rate = price === undefined ? undefined : rateOf(price, request.usage)
    const paid =
      rate === undefined
        ? undefined
        : cacheWrite >= lost
          ? wroteHour
            ? (rate.cacheWriteHour ?? rate.cacheWrite ?? rate.input)
            : (rate.cacheWrite ?? rate.input)
          : rate.input
    breaks.push({
      request: request.id,
      at: request.at,
      model: request.model,
      ...why,
      avoid: avoidText(why, request.at - before.at, kind === "paid", wroteHour),
      expected,
      served: cached,
      cost:
        rate === undefined || paid === undefined ? undefined : (lost * (paid - (rate.cacheRead ?? rate.input))) / 1e6
    })
  }
  return breaks
}
