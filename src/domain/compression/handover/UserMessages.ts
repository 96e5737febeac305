import { firstUnits, lastUnits } from "../../text/Bytes.ts"
import type { Span } from "../evidence/UserRequests.ts"
import { clippedWordsItem, labelled, type SnapshotItem, statement, userWordsItem } from "../Snapshot.ts"
import { cost } from "./Room.ts"

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

/** Tokens of the tags and the note around a message that is clipped. */
const clipTokens = 48
/** Messages of this size are not clipped: the note would be as long. Where even these do not fit, old messages are left out. */
const leastTokens = 84
/** Characters that a clipped message shows of each end at the least. */
const leastEndChars = 44
/** Where fewer are shown, a message is shown by its beginning alone. */
const minEndsChars = 52
/** Tokens of the headings, and of the note on messages that are left out. */
const noteTokens = 32

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

/** Shows a message whole, or clipped so that it takes no more tokens than `limit`. */
const itemOf = (
  span: Span,
  { dating, limit, whole }: { readonly whole: SnapshotItem; readonly dating: Dating; readonly limit: number }
): { readonly item: SnapshotItem; readonly isClipped: boolean } => {
  const key = keyOf(span)
  if (cost(whole) <= limit) return { item: whole, isClipped: false }
  // A token has about 3.5 characters of prose.
  for (let chars = Math.max(24, Math.floor((limit - clipTokens) * 3.5)); ; chars = Math.floor(chars * 0.8)) {
    const ending = Math.max(Math.min(leastEndChars, Math.floor(chars / 2)), Math.floor(chars * 0.3))
    const tail = chars < minEndsChars ? "" : endOf(span.text, ending)
    const head = beginningOf(span.text, tail === "" ? Math.ceil(chars * 0.7) : chars - ending)
    const left = span.text.length - head.length - tail.length
    const item = clippedWordsItem(
      key,
      { ...datedWords(span, dating), text: head },
      { chars: left, handle: span.handle },
      tail
    )
    if (cost(item) <= limit) return { item, isClipped: true }
    // A clipped message that takes as much as the whole one says less.
    if (chars < 32) return cost(item) < cost(whole) ? { item, isClipped: true } : { item: whole, isClipped: false }
  }
}

/** Returns the beginning of a text, up to a blank where there is one near. */
const beginningOf = (text: string, chars: number): string => {
  const cut = firstUnits(text, chars)
  const blank = cut.search(/\s\S*$/)
  return (blank > chars * 0.7 ? cut.slice(0, blank) : cut).trimEnd()
}

/** Returns the end of a text, from a blank where there is one near. */
const endOf = (text: string, chars: number): string => {
  const cut = lastUnits(text, chars)
  const blank = cut.search(/\s/)
  return (blank >= 0 && blank < chars * 0.3 ? cut.slice(blank) : cut).trimStart()
}

const dayOf = (span: Span | undefined): number | undefined =>
  span?.at === undefined ? undefined : Math.floor(span.at / 86_400_000)

/** A message on the day of the one before shows its time alone. */
const datingAfter = (span: Span, before: Span | undefined): Dating => (dayOf(span) === dayOf(before) ? "time" : "day")

/** A message that is shown, and the tokens that it takes when it is whole. */
interface ShownMessage {
  readonly span: Span
  readonly tokens: number
  readonly weight: number
}

/** Returns the original message and as many of the latest as fit when each is clipped to the least, oldest first. */
const shownAmong = (
  messages: ReadonlyArray<Span>,
  whole: ShowWhole,
  room: number,
  { isDated, original }: { readonly isDated: boolean; readonly original: number }
): ReadonlyArray<ShownMessage> => {
  const shown: Array<ShownMessage> = []
  const last = messages.length - 1
  let left = room
  // The original and the last are shown whatever the budget is.
  for (
    let index = last;
    index >= 0;
    index = left < leastTokens ? Math.min(index - 1, index > original ? original : -1) : index - 1
  ) {
    const span = messages[index]
    if (span === undefined) break
    const isEnd = index === original || index === last
    const tokens = cost(whole(span, isDated || isEnd ? datingAfter(span, messages[index - 1]) : "none"))
    left -= Math.min(tokens, leastTokens)
    if (left >= leastTokens || isEnd) {
      shown.push({ span, tokens, weight: isEnd ? endWeight : 1 })
    }
  }
  return shown.reverse()
}

/** Returns the tokens that all messages need, the long ones by their ends. */
export const leastRoom = (messages: ReadonlyArray<Span>): number =>
  messages.reduce(
    (sum, span) => sum + Math.min(leastTokens, cost(userWordsItem("", datedWords(span, "none")))),
    noteTokens + 2 * leastTokens
  )

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
  const need = messages.reduce((sum, span, index) => sum + cost(whole(span, datingAfter(span, messages[index - 1]))), 0)
  return (budget) => {
    const room = budget - noteTokens
    // Where not all fit whole, dates make room for words.
    const isDated = need <= room
    const shown = shownAmong(messages, whole, room, { isDated, original })
    const allowed = (limit: number, weight: number) => Math.max(leastTokens, limit * weight)
    const fits = (limit: number): boolean =>
      shown.reduce((sum, { tokens, weight }) => sum + Math.min(tokens, allowed(limit, weight)), 0) <= room
    // The largest limit of a single message at which all fit.
    let [low, high] = [0, Math.max(1, room)]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (fits(middle)) low = middle
      else high = middle - 1
    }
    const known = new Set(shown.map(({ span }) => span))
    const leftOut = messages.filter((span) => !known.has(span))
    const clipped = new Set<Span>(leftOut)
    const items: Array<SnapshotItem> = []
    for (const [index, { span, weight }] of shown.entries()) {
      if (index === 1 && leftOut.length > 0) {
        const names = `${leftOut[0]?.entry ?? ""} to ${leftOut.at(-1)?.entry ?? ""}`
        items.push(
          statement(
            "messages left out",
            `${leftOut.length} messages of the user (${names}) are not shown here; recall finds them`
          )
        )
      }
      const dating = isDated || weight > 1 ? datingAfter(span, shown[index - 1]?.span) : "none"
      const { isClipped, item } = itemOf(span, { whole: whole(span, dating), dating, limit: allowed(low, weight) })
      if (isClipped) clipped.add(span)
      const label = isFirst(span) ? "original request" : index === shown.length - 1 ? latestLabel : undefined
      items.push(label === undefined ? item : labelled(label, item))
    }
    return { items, clipped }
  }
}
