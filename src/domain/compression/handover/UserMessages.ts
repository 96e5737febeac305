/** Shows every message of the user in a snapshot: whole where they fit, the long ones by their beginning and end. */

import { firstUnits, lastUnits } from "../../text/Bytes.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import type { Span } from "../evidence/UserRequests.ts"
import { clippedWordsItem, labelled, type SnapshotItem, statement, userWordsItem } from "../Snapshot.ts"
import { cost } from "./Budget.ts"

/** Stands above the latest message. */
const latestLabel = "latest request"

/** Characters of each end of a long message: with so many it can be read, with so few it can be told from others. */
const endChars = { brief: 44, short: 26 }
/** Messages of this size are whole, as long as there is room for all. The first and the latest have as much of a longer one. */
const wholeTokens = 84
/** The first and the latest message may be this many times as long as the others. */
const endWeight = 4
/** Tokens of what stands around the ends of a clipped message. */
const clipTokens = 20
/** Tokens of the headings, and of the note on messages that are left out. */
const noteTokens = 40
/** A cut moves to the next blank, if it is not farther. */
const maxWordChars = 12

/** A way to show a message, and what it takes. */
interface Form {
  readonly item: SnapshotItem
  readonly tokens: number
}

/** A message, whole and in the least form in which it is shown. */
interface Message {
  readonly span: Span
  /** Whether it is the first or the latest message. */
  readonly isEnd: boolean
  readonly whole: Form
  readonly least: Form
}

const keyOf = ({ entry, part, start }: Span): string => `${entry}:${part}:${start}`

/** One that stands alone has its own tags. */
const formOf = (item: SnapshotItem, isEnd: boolean): Form => ({
  item,
  tokens: isEnd ? estimateText(item.text) + 1 : cost(item)
})

/** Shows the beginning and the end of a message, in so many characters, or the whole where that takes no more. */
const clipped = ({ isEnd, span, whole }: Omit<Message, "least">, chars: number): Form => {
  const ending = Math.max(Math.min(endChars.brief, Math.floor(chars / 2)), Math.floor(chars * 0.3))
  const tail = endOf(span.text, ending)
  const head = beginningOf(span.text, chars - ending)
  const left = span.text.length - head.length - tail.length
  if (left <= 0) return whole
  // The beginning of a short one finds it, too.
  const handle = isEnd || chars > 4 * endChars.brief ? span.handle : undefined
  const form = formOf(clippedWordsItem(keyOf(span), { ...span, text: head }, { chars: left, handle }, tail), isEnd)
  return form.tokens < whole.tokens ? form : whole
}

/** Shows as much of a message as fits so many tokens, and at least as much as a form of it does. */
const clippedTo = (message: Omit<Message, "least">, tokens: number, least?: Form): Form => {
  if (message.whole.tokens <= tokens) return message.whole
  // A token has about 4 characters of prose.
  for (let chars = Math.floor((tokens - clipTokens) * 4); ; chars = Math.floor(chars * 0.85)) {
    if (chars <= 2 * endChars.brief) return least ?? clipped(message, 2 * endChars.short)
    const form = clipped(message, chars)
    if (form.tokens <= tokens) return form
  }
}

/** Returns the least form of a message: whole, or by its ends in so many characters. */
const leastOf = (message: Omit<Message, "least">, length: "whole" | "brief" | "short"): Form => {
  if (length === "whole") return message.whole
  if (message.isEnd || (length === "brief" && message.whole.tokens <= wholeTokens))
    return clippedTo(message, wholeTokens)
  return clipped(message, 2 * endChars[length])
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, each) => total + each, 0)

/** Returns the tokens of messages in their least forms. */
const leastTokens = (messages: ReadonlyArray<Message>): number => sum(messages.map(({ least }) => least.tokens))

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

/**
 * Returns how each message is shown: first the least of all, then as many whole messages as possible, the short ones first,
 * because the ends of a message say less than twice as much as the whole of one half as long. The rest goes to the others.
 */
const formsOf = (messages: ReadonlyArray<Message>, room: number): ReadonlyMap<Message, Form> => {
  const forms = new Map<Message, Form>()
  const open = messages
    .map((message) => ({ message, weight: message.isEnd ? endWeight : 1 }))
    .sort((a, b) => a.message.whole.tokens / a.weight - b.message.whole.tokens / b.weight)
  let left = Math.max(0, room - leastTokens(messages))
  let weights = sum(open.map(({ weight }) => weight))
  for (const { message, weight } of open) {
    const { least, whole } = message
    const more = whole.tokens - least.tokens
    const form = clippedTo(message, least.tokens + (more <= left ? more : Math.floor((left * weight) / weights)), least)
    forms.set(message, form)
    left -= form.tokens - least.tokens
    weights -= weight
  }
  return forms
}

/** Characters of a question above its answer. */
const maxQuestionChars = 80

/** The heading of an answer to a question; undefined for a request. */
const answerLabel = ({ entry, question }: Span): string | undefined => {
  if (question === undefined) return undefined
  // What follows a question explains it.
  const asked = /^[^?]*\?/.exec(question)?.[0] ?? question
  // A heading has no other characters; a question may be a program's words.
  const words = firstUnits(asked.replace(/[^\p{L}\p{N}_',.?-]+/gu, " ").trim(), maxQuestionChars).trim()
  return words === "" ? `answer to a question (${entry})` : `answer to the question ${words} (${entry})`
}

/** Returns the messages with the times at which they were written; one on the day of the one before has its time alone. */
const dated = (messages: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  const dayOf = ({ at }: Span) => (at === undefined ? undefined : Math.floor(at / 86_400_000))
  return messages.map((span, at) => {
    const before = messages[at - 1]
    return { ...span, isSameDay: before !== undefined && dayOf(before) === dayOf(span) }
  })
}

/** The messages of the user, to be shown. */
export interface ShownMessages {
  /** Shows them, oldest first, within a budget in tokens. */
  readonly show: (budget: number) => Array<SnapshotItem>
  /**
   * Returns the tokens in which all messages can be shown with readable ends, at most `maxTokens`; undefined when they do not fit
   * `maxTokens` even with the shortest ends, so that old messages have to be left out.
   */
  readonly need: (maxTokens: number) => number | undefined
}

/** Prepares messages to be shown. `original`: the message with which the conversation began. */
export const shownMessages = (spans: ReadonlyArray<Span>, original?: Span | undefined): ShownMessages => {
  const isOriginal = ({ entry, part }: Span): boolean => entry === original?.entry && part === original.part
  const begin = Math.max(0, spans.findIndex(isOriginal))
  const latest = spans.findLastIndex(({ question }) => question === undefined)
  const sized = (all: ReadonlyArray<Span>, length: "whole" | "brief" | "short") =>
    all.map((span, at): Message => {
      const isEnd = at === begin || at === spans.length - 1
      const message = { span, isEnd, whole: formOf(userWordsItem(keyOf(span), span), isEnd) }
      return { ...message, least: leastOf(message, length) }
    })
  // Where not all fit whole, times make room for words.
  const undated = spans.map((span) => ({ ...span, at: undefined }))
  const [whole, brief, short] = [sized(dated(spans), "whole"), sized(undated, "brief"), sized(undated, "short")]
  const show = (budget: number): Array<SnapshotItem> => {
    const room = budget - noteTokens
    const messages = [whole, brief].find((all) => leastTokens(all) <= room) ?? short
    // As many of the latest as fit when each is as small as it may be.
    let left = room - leastTokens(messages.filter(({ isEnd }) => isEnd))
    const from = messages.findLastIndex(({ isEnd, least }) => !isEnd && (left -= least.tokens) < 0)
    const forms = formsOf(
      messages.filter(({ isEnd }, at) => isEnd || at > from),
      room
    )
    const items = messages.flatMap((message, at) => {
      const item = forms.get(message)?.item
      if (item === undefined) return []
      const label = isOriginal(message.span)
        ? "original request"
        : at === latest
          ? latestLabel
          : answerLabel(message.span)
      return [label === undefined ? item : labelled(label, item)]
    })
    const hidden = messages.filter(({ isEnd }, at) => !isEnd && at <= from)
    if (hidden.length > 0) items.splice(1, 0, leftOutNote(hidden))
    return items
  }
  const need = (maxTokens: number): number | undefined =>
    leastTokens(short) + noteTokens <= maxTokens ? Math.min(maxTokens, leastTokens(brief) + noteTokens) : undefined
  return { show, need }
}

const leftOutNote = (hidden: ReadonlyArray<Message>): SnapshotItem =>
  statement(
    "messages left out",
    `${hidden.length} messages of the user (${hidden[0]?.span.entry} to ${hidden.at(-1)?.span.entry}) are not shown here; recall finds them`
  )
