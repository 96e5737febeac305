import { firstUnits, lastUnits } from "../../text/Bytes.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import type { Span } from "../evidence/UserRequests.ts"
import { clippedWordsItem, labelled, type SnapshotItem, statement, userWordsItem } from "../Snapshot.ts"

/** Shows every message of the user in a snapshot: whole where they fit, the long ones by their beginning and end. */

/** The messages of a snapshot, and those that are not shown whole. */
export interface ShownMessages {
  readonly items: Array<SnapshotItem>
  readonly clipped: ReadonlySet<Span>
}

/** Stands above the latest message. */
export const latestLabel = "latest request"

/** The first and the latest message may be this many times as long as the others. */
const weightOf = (index: number, count: number): number => (index === 0 || index === count - 1 ? 4 : 1)

/** Tokens of the tags and the note around a message that is clipped. */
const clipTokens = 48
/** Messages of this size are not clipped: the note would be as long. Where even these do not fit, old messages are left out. */
const leastTokens = 72

const tokens = (item: SnapshotItem): number => estimateText(item.text) + 1

/** Shows a message whole, or clipped so that it takes no more tokens than `limit`. */
const itemOf = (
  span: Span & { readonly isSameDay: boolean },
  limit: number
): { readonly item: SnapshotItem; readonly isClipped: boolean } => {
  const key = `${span.entry}:${span.part}:${span.start}`
  const whole = userWordsItem(key, span)
  if (tokens(whole) <= limit) return { item: whole, isClipped: false }
  // A token has about 3.5 characters of prose.
  for (let chars = Math.max(24, Math.floor((limit - clipTokens) * 3.5)); ; chars = Math.floor(chars * 0.8)) {
    const head = beginningOf(span.text, Math.ceil(chars * 0.7))
    const tail = chars < 120 ? "" : endOf(span.text, Math.floor(chars * 0.3))
    const left = span.text.length - head.length - tail.length
    const item = clippedWordsItem(key, { ...span, text: head }, { chars: left, handle: span.handle }, tail)
    if (tokens(item) <= limit || chars < 32) return { item, isClipped: true }
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

const dayOf = ({ at }: Span): number | undefined => (at === undefined ? undefined : Math.floor(at / 86_400_000))

/** Shows messages, oldest first, within a budget in tokens. `first`: the message with which the conversation began. */
export const showMessages = (
  messages: ReadonlyArray<Span>,
  budget: number,
  first?: Span | undefined
): ShownMessages => {
  const count = messages.length
  const costs = messages.map((span) => tokens(userWordsItem("", { ...span, isSameDay: true })))
  const total = (limit: number, from: number): number =>
    costs.reduce(
      (sum, cost, index) =>
        index > 0 && index < from ? sum : sum + Math.min(cost, Math.max(limit, leastTokens) * weightOf(index, count)),
      0
    )
  // The oldest are left out, but for the first.
  let from = 1
  while (from < count - 1 && total(leastTokens, from) > budget) from += Math.max(1, Math.floor((count - from) / 16))
  let [low, high] = [leastTokens, Math.max(leastTokens, budget)]
  while (low + 1 < high) {
    const middle = Math.floor((low + high) / 2)
    if (total(middle, from) <= budget) low = middle
    else high = middle
  }
  const limit = total(high, from) <= budget ? high : low
  const clipped = new Set<Span>(messages.slice(1, from))
  const items: Array<SnapshotItem> = []
  let day: number | undefined
  for (const [index, span] of messages.entries()) {
    if (index === from && from > 1) {
      const names = `${messages[1]?.entry ?? ""} to ${messages[from - 1]?.entry ?? ""}`
      items.push(
        statement(
          "messages left out",
          `${from - 1} messages of the user (${names}) are not shown here; recall finds them`
        )
      )
    }
    if (index > 0 && index < from) continue
    const { isClipped, item } = itemOf({ ...span, isSameDay: dayOf(span) === day }, limit * weightOf(index, count))
    day = dayOf(span)
    if (isClipped) clipped.add(span)
    const isFirst = first !== undefined && span.entry === first.entry && span.part === first.part
    const label = isFirst ? "original request" : index === count - 1 ? latestLabel : undefined
    items.push(label === undefined ? item : labelled(label, item))
  }
  return { items, clipped }
}
