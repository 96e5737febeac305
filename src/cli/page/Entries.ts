import { firstUnits } from "../../domain/Bytes.ts"
import { isCall, isMedia, isResponse, outputText, type Part } from "../../domain/Content.ts"
import {
  compressions,
  type Conversation,
  entries,
  type Entry,
  type EntryId,
  entryTokens,
  inserted,
  sequenceOf,
  type Shortened,
  sourceOf,
  view
} from "../../domain/Conversation.ts"
import { kindOf, opensTurn, printable } from "../../domain/Inspection.ts"
import type { Work } from "../../domain/Work.ts"
import { number, plural } from "../Output.ts"
import { kindNames } from "../Report.ts"
import { bar, kindOrder, swatch } from "./Kinds.ts"
import { clip, type Html, markup, none, preformatted, trusted } from "./Markup.ts"

/**
 * The whole conversation, one row a message, to unfold. Of very long ones some is left out, and the page says what: it has to open
 * in a browser. Time and memory are linear in what there is, and the page is bounded.
 */

/** Rows on a page. */
export const rowLimit = 5_000
/** Of those, how many are the first and the last messages when there are more; the others are the largest. */
const firstRows = 200
const lastRows = 1_500
/** Characters of texts on a page, and of one part: the highest of these that fits. */
const pageLimit = 8_000_000
const partLimits = [20_000, 8_000, 3_000, 1_000, 300, 0]
/** Characters of a row's first words. */
const wordLimit = 160
/** Parts that are told one by one: of one message, and on a page. */
const partsOfMessage = 500
const partsOnPage = 40_000

/** A compaction's place among the rows: behind this many entries of the log. */
export interface Cut {
  readonly entries: number
  readonly text: string
}

/** What one message's row needs. */
interface Row {
  readonly entry: Entry
  /** Its place among all messages. */
  readonly index: number
  readonly tokens: number
  readonly turn: number | undefined
  /** Undefined: not in the view. */
  readonly shortened: ReadonlyMap<number, Shortened> | undefined
  readonly isInserted: boolean
}

/** What stands on the page of a conversation's messages. */
export interface Selected {
  /** In the order in which they came to be; a number stands for that many that were left out. */
  readonly rows: ReadonlyArray<Row>
  readonly ids: ReadonlySet<EntryId>
  readonly messages: number
}

/** What was left out, for the page to say. */
export interface Extent {
  readonly messages: number
  readonly shown: number
  /** Characters of one part that are shown at most. */
  readonly partLimit: number
}

/** Steps between two pauses, and what one of them counts as (Work.ts). */
const stride = 1_000
const stepCost = 200

/** All messages in the order in which they came to be, with what is known of each. */
function* rowsOf(conversation: Conversation): Work<ReadonlyArray<Row>> {
  const shown = new Map<EntryId, Row["shortened"]>()
  for (const [index, item] of view(conversation).entries()) {
    shown.set(item.entry.id, item.shortened)
    if (index % stride === 0) yield stride * stepCost
  }
  const between = [...inserted(conversation)].sort((a, b) => sequenceOf(a.id) - sequenceOf(b.id))
  const rows: Array<Row> = []
  let turns = 0
  const add = (entry: Entry, isInserted: boolean) => {
    const isTurn = !isInserted && opensTurn(entry)
    if (isTurn) turns += 1
    const turn = isTurn ? turns : undefined
    rows.push({
      entry,
      index: rows.length,
      tokens: entryTokens(entry),
      turn,
      shortened: shown.get(entry.id),
      isInserted
    })
  }
  let next = 0
  for (const entry of entries(conversation)) {
    for (
      let each = between[next];
      each !== undefined && sequenceOf(each.id) < sequenceOf(entry.id);
      each = between[next]
    ) {
      add(each, true)
      next += 1
    }
    add(entry, false)
    if (rows.length % stride === 0) yield stride * stepCost
  }
  for (const entry of between.slice(next)) add(entry, true)
  return rows
}

/** Which messages the page shows: all, or the first, the last, those that `wanted` names and the largest. */
export function* select(conversation: Conversation, wanted: ReadonlySet<EntryId>, limit = rowLimit): Work<Selected> {
  const all = yield* rowsOf(conversation)
  const first = Math.min(firstRows, Math.floor(limit / 4))
  const last = Math.min(lastRows, Math.floor(limit / 4))
  const isTaken = new Uint8Array(all.length)
  let room = limit
  const take = function* (isWanted: (row: Row) => boolean): Work<void> {
    for (const row of all) {
      if (row.index % stride === 0) yield stride * stepCost
      if (room === 0) return
      if (isTaken[row.index] === 1 || !isWanted(row)) continue
      isTaken[row.index] = 1
      room -= 1
    }
  }
  if (all.length <= limit) yield* take(() => true)
  else {
    yield* take(({ index }) => index < first || index >= all.length - last)
    yield* take(({ entry, isInserted }) => wanted.has(entry.id) || isInserted)
    const sizes = Float64Array.from(all, ({ index, tokens }) => (isTaken[index] === 1 ? 0 : tokens)).sort()
    yield all.length * stepCost
    const least = room === 0 ? Number.POSITIVE_INFINITY : (sizes.at(-room) ?? 0)
    yield* take(({ tokens }) => tokens > least)
    yield* take(({ tokens }) => tokens === least)
  }
  const rows = all.filter(({ index }) => isTaken[index] === 1)
  return { rows, ids: new Set(rows.map(({ entry }) => entry.id)), messages: all.length }
}

/** A text of a part, and what it is when it is not simply its text. */
interface Piece {
  readonly name: string
  readonly text: string
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const json = (value: unknown): string => JSON.stringify(value, undefined, 2) ?? ""

const callPieces = (args: unknown, source: string | undefined): ReadonlyArray<Piece> => {
  if (source !== undefined) return [{ name: "as it was read", text: source }]
  if (!isRecord(args)) return args === undefined ? [] : [{ name: "", text: json(args) }]
  return Object.entries(args).map(([name, value]) => ({ name, text: typeof value === "string" ? value : json(value) }))
}

const mediaText = (part: Part): string => {
  const { fileData, inlineData } = part
  return inlineData === undefined
    ? `${fileData?.mimeType ?? ""} ${fileData?.fileUri ?? ""}`.trim()
    : `${inlineData.mimeType ?? "bytes"}, ${number(inlineData.data?.length ?? 0)} characters of base64 that are not shown here`
}

/** What a part says. Texts are exactly what they are; arguments are told one by one, the rest as JSON. */
const pieces = (entry: Entry, index: number, part: Part): ReadonlyArray<Piece> => {
  const source = sourceOf(entry, index)
  if (isCall(part)) return callPieces(part.functionCall.args, source)
  if (isResponse(part)) {
    const text = outputText(part)
    return text === undefined
      ? [
          {
            name: source === undefined ? "" : "as it was read",
            text: source ?? json(part.functionResponse.response ?? part)
          }
        ]
      : [{ name: "", text }]
  }
  if (isMedia(part)) return [{ name: "", text: mediaText(part) }]
  if (part.text !== undefined) return [{ name: "", text: part.text }]
  return [{ name: "", text: source ?? json(part) }]
}

/** What a piece takes of the room for its part, in characters: its name is markup too. */
const roomOf = ({ name, text }: Piece): number => text.length + (name === "" ? 0 : 20 + name.length)
const lengthOf = (all: ReadonlyArray<Piece>): number => all.reduce((total, { text }) => total + text.length, 0)

/** The highest limit for a part under which all texts fit on the page. */
function* partLimitOf(rows: ReadonlyArray<Row>): Work<number> {
  const totals = partLimits.map(() => 0)
  for (const { entry } of rows) {
    for (const [index, part] of entry.content.parts.slice(0, partsOfMessage).entries()) {
      const length = pieces(entry, index, part).reduce((total, each) => total + roomOf(each), 0)
      for (const [which, limit] of partLimits.entries()) totals[which] = (totals[which] ?? 0) + Math.min(limit, length)
      yield 200 + length
    }
  }
  return partLimits.find((_, which) => (totals[which] ?? 0) <= pageLimit) ?? 0
}

/** The first characters of a message, on one line. */
const words = (entry: Entry): string => {
  let said = ""
  for (const [index, part] of entry.content.parts.entries()) {
    if (said.length >= wordLimit) break
    const before = said === "" ? "" : " · "
    const own = pieces(entry, index, part)[0]?.text ?? ""
    const text = isCall(part)
      ? `${part.functionCall.name} ${callWords(part.functionCall.args)}`
      : isResponse(part)
        ? `${part.functionResponse.name ?? "tool"}: ${own}`
        : own
    said += before + printable(firstUnits(text, wordLimit * 4))
  }
  return clip(said, wordLimit)
}

/** The beginnings of a call's texts: its path or command, mostly. */
const callWords = (args: unknown): string =>
  isRecord(args)
    ? Object.values(args)
        .slice(0, 8)
        .flatMap((value) => (typeof value === "string" ? [firstUnits(value, wordLimit)] : []))
        .join(" ")
    : ""

const isDate = (at: number): boolean => Math.abs(at) <= 8.64e15

/** A moment as people write it, in UTC: the same page wherever it is made. */
export const moment = (at: number): string =>
  isDate(at) ? `${new Date(at).toISOString().replace("T", " ").slice(0, -5)} UTC` : ""

/** Who a message is from. */
const who = (entry: Entry): string => entry.author ?? entry.content.role

const piece = ({ name, text }: Piece): Html =>
  markup`${name === "" ? none : markup`<p>${clip(name, 200)}</p>`}${preformatted(text)}`

/** A part, its texts together at most `limit` characters long. */
const partMarkup = ({ entry, shortened }: Row, index: number, part: Part, limit: number, recall: string): Html => {
  const kind = kindOf(entry, part)
  const tool = part.functionCall?.name ?? part.functionResponse?.name
  const handle = entry.handles[index]
  const all = pieces(entry, index, part)
  let room = limit
  let more = lengthOf(all)
  const shown = all.flatMap((each) => {
    if (room <= 0) return []
    const text = firstUnits(each.text, room)
    room -= roomOf(each)
    more -= text.length
    return [piece({ name: each.name, text })]
  })
  const replaced = shortened?.get(index)
  const size = plural(entry.tokens[index] ?? 0, "token")
  const shortly = replaced === undefined ? "" : `, shortened to ${number(replaced.tokens)} in the view`
  const named = handle === undefined ? none : markup` · <code>${handle}</code>`
  const called = tool === undefined ? "" : ` ${clip(tool, 200)}`
  const rest = handle === undefined ? none : markup`: <code>${recall} ${handle}</code>`
  return markup`<div class="part">
<p>${swatch(kind)}<b>${kindNames[kind]}${called}</b>, ${size}${shortly}${named}</p>
${shown}${more > 0 ? markup`<p>… ${plural(more, "more character")}${rest}</p>` : none}</div>
`
}

/** Where a message stands, in one line above its parts. */
const about = ({ entry, isInserted, shortened, turn }: Row): string =>
  [
    turn === undefined ? "" : `opens turn ${number(turn)}`,
    isInserted ? "inserted by a compression" : "",
    entry.author === "environment"
      ? "environment message, not counted"
      : shortened === undefined
        ? "not in the current view"
        : "in the current view",
    entry.model === undefined ? "" : `by ${clip(entry.model, 200)}`,
    entry.at === undefined ? "" : moment(entry.at),
    entry.origin === undefined ? "" : `line ${number(entry.origin.line)} of the file`
  ]
    .filter((text) => text !== "")
    .join(" · ")

const rowMarkup = (row: Row, told: number, largest: number, limit: number, recall: string): Html => {
  const { entry } = row
  const sums = new Map(kindOrder.map((kind) => [kind, 0]))
  for (const [index, part] of entry.content.parts.entries()) {
    const kind = kindOf(entry, part)
    sums.set(kind, (sums.get(kind) ?? 0) + (entry.tokens[index] ?? 0))
  }
  const kinds = new Set(entry.content.parts.map((part) => kindOf(entry, part)))
  const isInView = row.shortened !== undefined
  const stretches = [...sums].map(([kind, tokens]) => ({ of: `k-${kind}${isInView ? "" : " gone"}`, tokens }))
  const parts = entry.content.parts.slice(0, told)
  const rest = entry.content.parts.length - parts.length
  const classes = row.turn === undefined ? "message" : "message turn"
  return markup`<li id="${entry.id}" class="${classes}" data-kinds="${[...kinds].join(" ")}" data-view="${isInView ? "in" : "left"}">
<details><summary>
<span class="id">${entry.id}</span><span class="who">${who(entry)}</span>${bar(stretches, largest)}
<span class="n">${number(row.tokens)}</span><span class="words">${words(entry)}</span>
</summary>
<p class="about">${about(row)}</p>
${parts.map((part, index) => partMarkup(row, index, part, limit, recall))}${
    rest > 0 ? markup`<p class="about">… ${plural(rest, "more part")}</p>` : none
  }</details>
</li>
`
}

const gap = (from: Row, to: Row): Html => {
  const messages = to.index - from.index - 1
  return messages <= 0
    ? none
    : markup`<li class="gap">… ${plural(messages, "message")} between ${from.entry.id} and ${to.entry.id} not shown</li>
`
}

/**
 * The rows of `selected` as list items, with what `cuts` says between them. `recall` is the command that gives back the rest of a
 * text when a handle is put behind it.
 */
export function* rows(
  selected: Selected,
  conversation: Conversation,
  cuts: ReadonlyArray<Cut>,
  recall: string
): Work<{ readonly markup: Html; readonly extent: Extent }> {
  const limit = yield* partLimitOf(selected.rows)
  const largest = selected.rows.reduce((most, { tokens }) => Math.max(most, tokens), 0)
  const log = entries(conversation)
  yield log.length
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
  for (const row of selected.rows) {
    items.push(...lay(sequenceOf(row.entry.id)))
    if (previous !== undefined) items.push(gap(previous, row))
    const told = Math.min(partsOfMessage, room, row.entry.content.parts.length)
    const item = rowMarkup(row, told, largest, limit, recall)
    room -= told
    items.push(item)
    previous = row
    yield 2_000 + item.html.length * 5
  }
  items.push(...lay(Number.POSITIVE_INFINITY))
  return {
    markup: trusted(items.map((item) => item.html).join("")),
    extent: { messages: selected.messages, shown: selected.rows.length, partLimit: limit }
  }
}

/** How many entries the log had at each compression that is in force, oldest first. */
export const compressedAt = (conversation: Conversation): ReadonlyArray<number> =>
  compressions(conversation).map((layer) => layer.entries)
