/**
 * Decides which parts of a request are shortened or dropped: single results above a limit, old results once the provider's
 * cache has expired, media of finished turns, all results together above a limit, and the oldest turns above a limit. A change
 * stays in force, so that later requests begin the same and the cache can serve them.
 */

import { isCall, isMedia, isResponse, type Part, withOutput } from "../../../content/Content.ts"
import type { Handle } from "../../../content/Handle.ts"
import {
  beginsTurn,
  type EntryId,
  isFromUser,
  itemParts,
  itemTokens,
  type ViewItem
} from "../../../conversation/Conversation.ts"
import { resultText } from "../../../conversation/ToolOutputBound.ts"
import { recallNote } from "../../../conversation/ToolOutputShortening.ts"
import { firstUnits, lastUnits } from "../../../text/Bytes.ts"
import { runtimeMark } from "../../../text/RuntimeMark.ts"
import type { SlicedWork } from "../../../text/SlicedWork.ts"

/** Milliseconds after which a provider's prompt cache is gone. */
export const cacheMillis = { short: 5 * 60_000, long: 60 * 60_000 }

/** Characters that one token stands for, in bounds of characters. */
const charsPerToken = 4

/** Returns the characters that one result may show: 30 % of the window, at most 16,000 to 64,000 by its size. */
export const maxResultChars = (window: number): number =>
  Math.min(Math.floor(window * 0.3) * charsPerToken, window >= 200_000 ? 64_000 : window >= 100_000 ? 32_000 : 16_000)

/** Returns the characters that all results together may show: four times the bound of one, at least half of the window. */
export const maxAllResultsChars = (window: number): number =>
  Math.max(4 * maxResultChars(window), Math.floor(window * 0.5) * charsPerToken)

/** Results of the newest answers that are never pruned. */
const keptAnswers = 3
/** Shares of the window from which old results are trimmed, and from which they are cleared. */
const pruneShare = { trim: 0.3, clear: 0.5 }
/** Characters of old results together from which they are cleared. */
const minClearedChars = 50_000
/** Characters from which an old result is trimmed, and of what is shown of it. */
const trimmed = { above: 4_000, head: 1_500, tail: 1_500 }
/** Smallest size of a result that is cut, in characters. */
const minCutChars = 2_000
/** Upper bound of the note in a cut result, in characters. */
const maxNoteChars = 200

/** How a request is pruned. Tokens are estimated ones. */
export interface PruneOptions {
  readonly window: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** Milliseconds that the provider keeps a prompt in its cache. */
  readonly cacheMillis: number
  /** Turns of the user that stay. Undefined: all. */
  readonly turns?: number | undefined
}

/** A part that is shown in another form. */
export interface Pruned {
  readonly entry: EntryId
  readonly part: number
  readonly replacement: Part
}

interface Result {
  readonly item: number
  readonly entry: EntryId
  readonly part: number
  readonly handle: Handle | undefined
  readonly original: Part
  /** The whole output, whatever is shown of it. */
  readonly whole: () => string
  text: string
}

const telling =
  /\b(?:error|exception|failed|fatal|traceback|panic|exit code)\b|[}\])]\s*$|\b(?:total|summary|result|done)\b/i

/**
 * Cuts a result to so many characters: its beginning, and its end where the end says how it went. `outputOf` returns the whole output where `shown`
 * is already a part of it, so that the note tells how much of the whole is missing.
 */
export const cutResult = (
  shown: string,
  maxChars: number,
  handle: Handle | undefined,
  outputOf: () => string = () => shown
): string => {
  const limit = Math.max(maxChars, minCutChars)
  // A result that was cut earlier exceeds the limit by its note, and is not cut again.
  if (shown.length <= limit + maxNoteChars) return shown
  const text = outputOf()
  const tail = telling.test(lastUnits(text, 2_000)) ? lastUnits(text, Math.min(Math.floor(limit * 0.3), 4_000)) : ""
  const whole = firstUnits(text, limit - tail.length)
  const line = whole.lastIndexOf("\n")
  const head = line > whole.length * 0.8 ? whole.slice(0, line) : whole
  const left = text.length - head.length - tail.length
  return `${head}\n${noteOf(`${left} more characters were cut`, handle)}${tail === "" ? "" : `\n${tail}`}`
}

const noteOf = (what: string, handle: Handle | undefined): string =>
  `${runtimeMark} ${what}.${handle === undefined ? "" : ` ${recallNote(handle)}`}`

const trim = ({ handle, text: shown, whole }: Result): string => {
  if (shown.length <= trimmed.above) return shown
  const text = whole()
  return `${firstUnits(text, trimmed.head)}\n…\n${lastUnits(text, trimmed.tail)}\n${noteOf(`Shortened from ${text.length} characters`, handle)}`
}

const cleared = (text: string, handle: Handle | undefined): string => {
  const note = noteOf("An old tool result was cleared", handle)
  return note.length < text.length ? note : text
}

const total = (results: ReadonlyArray<Result>): number => results.reduce((sum, { text }) => sum + text.length, 0)

/** Returns the index before which results are old: that of the third answer from the end. */
const oldBefore = (items: ReadonlyArray<ViewItem>): number => {
  const answers = items.flatMap(({ entry }, index) => (entry.content.role === "model" ? [index] : []))
  return answers[answers.length - keptAnswers] ?? 0
}

const lastAnswerAt = (items: ReadonlyArray<ViewItem>): number | undefined =>
  items.findLast(({ entry }) => entry.content.role === "model" && entry.at !== undefined)?.entry.at

/** Shortens old results once the provider has forgotten the prompt anyway. */
const pruneOld = (items: ReadonlyArray<ViewItem>, results: ReadonlyArray<Result>, options: PruneOptions): void => {
  const answered = lastAnswerAt(items)
  if (answered === undefined || options.at - answered < options.cacheMillis) return
  let chars = items.reduce((sum, item) => sum + itemTokens(item), 0) * charsPerToken
  const share = () => chars / Math.max(1, options.window * charsPerToken)
  if (share() < pruneShare.trim) return
  const before = oldBefore(items)
  const request = items.findIndex(({ entry }) => beginsTurn(entry))
  const old = results.filter(({ item }) => item < before && item > request)
  const show = (result: Result, text: string) => {
    chars -= result.text.length - text.length
    result.text = text
  }
  for (const result of old) show(result, trim(result))
  if (share() < pruneShare.clear || total(old) < minClearedChars) return
  for (const result of old) {
    if (share() < pruneShare.clear) return
    show(result, cleared(result.text, result.handle))
  }
}

/** Clears the oldest results until all fit their bound. Those of the last message stay. */
const clearBeyond = (items: ReadonlyArray<ViewItem>, results: ReadonlyArray<Result>, maxChars: number): void => {
  let chars = total(results)
  for (const result of results) {
    if (chars <= maxChars || result.item >= items.length - 1) return
    const text = cleared(result.text, result.handle)
    chars -= result.text.length - text.length
    result.text = text
  }
}

/** Finished turns whose media stay. */
const keptMediaTurns = 3

/** Returns notes in the place of media that are older than the newest finished turns. */
const oldMedia = (items: ReadonlyArray<ViewItem>): ReadonlyArray<Pruned> => {
  const ends = items.flatMap(({ entry: { content } }, index) =>
    content.role === "model" && !content.parts.some(isCall) ? [index] : []
  )
  const before = ends[ends.length - keptMediaTurns - 1] ?? -1
  return items.slice(0, before + 1).flatMap((item) =>
    itemParts(item).flatMap((part, index) =>
      isMedia(part)
        ? [
            {
              entry: item.entry.id,
              part: index,
              replacement: { text: noteOf("A file stood here", item.entry.handles[index]) }
            }
          ]
        : []
    )
  )
}

/**
 * Returns the last message that leaves when there are more than one and a half times as many turns as may stay; they then
 * leave in one batch, so that the beginning of the requests changes seldom.
 */
export const beyondTurns = (items: ReadonlyArray<ViewItem>, turns: number): EntryId | undefined => {
  const starts = items.flatMap((item, index) => (isFromUser(item.entry) ? [index] : []))
  const maxTurns = Math.ceil(turns * 1.5)
  if (turns <= 0 || starts.length <= maxTurns) return undefined
  const batch = maxTurns - turns + 1
  const kept = starts.length - Math.ceil((starts.length - maxTurns) / batch) * batch
  const first = starts[starts.length - kept]
  return first === undefined || first === 0 ? undefined : items[first - 1]?.entry.id
}

/**
 * Decides which parts of the next request are shortened, and which messages leave. `items`: the view without the environment
 * message. `dropThrough`: the last message that leaves; undefined when none does.
 */
export function* pruning(
  items: ReadonlyArray<ViewItem>,
  options: PruneOptions
): SlicedWork<{ readonly shorten: ReadonlyArray<Pruned>; readonly dropThrough: EntryId | undefined }> {
  const results: Array<Result> = []
  const before = new Map<Result, string>()
  for (const [item, each] of items.entries()) {
    for (const [part, shown] of itemParts(each).entries()) {
      if (!isResponse(shown)) continue
      const text = resultText(shown)
      if (text === undefined) continue
      const { content, handles, id: entry } = each.entry
      const whole = () => resultText(content.parts[part] ?? shown) ?? text
      const result = { item, entry, part, handle: handles[part], original: shown, whole, text }
      results.push(result)
      before.set(result, text)
    }
    yield
  }
  const bound = maxResultChars(options.window)
  for (const result of results) result.text = cutResult(result.text, bound, result.handle, result.whole)
  pruneOld(items, results, options)
  clearBeyond(items, results, maxAllResultsChars(options.window))
  yield
  return {
    shorten: [
      ...results.flatMap((result) =>
        result.text === before.get(result)
          ? []
          : [{ entry: result.entry, part: result.part, replacement: withOutput(result.original, result.text) }]
      ),
      ...oldMedia(items)
    ],
    dropThrough: options.turns === undefined ? undefined : beyondTurns(items, options.turns)
  }
}
