import { firstUnits, lastUnits } from "../../text/Bytes.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import type { Span } from "../evidence/UserRequests.ts"
import { clippedWordsItem, labelled, type SnapshotItem, statement, userWordsItem } from "../Snapshot.ts"
import { cost } from "./Budget.ts"

/** Shows every message of the user in a snapshot: whole where they fit, the long ones by their beginning and end. */

/** The messages of a snapshot, and those that are not shown whole. */
export interface ShownMessages {
  readonly items: Array<SnapshotItem>
  readonly clipped: ReadonlySet<Span>
}

/** Stands above the latest message. */
export const latestLabel = "latest request"

/** The first and the latest message may be this many times as long as the others. */
const endWeight = 4

/** How little of a message is shown where there is no room for more. */
interface Clipping {
  /** Messages of this size are not clipped. */
  readonly whole: number
  /** What a clipped message takes. */
  readonly tokens: number
  /** Characters of each end. */
  readonly endChars: number
  /** Whether the note has the handle. Its beginning finds a message, too. */
  readonly hasHandle: boolean
}

/** That of the first and the latest message, which stand alone with their labels. */
const clippedEnd: Clipping = { whole: 84, tokens: 84, endChars: 44, hasHandle: true }
/** Enough for all messages: the short ones are whole. */
const briefly: Clipping = { whole: 84, tokens: 46, endChars: 44, hasHandle: false }
/** The first of these at which all messages fit is taken; at the last, old messages are left out. */
const clippings: readonly [Clipping, ...ReadonlyArray<Clipping>] = [
  clippedEnd,
  briefly,
  { whole: 46, tokens: 46, endChars: 44, hasHandle: false },
  { whole: 26, tokens: 26, endChars: 26, hasHandle: false }
]
const shortestClipping = clippings.at(-1) ?? briefly
/** Ends of code have more tokens than ends of prose: they may take this much of their room, if all messages fit then. */
const denseText = 1.3
/** Tokens of what stands around the ends of a clipped message. */
const clipTokens = 20
/** Tokens of the headings, and of the note on messages that are left out. */
const noteTokens = 40
/** A cut moves to the next blank, if it is not farther. */
const maxWordChars = 12

const keyOf = ({ entry, part, start }: Span): string => `${entry}:${part}:${start}`

/** What is shown of the time of a message: the day and the time, the time, or nothing. */
type Dating = "day" | "time" | "none"

const datedWords = (span: Span, dating: Dating) => ({
  ...span,
  at: dating === "none" ? undefined : span.at,
  isSameDay: dating === "time"
})

/** Shows a message whole. */
type ShowWhole = (span: Span, dating: Dating) => SnapshotItem

/** Returns a function that shows messages whole and makes each item once. */
const wholeItems = (): ShowWhole => {
  const items: Readonly<Record<Dating, Map<Span, SnapshotItem>>> = { day: new Map(), time: new Map(), none: new Map() }
  return (span, dating) => {
    const made = items[dating]
    const item = made.get(span) ?? userWordsItem(keyOf(span), datedWords(span, dating))
    made.set(span, item)
    return item
  }
}

/** Returns the tokens of a message: one that stands alone has its own tags. */
const sizeOf = (item: SnapshotItem, isEnd: boolean): number => (isEnd ? estimateText(item.text) + 1 : cost(item))

interface ItemOptions {
  readonly whole: SnapshotItem
  readonly dating: Dating
  readonly limit: number
  readonly isEnd: boolean
  readonly clipping: Clipping
  /** How much more than `limit` the shortest ends may take, as a factor. */
  readonly excess: number
}

/**
 * Shows a message whole when it fits `limit`, else clipped. The shortest ends may take `limit` times `excess` tokens; a message
 * that does not even fit then is shown as short as possible.
 */
const itemOf = (
  span: Span,
  { clipping: { endChars, hasHandle }, dating, excess, isEnd, limit, whole }: ItemOptions
): { readonly item: SnapshotItem; readonly isClipped: boolean } => {
  const key = keyOf(span)
  const size = sizeOf(whole, isEnd)
  if (size <= limit) return { item: whole, isClipped: false }
  // A token has about 4 characters of prose.
  for (let chars = Math.max(2 * endChars, Math.floor((limit - clipTokens) * 4)); ; chars = Math.floor(chars * 0.85)) {
    const ending = Math.max(Math.min(endChars, Math.floor(chars / 2)), Math.floor(chars * 0.3))
    const tail = chars < endChars ? "" : endOf(span.text, ending)
    const head = beginningOf(span.text, chars - (tail === "" ? 0 : ending))
    const left = span.text.length - head.length - tail.length
    const item = clippedWordsItem(
      key,
      { ...datedWords(span, dating), text: head },
      { chars: left, handle: hasHandle ? span.handle : undefined },
      tail
    )
    const isLeast = chars <= 2 * endChars
    if (left > 0 && sizeOf(item, isEnd) <= limit * (isLeast ? excess : 1)) return { item, isClipped: true }
    // A clipped message that takes as much as the whole one says less.
    if (chars < 16)
      return left > 0 && sizeOf(item, isEnd) < size ? { item, isClipped: true } : { item: whole, isClipped: false }
  }
}

/** Returns the beginning of a text, up to a blank where there is one near. */
const beginningOf = (text: string, chars: number): string => {
  const cut = firstUnits(text, chars + maxWordChars)
  const blank = cut.slice(chars).search(/\s/)
  return (blank >= 0 ? cut.slice(0, chars + blank) : firstUnits(text, chars)).trimEnd()
}

/** Returns the end of a text, from a blank where there is one near. */
const endOf = (text: string, chars: number): string => {
  // A run of blanks and line breaks says as much as one blank.
  const ending = lastUnits(text, chars)
  const length = chars + ending.length - ending.replace(/\s+/g, " ").trim().length
  const cut = lastUnits(text, length + maxWordChars)
  const blank = cut.slice(0, maxWordChars).search(/\s\S*$/)
  return (blank >= 0 ? cut.slice(blank) : lastUnits(text, length)).trimStart()
}

const dayOf = (span: Span | undefined): number | undefined =>
  span?.at === undefined ? undefined : Math.floor(span.at / 86_400_000)

/** A message on the day of the one before shows its time alone. */
const datingAfter = (span: Span, before: Span | undefined): Dating => (dayOf(span) === dayOf(before) ? "time" : "day")

/** A message that is shown, and the tokens that it takes when it is whole. */
interface ShownMessage {
  readonly span: Span
  readonly tokens: number
  /** Whether it is the first or the latest message. */
  readonly isEnd: boolean
}

/** Returns the least tokens of a message. */
const leastOf = (tokens: number, isEnd: boolean, clipping: Clipping): number => {
  const { tokens: least, whole } = isEnd ? clippedEnd : clipping
  return tokens <= whole ? tokens : least
}

/** The messages, and what each takes whole and undated. */
interface SizedMessages {
  readonly messages: ReadonlyArray<Span>
  readonly sizes: ReadonlyArray<number>
  /** The index of the original message. */
  readonly original: number
}

/** Returns the tokens of all messages, each as small as it may be. */
const needOf = ({ original, sizes }: SizedMessages, clipping: Clipping): number =>
  sizes.reduce(
    (sum, tokens, index) => sum + leastOf(tokens, index === original || index === sizes.length - 1, clipping),
    0
  )

/** Returns the original message and as many of the latest as fit when each is as small as it may be, oldest first. */
const shownAmong = (
  { messages, original, sizes }: SizedMessages,
  clipping: Clipping,
  room: number
): ReadonlyArray<ShownMessage> => {
  const shown: Array<ShownMessage> = []
  const last = messages.length - 1
  // The original and the last are shown whatever the budget is.
  let left = room - leastOf(sizes[original] ?? 0, true, clipping)
  for (let index = last; index >= 0; index -= 1) {
    const span = messages[index]
    const tokens = sizes[index] ?? 0
    const isEnd = index === original || index === last
    if (span === undefined) break
    if (index !== original) left -= leastOf(tokens, isEnd, clipping)
    if (left >= 0 || isEnd) shown.push({ span, tokens, isEnd })
  }
  return shown.reverse()
}

/** A message that wants room: what it takes whole and at the least, and how much it counts. */
interface Claim {
  readonly tokens: number
  readonly least: number
  readonly weight: number
}

/**
 * Returns the tokens of each message: first the least of all, then as many whole messages as possible, the short ones first,
 * because the ends of a message say less than twice as much as the whole of one half as long. The rest goes to the others.
 */
const limitsOf = (claims: ReadonlyArray<Claim>, room: number): ReadonlyArray<number> => {
  const limits = claims.map(({ least }) => least)
  let left = room - limits.reduce((sum, least) => sum + least, 0)
  const open = claims
    .map((claim, index) => ({ ...claim, index, more: claim.tokens - claim.least }))
    .filter(({ more }) => more > 0)
    .sort((a, b) => a.tokens / a.weight - b.tokens / b.weight || a.index - b.index)
  let weights = open.reduce((sum, { weight }) => sum + weight, 0)
  for (const { index, least, more, weight } of open) {
    const share = Math.max(0, Math.min(more, more <= left ? more : (left * weight) / weights))
    limits[index] = least + Math.floor(share)
    left -= Math.floor(share)
    weights -= weight
  }
  return limits
}

const sizedMessages = (messages: ReadonlyArray<Span>, original: number, whole: ShowWhole): SizedMessages => ({
  messages,
  original,
  sizes: messages.map((span, index) => sizeOf(whole(span, "none"), index === original || index === messages.length - 1))
})

/**
 * Returns the tokens in which all messages can be shown with readable ends, at most `maxTokens`. Infinity when they do not fit
 * `maxTokens` even with the shortest ends, so that old messages have to be left out.
 */
export const minTokensForAll = (messages: ReadonlyArray<Span>, maxTokens: number): number => {
  const sized = sizedMessages(messages, 0, wholeItems())
  const needs = clippings.map((clipping) => needOf(sized, clipping) + noteTokens)
  return Math.min(...needs) <= maxTokens
    ? Math.min(maxTokens, needOf(sized, briefly) + noteTokens)
    : Number.POSITIVE_INFINITY
}

/** The messages to show, each with the tokens that it may take. */
interface MessageLayout {
  readonly shown: ReadonlyArray<ShownMessage & { readonly dating: Dating; readonly item: SnapshotItem }>
  readonly limits: ReadonlyArray<number>
  readonly clipping: Clipping
  readonly leftOut: ReadonlyArray<Span>
  readonly isFirst: (span: Span) => boolean
}

/** Characters of a question above its answer. */
const maxQuestionChars = 80

/** The heading of an answer to a question; undefined for a request. */
const answerLabel = ({ entry, question }: Span, hasRoom: boolean): string | undefined => {
  if (question === undefined) return undefined
  // What follows a question explains it.
  const asked = /^[^?]*\?/.exec(question)?.[0] ?? question
  // A heading has no other characters; a question may be a program's words.
  const words = firstUnits(asked.replace(/[^\p{L}\p{N}_',.?-]+/gu, " ").trim(), maxQuestionChars).trim()
  return words === "" || !hasRoom ? `answer to a question (${entry})` : `answer to the question ${words} (${entry})`
}

/** Writes messages. `excess`: how much more than its limit a clipped one may take, as a factor. */
const write = ({ clipping, isFirst, leftOut, limits, shown }: MessageLayout, excess: number): ShownMessages => {
  const clipped = new Set<Span>(leftOut)
  const items: Array<SnapshotItem> = []
  const latest = shown.findLastIndex(({ span }) => span.question === undefined)
  for (const [index, { dating, isEnd, item: whole, span }] of shown.entries()) {
    if (index === 1 && leftOut.length > 0) {
      const names = `${leftOut[0]?.entry ?? ""} to ${leftOut.at(-1)?.entry ?? ""}`
      items.push(
        statement(
          "messages left out",
          `${leftOut.length} messages of the user (${names}) are not shown here; recall finds them`
        )
      )
    }
    const { isClipped, item } = itemOf(span, {
      whole,
      dating,
      limit: limits[index] ?? 0,
      isEnd,
      clipping: isEnd ? clippedEnd : clipping,
      excess
    })
    if (isClipped) clipped.add(span)
    const label = isFirst(span) ? "original request" : index === latest ? latestLabel : answerLabel(span, excess > 1)
    items.push(label === undefined ? item : labelled(label, item))
  }
  return { items, clipped }
}

/**
 * Returns a function that shows messages, oldest first, within a budget in tokens. `first`: the message with which the
 * conversation began.
 */
export const showMessages = (
  messages: ReadonlyArray<Span>,
  first?: Span | undefined
): ((budget: number) => ShownMessages) => {
  const isFirst = ({ entry, part }: Span): boolean => entry === first?.entry && part === first.part
  const original = Math.max(0, messages.findIndex(isFirst))
  const whole = wholeItems()
  const sized = sizedMessages(messages, original, whole)
  const isEndAt = (index: number): boolean => index === original || index === messages.length - 1
  const need = messages.reduce(
    (sum, span, index) => sum + sizeOf(whole(span, datingAfter(span, messages[index - 1])), isEndAt(index)),
    0
  )
  return (budget) => {
    const room = budget - noteTokens
    // Where not all fit whole, dates make room for words.
    const isDated = need <= room
    const clipping = clippings.find((each) => needOf(sized, each) <= room) ?? shortestClipping
    const datingOf = (span: Span, isEnd: boolean, before: Span | undefined): Dating =>
      isDated || isEnd ? datingAfter(span, before) : "none"
    const among = shownAmong(sized, clipping, room)
    const shown = among.map(({ isEnd, span }, index) => {
      const dating = datingOf(span, isEnd, among[index - 1]?.span)
      const item = whole(span, dating)
      return { span, isEnd, dating, item, tokens: sizeOf(item, isEnd) }
    })
    const limits = limitsOf(
      shown.map(({ isEnd, tokens }) => ({
        tokens,
        least: leastOf(tokens, isEnd, clipping),
        weight: isEnd ? endWeight : 1
      })),
      room
    )
    const known = new Set(shown.map(({ span }) => span))
    const layout = { shown, limits, clipping, leftOut: messages.filter((span) => !known.has(span)), isFirst }
    const all = write(layout, denseText)
    return all.items.reduce((sum, item) => sum + cost(item), 0) <= budget ? all : write(layout, 1)
  }
}
