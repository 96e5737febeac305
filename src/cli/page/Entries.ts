/**
 * The list of all messages on the page, one row each, to unfold. For a very long conversation some messages are left out, so
 * that a browser can open the page, and the page says which. Time and memory are linear in the conversation, and the size of
 * the page is bounded.
 */

import { Effect, Predicate } from "effect"
import { isCall, isResponse } from "../../domain/content/Content.ts"
import {
  compressions,
  type Conversation,
  entries,
  type Entry,
  type EntryId,
  entryTokens,
  inserted,
  sequenceOf,
  type ShortenedPart,
  view
} from "../../domain/conversation/Conversation.ts"
import { PartKind, partKindOf } from "../../domain/evaluation/PartKind.ts"
import type { TurnCost } from "../../domain/evaluation/TurnCosts.ts"
import { clipped, firstUnits } from "../../domain/text/Bytes.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { dollars } from "../../domain/text/NumberText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { isTime } from "../../domain/text/Time.ts"
import { isPrompt } from "../../domain/transcripts/voice/Voice.ts"
import { number, plural } from "../output/Output.ts"
import { type Html, markup, none, trusted } from "./Markup.ts"
import { type PartLook, partMarkup, partTexts, roomOf } from "./Parts.ts"
import { bar } from "./ReportPage.ts"

/** Maximum number of rows on a page. */
export const rowLimit = 5_000
/**
 * When the limit is exceeded: number of first and last messages that are always shown. The other rows go to the largest
 * messages.
 */
const firstRows = 200
const lastRows = 1_500
/** Maximum characters of text on a page, and the limits per part, of which the highest that fits is used. */
const pageLimit = 8_000_000
const partLimits = [20_000, 8_000, 3_000, 1_000, 300, 0]
/** Maximum markup of rows in which texts are laid out. Those after it have their exact texts alone. */
const laidOutLimit = 4_000_000
/** Maximum characters of a row's summary. */
const wordLimit = 160
/** Maximum number of parts shown one by one: per message and per page. */
const partsOfMessage = 500
const partsOnPage = 40_000

/** The position of a compaction among the rows: after this many entries of the log. */
export interface Cut {
  /** Number of log entries before the compaction. */
  readonly entries: number
  /** Text shown between the rows. */
  readonly text: string
}

interface Row {
  readonly entry: Entry
  /** The position among all messages. */
  readonly index: number
  readonly tokens: number
  readonly turn: number | undefined
  /** The shortened parts; undefined when the message is not in the view. */
  readonly shortened: ReadonlyMap<number, ShortenedPart> | undefined
  readonly isInserted: boolean
}

/** How the rows are shown. */
export interface Look extends Omit<PartLook, "laysOut"> {
  /** The turns, by the message that opens each. */
  readonly turns: ReadonlyMap<EntryId, TurnCost>
}

/** The messages that the page shows. */
export interface Selected {
  /** The shown messages, in the order in which they were added. */
  readonly rows: ReadonlyArray<Row>
  /** Ids of the shown messages. */
  readonly ids: ReadonlySet<EntryId>
  /** Number of all messages, shown or not. */
  readonly messages: number
}

/** What the page leaves out. */
export interface Extent {
  readonly messages: number
  /** Number of messages shown. */
  readonly shown: number
  /** Maximum characters shown of one part. */
  readonly partLimit: number
}

/** Returns all messages in the order in which they were added, with the data of their rows. */
const rowsOf = (conversation: Conversation): ReadonlyArray<Row> => {
  const shown = new Map(view(conversation).map(({ entry, shortened }) => [entry.id, shortened]))
  const added = new Set(inserted(conversation))
  const all = [...entries(conversation), ...added].sort((a, b) => sequenceOf(a.id) - sequenceOf(b.id))
  let turns = 0
  return all.map((entry, index) => {
    const isInserted = added.has(entry)
    const isTurn = !isInserted && isPrompt(entry)
    if (isTurn) turns += 1
    return {
      entry,
      index,
      tokens: entryTokens(entry),
      turn: isTurn ? turns : undefined,
      shortened: shown.get(entry.id),
      isInserted
    }
  })
}

/** Selects the messages to show: all of them, or the first, the last, those in `required` and the largest. */
export const select = (conversation: Conversation, required: ReadonlySet<EntryId>, limit = rowLimit): Selected => {
  const all = rowsOf(conversation)
  const first = Math.min(firstRows, Math.floor(limit / 4))
  const last = Math.min(lastRows, Math.floor(limit / 4))
  const isTaken = new Uint8Array(all.length)
  let room = limit
  const take = (isWanted: (row: Row) => boolean): void => {
    for (const row of all) {
      if (room === 0) return
      if (isTaken[row.index] === 1 || !isWanted(row)) continue
      isTaken[row.index] = 1
      room -= 1
    }
  }
  if (all.length <= limit) take(() => true)
  else {
    take(({ index }) => index < first || index >= all.length - last)
    take(({ entry, isInserted }) => required.has(entry.id) || isInserted)
    const sizes = Float64Array.from(all, ({ index, tokens }) => (isTaken[index] === 1 ? 0 : tokens)).sort()
    const least = room === 0 ? Number.POSITIVE_INFINITY : (sizes.at(-room) ?? 0)
    take(({ tokens }) => tokens > least)
    take(({ tokens }) => tokens === least)
  }
  const rows = all.filter(({ index }) => isTaken[index] === 1)
  return { rows, ids: new Set(rows.map(({ entry }) => entry.id)), messages: all.length }
}

/** Returns the highest limit per part with which all texts fit on the page. */
const partLimitOf = Effect.fnUntraced(function* (rows: ReadonlyArray<Row>) {
  const totals = partLimits.map(() => 0)
  yield* Work.run(
    Work.eachItem(rows, ({ entry }) => {
      for (const [index, part] of entry.content.parts.slice(0, partsOfMessage).entries()) {
        const length = partTexts(entry, index, part).reduce((total, each) => total + roomOf(each), 0)
        for (const [which, limit] of partLimits.entries())
          totals[which] = (totals[which] ?? 0) + Math.min(limit, length)
      }
    })
  )
  return partLimits.find((_, which) => (totals[which] ?? 0) <= pageLimit) ?? 0
})

/** The first characters of a message on one line. */
const words = (entry: Entry): string => {
  let summary = ""
  for (const [index, part] of entry.content.parts.entries()) {
    if (summary.length >= wordLimit) break
    const before = summary === "" ? "" : " · "
    const own = partTexts(entry, index, part)[0]?.text ?? ""
    const text = isCall(part)
      ? `${part.functionCall.name} ${callWords(part.functionCall.args)}`
      : isResponse(part)
        ? `${part.functionResponse.name ?? "tool"}: ${own}`
        : own
    summary += before + printableLine(firstUnits(text, wordLimit * 4))
  }
  return clipped(summary, wordLimit)
}

/** The beginnings of a call's string arguments, such as a path or a command. */
const callWords = (args: unknown): string =>
  Predicate.isObject(args)
    ? Object.values(args)
        .slice(0, 8)
        .flatMap((value) => (typeof value === "string" ? [firstUnits(value, wordLimit)] : []))
        .join(" ")
    : ""

/** Formats a time for the user. UTC, so that the page does not depend on where it is made. */
export const moment = (at: number): string =>
  isTime(at) ? `${new Date(at).toISOString().replace("T", " ").slice(0, -5)} UTC` : ""

/** The author of a message. Results of tools have the user's role but no author. */
const who = (entry: Entry): string => {
  const { parts, role } = entry.content
  if (entry.author !== undefined) return entry.author
  return role === "user" && parts.length > 0 && parts.every(isResponse) ? "tool result" : role
}

/** Facts about a message, in one line above its parts. */
const about = ({ entry, isInserted, shortened, turn }: Row): string =>
  [
    turn === undefined ? "" : `prompt ${number(turn)}`,
    isInserted ? "inserted by a compression" : "",
    entry.author === "environment"
      ? "environment message, not counted"
      : shortened === undefined
        ? "not in the current view"
        : "in the current view",
    entry.model === undefined ? "" : `by ${clipped(entry.model, 200)}`,
    entry.at === undefined ? "" : moment(entry.at),
    entry.origin === undefined ? "" : `line ${number(entry.origin.line)} of the file`
  ]
    .filter((text) => text !== "")
    .join(" · ")

/** The names of the tools that a message calls or answers. */
const toolsOf = (entry: Entry): string =>
  clipped(
    entry.content.parts
      .flatMap(({ functionCall, functionResponse }) => functionCall?.name ?? functionResponse?.name ?? [])
      .join(" · "),
    wordLimit
  )

const rowMarkup = (row: Row, partCount: number, largest: number, limit: number, look: Look & PartLook): Html => {
  const { entry } = row
  const sums = new Map(PartKind.literals.map((kind) => [kind, 0]))
  for (const [index, part] of entry.content.parts.entries()) {
    const kind = partKindOf(entry, part)
    sums.set(kind, (sums.get(kind) ?? 0) + (entry.tokens[index] ?? 0))
  }
  const kinds = new Set(entry.content.parts.map((part) => partKindOf(entry, part)))
  const isInView = row.shortened !== undefined
  const segments = [...sums].map(([kind, tokens]) => ({ of: `k-${kind}${isInView ? "" : " gone"}`, tokens }))
  const parts = entry.content.parts.slice(0, partCount)
  const rest = entry.content.parts.length - parts.length
  const classes = row.turn === undefined ? "message" : "message turn"
  return markup`<li id="${entry.id}" class="${classes}" data-kinds="${[...kinds].join(" ")}" data-view="${isInView ? "in" : "left"}">
<details><summary>
<span class="id">${entry.id}</span><span class="who">${who(entry)}</span>${bar(segments, largest)}
<span class="n">${number(row.tokens)}</span><span class="words">${look.hidesTexts ? toolsOf(entry) : words(entry)}</span>
</summary>
<p class="about">${about(row)}</p>
${parts.map((part, index) => partMarkup(row, index, part, limit, look))}${
    rest > 0 ? markup`<p class="about">… ${plural(rest, "more part")}</p>` : none
  }</details>
</li>
`
}

/** The heading of a turn: the number of its prompt, the words that open it, and what it took. */
const turnMarkup = (turn: TurnCost, hidesTexts: boolean): Html => {
  const facts = [
    plural(turn.messages, "message"),
    ...(turn.calls === 0 ? [] : [plural(turn.calls, "tool call")]),
    plural(turn.tokens, "token"),
    ...(turn.requests === 0 || turn.cost === null || turn.cost === 0 ? [] : [dollars(turn.cost)])
  ]
  const title = hidesTexts || turn.title === "" ? none : markup`: <span>${clipped(turn.title, wordLimit)}</span>`
  return markup`<li class="turn-title"><h3>Prompt ${number(turn.turn)}${title}</h3><p>${facts.join(", ")}</p></li>
`
}

const gap = (from: Row, to: Row): Html => {
  const messages = to.index - from.index - 1
  return messages <= 0
    ? none
    : markup`<li class="gap">… ${plural(messages, "message")} between ${from.entry.id} and ${to.entry.id} not shown</li>
`
}

/** Returns the rows of `selected` as list items, with headings of the turns and the texts of `cuts` between them. */
export const rows = Effect.fnUntraced(function* (
  selected: Selected,
  conversation: Conversation,
  cuts: ReadonlyArray<Cut>,
  look: Look
) {
  const limit = yield* partLimitOf(selected.rows)
  const largest = selected.rows.reduce((max, { tokens }) => Math.max(max, tokens), 0)
  const log = entries(conversation)
  const waiting = cuts.map((cut) => {
    const last = log[cut.entries - 1]
    return { text: cut.text, after: last === undefined ? 0 : sequenceOf(last.id) }
  })
  let next = 0
  const lay = function* (before: number): Generator<Html> {
    for (let cut = waiting[next]; cut !== undefined && cut.after < before; cut = waiting[next]) {
      next += 1
      yield markup`<li class="cut">${cut.text}</li>
`
    }
  }
  const items: Array<Html> = []
  let previous: Row | undefined
  let room = partsOnPage
  let length = 0
  yield* Work.run(
    Work.eachItem(selected.rows, (row) => {
      for (const each of lay(sequenceOf(row.entry.id))) items.push(each)
      if (previous !== undefined) items.push(gap(previous, row))
      const turn = look.turns.get(row.entry.id)
      if (turn !== undefined && turn.turn > 0) items.push(turnMarkup(turn, look.hidesTexts))
      const partCount = Math.min(partsOfMessage, room, row.entry.content.parts.length)
      const item = rowMarkup(row, partCount, largest, limit, { ...look, laysOut: length < laidOutLimit })
      room -= partCount
      length += item.html.length
      items.push(item)
      previous = row
    })
  )
  for (const each of lay(Number.POSITIVE_INFINITY)) items.push(each)
  return {
    markup: trusted(items.map((item) => item.html).join("")),
    extent: { messages: selected.messages, shown: selected.rows.length, partLimit: limit }
  }
})

/** Returns the number of log entries at each compression in force, oldest first. */
export const compressedAt = (conversation: Conversation): ReadonlyArray<number> =>
  compressions(conversation).map((layer) => layer.entries)
