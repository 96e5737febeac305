/** What each turn of a conversation cost, and where the prompt cache broke, from the use that its messages record. */

import { isCall } from "../content/Content.ts"
import { type Conversation, entries, type EntryId } from "../conversation/Conversation.ts"
import { firstUnits } from "../text/Bytes.ts"
import { printableLine } from "../text/InvisibleCharacters.ts"
import { isTime } from "../text/Time.ts"
import { builtInPrices, costOf, type Prices } from "../tokens/Prices.ts"
import type { RecordedRequest } from "../transcripts/facts/ScanState.ts"
import { isPrompt } from "../transcripts/voice/Voice.ts"
import { cacheBreaks, type CacheBreak } from "./CacheBreaks.ts"
import { countedTokens, viewSizes } from "./Compactions.ts"
import { answersIn, requestOf } from "./RecordedUse.ts"

/** One turn: a message of the user and everything up to the next one. */
export interface TurnCost {
  /** Counted from 1; 0 for what stands before the first message of the user. */
  readonly turn: number
  /** The message that opens it. */
  readonly entry: EntryId
  /** The beginning of that message, on one line. */
  readonly title: string
  readonly messages: number
  readonly calls: number
  /** Our count of its messages. */
  readonly tokens: number
  readonly requests: number
  /** Tokens as the provider counted them, or as we do. */
  readonly sent: number
  readonly cached: number
  readonly answered: number
  /** US dollars; null without a price. */
  readonly cost: number | null
}

const titleUnits = 400

/** Returns the turns in order. Without recorded use, requests are counted by us: the size of the view, without a cache. */
export const turnCosts = (
  conversation: Conversation,
  about: { readonly model?: string | undefined; readonly prices?: Prices | undefined }
): ReadonlyArray<TurnCost> => {
  const { model, prices = builtInPrices } = about
  const log = entries(conversation)
  const answers = answersIn(log, viewSizes(conversation))
  const isEstimated = answers.every(({ usage }) => usage === undefined)
  const requests = new Map(answers.map((answer) => [answer.entry, requestOf(answer, isEstimated, model)]))
  const turns: Array<{ -readonly [Key in keyof TurnCost]: TurnCost[Key] }> = []
  for (const entry of log) {
    if (entry.author === "environment") continue
    let open = turns.at(-1)
    const isTurn = isPrompt(entry)
    if (isTurn || open === undefined) {
      const text = entry.content.parts.find((part) => part.text !== undefined)?.text ?? ""
      open = {
        turn: isTurn ? (open?.turn ?? 0) + 1 : 0,
        entry: entry.id,
        title: printableLine(firstUnits(text.trim(), titleUnits)),
        messages: 0,
        calls: 0,
        tokens: 0,
        requests: 0,
        sent: 0,
        cached: 0,
        answered: 0,
        cost: 0
      }
      turns.push(open)
    }
    open.messages += 1
    open.calls += entry.content.parts.filter(isCall).length
    open.tokens += countedTokens(entry)
    const request = requests.get(entry.id)
    if (request === undefined) continue
    const { answer, cached, prompt, thoughts } = request.usage
    open.requests += 1
    open.sent += prompt
    open.cached += cached
    open.answered += answer + thoughts
    const { total } = costOf([request], prices, isEstimated)
    open.cost = total === null || open.cost === null ? null : open.cost + total
  }
  return turns
}

/**
 * Returns where the provider's cache stopped serving this conversation. Only messages with recorded use and a time count.
 * `compressedAt`: the number of log entries before each compression, oldest first. Days are those of UTC.
 */
export const conversationBreaks = (
  conversation: Conversation,
  compressedAt: ReadonlyArray<number>,
  about: { readonly model?: string | undefined; readonly prices?: Prices | undefined }
): ReadonlyArray<CacheBreak> => {
  const { model = "unknown", prices = builtInPrices } = about
  const requests: Array<RecordedRequest> = []
  let next = 0
  for (const [index, entry] of entries(conversation).entries()) {
    // `at` may be no date: a time beyond this is not one of a `Date`.
    if (entry.usage === undefined || entry.at === undefined || !isTime(entry.at)) continue
    const passed = compressedAt.filter((count) => count <= index).length
    const isAfterCompaction = passed > next
    next = passed
    requests.push({
      id: entry.id,
      at: entry.at,
      model: entry.model ?? model,
      usage: entry.usage,
      ...(isAfterCompaction ? { changes: ["compaction"] } : {})
    })
  }
  return cacheBreaks(requests, prices, (at) => new Date(at).toISOString().slice(0, 10))
}
