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
const leastTokens = 72
/** Tokens of the headings, and of the note on messages that are left out. */
const noteTokens = 32

const keyOf = ({ entry, part, start }: Span): string => `${entry}:${part}:${start}`

/** Shows a message whole. */
type ShowWhole = (span: Span, isSameDay: boolean) => SnapshotItem

/** Returns a function that shows messages whole and makes each item once. */
const wholeItems = (): ShowWhole => {
  const sameDay = new Map<Span, SnapshotItem>()
  const newDay = new Map<Span, SnapshotItem>()
  return (span, isSameDay) => {
    const made = isSameDay ? sameDay : newDay
    const item = made.get(span) ?? userWordsItem(keyOf(span), { ...span, isSameDay })
    made.set(span, item)
    return item
  }
}

/** Shows a message whole, or clipped so that it takes no more tokens than `limit`. */
const itemOf = (
  span: Span & { readonly isSameDay: boolean },
  whole: SnapshotItem,
  limit: number
): { readonly item: SnapshotItem; readonly isClipped: boolean } => {
  const key = keyOf(span)
  if (cost(whole) <= limit) return { item: whole, isClipped: false }
  // A token has about 3.5 characters of prose.
  for (let chars = Math.max(24, Math.floor((limit - clipTokens) * 3.5)); ; chars = Math.floor(chars * 0.8)) {
    const head = beginningOf(span.text, Math.ceil(chars * 0.7))
    const tail = chars < 120 ? "" : endOf(span.text, Math.floor(chars * 0.3))
    const left = span.text.length - head.length - tail.length
    const item = clippedWordsItem(key, { ...span, text: head }, { chars: left, handle: span.handle }, tail)
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
  original: number
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
    const tokens = cost(whole(span, dayOf(span) === dayOf(messages[index - 1])))
    left -= Math.min(tokens, leastTokens)
    const isEnd = index === original || index === last
    if (left >= leastTokens || isEnd) {
      shown.push({ span, tokens, weight: isEnd ? endWeight : 1 })
    }
  }
  return shown.reverse()
}

/** Returns the tokens that all messages need, the long ones by their ends. */
export const leastRoom = (messages: ReadonlyArray<Span>): number =>
  messages.reduce(
    (sum, span) => sum + Math.min(leastTokens, cost(userWordsItem("", span))),
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
  return (budget) => {
    const room = budget - noteTokens
    const shown = shownAmong(messages, whole, room, original)
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
      const isSameDay = index > 0 && dayOf(span) === dayOf(shown[index - 1]?.span)
      const { isClipped, item } = itemOf({ ...span, isSameDay }, whole(span, isSameDay), allowed(low, weight))
      if (isClipped) clipped.add(span)
      const label = isFirst(span) ? "original request" : index === shown.length - 1 ? latestLabel : undefined
      items.push(label === undefined ? item : labelled(label, item))
    }
    return { items, clipped }
  }
}
