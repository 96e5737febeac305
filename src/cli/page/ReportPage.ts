/** A report as markup of a page, with the bars and colours of the kinds of parts. */

import { Effect } from "effect"
import { EntryId } from "../../domain/conversation/Conversation.ts"
import type { PartKind } from "../../domain/evaluation/PartKind.ts"
import type { Block, Cell, Column, Section, Segment } from "../../domain/evaluation/Report.ts"
import { clipped } from "../../domain/text/Bytes.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { inputName } from "../../services/transcripts/TranscriptError.ts"
import { kindNames } from "../output/InspectReport.ts"
import { number, share } from "../output/Output.ts"
import type { Chart } from "./Charts.ts"
import { type Html, markup, none, trusted } from "./Markup.ts"

/** The colour square of a kind. */
export const swatch = (kind: PartKind): Html => markup`<i class="swatch k-${kind}"></i>`

/** A segment of a bar. */
export interface BarSegment {
  /** The class that colours the segment. */
  readonly of: string
  /** Tokens of the segment. */
  readonly tokens: number
}

const percent = (part: number, whole: number): string => {
  const value = (part / whole) * 100
  return Number.isFinite(value) ? String(Math.round(Math.min(100, Math.max(0, value)) * 100) / 100) : "0"
}

/**
 * Draws segments side by side; `whole` is the full width. The bar repeats numbers beside it and is hidden from screen readers.
 */
export const bar = (segments: ReadonlyArray<BarSegment>, whole: number, name = "bar"): Html => {
  let before = 0
  const rects = segments.flatMap(({ of, tokens }) => {
    if (!(tokens > 0) || !(whole > 0)) return []
    const from = percent(before, whole)
    before += tokens
    return [markup`<rect class="${of}" x="${from}%" width="${percent(tokens, whole)}%" height="100%" />`]
  })
  return markup`<svg class="${name}" aria-hidden="true">${rects}</svg>`
}

/** Links to a message on the page. A message that is not on the page is shown as plain text. */
export type Link = (entry: EntryId) => Html

/** A page without messages. */
export const plainLink: Link = (entry) => markup`${entry}`

/** What a page adds to a report: links to its messages, and its charts by id. */
export interface PageParts {
  readonly link: Link
  readonly charts: ReadonlyMap<string, Html>
}

/** Returns the last part of the name of a report's file. */
export const baseName = (file: string): string =>
  printableLine(inputName(file).split(/[\\/]/).at(-1) ?? "") || "conversation"

/** Characters of a name on a page. */
const maxNameChars = 300

const segment = ({ isGone, of, tokens }: Segment) => ({
  of: `${of === "used" ? "plain" : `k-${of}`}${isGone === true ? " gone" : ""}`,
  tokens
})

/** Markup for a name from a transcript, which can be long and without a place to break. */
const nameOf = (text: string, length = maxNameChars): Html => markup`<span class="any">${clipped(text, length)}</span>`

const cellOf = (cell: Cell, link: Link): Html => {
  if (typeof cell === "string") return markup`${cell}`
  switch (cell._tag) {
    case "Name":
      return nameOf(cell.text)
    case "Code":
      return markup`<code>${nameOf(cell.text)}</code>`
    case "Within":
      return markup`<span class="any within">${cell.text}</span>`
    case "Entries": {
      const rest = (cell.count ?? cell.ids.length) - cell.ids.length
      return markup`${cell.ids.map((id) => markup`${link(id)} `)}${rest > 0 ? `and ${number(rest)} more` : ""}`
    }
    case "Message":
      return markup`${link(cell.id)} ${cell.text === "" ? none : nameOf(cell.text, 60)}`
    case "Kind":
      return markup`${swatch(cell.kind)}${kindNames[cell.kind]}${cell.tool === undefined ? none : markup` ${nameOf(cell.tool, 60)}`}`
    case "Bar":
      return bar(cell.segments.map(segment), cell.whole)
  }
}

const classOf = ({ form, isExtra, isName }: Column): string =>
  [
    ...(form === "number" ? ["n"] : []),
    ...(form === "preview" ? ["text"] : []),
    ...(form === "prose" ? ["prose"] : []),
    ...(form === "message" ? ["begins"] : []),
    ...(form === "bar" ? ["chart"] : []),
    ...(isName === true ? ["any"] : []),
    ...(isExtra === true ? ["extra"] : [])
  ].join(" ")

/** Markup for a table. The first cell of each row is its heading; a caption that repeats the title is for screen readers alone. */
const tableOf = (block: Extract<Block, { readonly _tag: "Table" }>, title: string, link: Link): Html => {
  const columns = block.columns.flatMap((column, at) => (column.only === "terminal" ? [] : [{ ...column, at }]))
  const heads = columns.map((column) =>
    column.form === "bar"
      ? markup`<th scope="col"><span class="unseen">bar</span></th>`
      : markup`<th scope="col" class="${classOf(column)}">${clipped(column.head, 60)}</th>`
  )
  const body = block.rows.slice(0, block.pageRows).map((row) => {
    const cells = columns.map((column, index) => {
      const shown = cellOf(row[column.at] ?? "", link)
      return index === 0 ? markup`<th scope="row">${shown}</th>` : markup`<td class="${classOf(column)}">${shown}</td>`
    })
    return markup`<tr>
      ${cells}
    </tr> `
  })
  const more = block.rows.length - body.length
  return markup`<div class="wrap">
    <table>
      <caption class="${block.caption === title ? "unseen" : ""}">
        ${block.caption}
      </caption>
      <thead>
        <tr>
          ${heads}
        </tr>
      </thead>
      <tbody>
        ${body}
      </tbody>
    </table>
  </div>
  ${more > 0 ? markup`<p class="note">and ${number(more)} more (--json has them all)</p>` : none} `
}

/** Markup for a sentence: names in backticks are code, and ids of messages are links. */
export const sentence = (text: string, link: Link): Html =>
  markup`${text
    .split("`")
    .flatMap((part, at) =>
      at % 2 === 1
        ? [markup`<code>${part}</code>`]
        : part
            .split(/\b(e\d+)\b/)
            .map((piece, index) => (index % 2 === 1 ? link(EntryId.make(piece)) : markup`${piece}`))
    )}`

const sharesOf = ({ kinds, whole }: Extract<Block, { readonly _tag: "Shares" }>): Html =>
  markup`<figure>
      ${bar(kinds.map(segment), whole, "strip")}
      <ul class="legend">
        ${kinds.map(({ of, tokens }) => markup`<li>${swatch(of)}${kindNames[of]} ${share(tokens, whole)}</li>`)}
      </ul>
    </figure> `

const blockOf = (block: Block, title: string, { charts, link }: PageParts): Html => {
  switch (block._tag) {
    case "Table":
      return tableOf(block, title, link)
    case "Text":
      if (block.only === "terminal") return none
      return block.form === "note"
        ? markup`<p class="note">${sentence(block.text, link)}</p>`
        : markup`<p>${sentence(block.text, link)}</p>`
    case "Chart":
      return charts.get(block.id) ?? none
    case "Shares":
      return sharesOf(block)
  }
}

/** Markup for a section of a report; empty when the page shows nothing of it. */
const sectionPage = ({ blocks, id, title }: Section, parts: PageParts): Html => {
  const body = blocks.map((block) => blockOf(block, title, parts)).filter((block) => block !== none)
  return body.length === 0
    ? none
    : markup`<section id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${body}
  </section> `
}

/** The sections of a report on a page, with their names for its table of contents. */
export const reportPage = (
  sections: ReadonlyArray<Section>,
  parts: PageParts
): { readonly contents: ReadonlyArray<readonly [id: string, name: string]>; readonly main: ReadonlyArray<Html> } => {
  const shown = sections.map((one) => ({ one, html: sectionPage(one, parts) })).filter(({ html }) => html !== none)
  return { contents: shown.map(({ one }) => [one.id, one.short ?? one.title]), main: shown.map(({ html }) => html) }
}

/** Draws a chart for wide and for narrow pages, which show the one that fits, with its caption. */
export const figure = Effect.fnUntraced(function* (chart: Chart, caption: Html) {
  const charts = yield* Effect.promise(() => import("./Charts.ts"))
  const wide = charts.draw(chart, "wide")
  yield* Effect.yieldNow
  const narrow = charts.draw(chart, "narrow")
  return markup`<figure>
    ${trusted(wide)}${trusted(narrow)}
    <figcaption>${caption}</figcaption>
  </figure> `
})
