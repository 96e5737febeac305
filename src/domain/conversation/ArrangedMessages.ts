/**
 * Arranges the view of a conversation back into the messages of a caller that keeps them in a form of its own: the gateway's clients, prompts of
 * `effect/ai`, and programs that call `Compress.*`.
 */

import { type MessageCodec, type MessageGroup, shortenedMessages } from "../wire/MessageCodec.ts"
import { type Conversation, entries, type Entry, inserted, sequenceOf, view, type ViewItem } from "./Conversation.ts"
import { writtenContent } from "./Projection.ts"

/** The messages of the caller behind an entry, by index: the first, and the one after the last. */
export interface MessageRange {
  readonly from: number
  readonly to: number
}

/** A message of the caller by its index, or an item that has to be written: a compression inserted or shortened it. */
export type ArrangedMessage = number | ViewItem

/** The pieces from which a view is arranged, in whatever form its messages are held. */
export interface Arrangement<A> {
  /** Instructions before all other messages. */
  readonly leading: ReadonlyArray<A>
  /** Instructions that stood directly before this entry, whether the entry is shown or not. */
  readonly before: (entry: Entry, isShown: boolean) => ReadonlyArray<A>
  /** The messages for an entry of the view. */
  readonly shown: (item: ViewItem) => ReadonlyArray<A>
  /** Instructions at the end, which no other message follows yet. */
  readonly trailing: ReadonlyArray<A>
}

/**
 * Arranges a view. Instructions are never compressed and keep their order: those among messages that left come first, after the leading ones, where
 * every provider accepts them.
 */
export const arrange = <A>(conversation: Conversation, by: Arrangement<A>): Array<A> => {
  const items = view(conversation)
  const shown = new Set(items.map(({ entry }) => entry))
  // A snapshot of an earlier call is a message of the caller, too.
  const left = [...entries(conversation), ...inserted(conversation)]
    .filter((entry) => !shown.has(entry))
    .toSorted((one, other) => sequenceOf(one.id) - sequenceOf(other.id))
  return [
    ...by.leading,
    ...left.flatMap((entry) => by.before(entry, false)),
    ...items.flatMap((item) => [...by.before(item.entry, true), ...by.shown(item)]),
    ...by.trailing
  ]
}

/** Returns the range behind an entry, whose `origin.line` is the number of its range, from 1. Undefined for an entry that no message stands behind. */
export const rangeOf = <R extends MessageRange>(
  { origin }: Entry,
  ranges: ReadonlyArray<R | undefined>
): R | undefined => (origin === undefined ? undefined : ranges[origin.line - 1])

const indexes = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index)

/** Arranges a view among `count` messages of the caller. A message in no range is an instruction, or was not read. */
export const arrangedMessages = (
  conversation: Conversation,
  ranges: ReadonlyArray<MessageRange | undefined>,
  count: number
): ReadonlyArray<ArrangedMessage> => {
  const read = ranges.filter((range) => range !== undefined)
  const [first] = read
  const before = new Map(read.map((range, at) => [range, indexes(read[at - 1]?.to ?? 0, range.from)]))
  return arrange<ArrangedMessage>(conversation, {
    leading: indexes(0, first?.from ?? count),
    before: (entry) => {
      const range = rangeOf(entry, ranges)
      return range === undefined || range === first ? [] : (before.get(range) ?? [])
    },
    shown: (item) => {
      const range = rangeOf(item.entry, ranges)
      return range === undefined || item.shortened.size > 0 ? [item] : indexes(range.from, range.to)
    },
    trailing: indexes(read.at(-1)?.to ?? count, count)
  })
}

/** Writes an item in a dialect: what a compression inserted, or the caller's own messages with shorter parts. `group` are those, among `messages`. */
export const writtenMessages = (
  codec: MessageCodec,
  item: ViewItem,
  group: MessageGroup | undefined,
  messages: ReadonlyArray<unknown>
): ReadonlyArray<unknown> =>
  group === undefined ? [codec.write(writtenContent(item))] : shortenedMessages(messages, group, item.shortened)
