/** A report as text for a terminal. */

import { Effect } from "effect"
import type { Block, Cell, Column, Section } from "../../domain/evaluation/Report.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { wrapLines } from "../../domain/text/Wrap.ts"
import { type KeptEnd, narrowRow, truncate } from "./Columns.ts"
import { kindNames } from "./InspectReport.ts"
import * as Output from "./Output.ts"

/** How much of a report is shown. `--json` has all of it. */
export interface TextLimits {
  /** Columns of the terminal. */
  readonly columns: number
  /** Rows of a table. */
  readonly rows: number
}

/** Columns of a text that goes to no terminal. */
const plainColumns = 100

/** The limits of most reports. */
export const textLimits: TextLimits = { columns: plainColumns, rows: 15 }

/** The limits of most reports, in the width of the terminal. */
export const terminalLimits: Effect.Effect<TextLimits> = Effect.map(Output.tableColumns(plainColumns), (columns) => ({
  ...textLimits,
  columns
}))

const indent = 2
/** Columns of a name beside a longer one, and the least of any. */
const nameColumns = { beside: 36, least: 8 }

/** The text of a cell, and the end of it that stays when it is cut; a text of our own is never cut. */
const textOf = (cell: Cell): { readonly text: string; readonly keeps: KeptEnd | undefined } => {
  if (typeof cell === "string") return { text: cell, keeps: undefined }
  switch (cell._tag) {
    case "Name":
    case "Code":
      return { text: printableLine(cell.text), keeps: cell.keeps ?? "start" }
    case "Entries":
      return { text: cell.ids.join(" "), keeps: "start" }
    case "Message":
      return { text: printableLine(`${cell.id} ${cell.text}`), keeps: "start" }
    case "Kind":
      return {
        text: kindNames[cell.kind] + (cell.tool === undefined ? "" : ` ${printableLine(cell.tool)}`),
        keeps: "start"
      }
    case "Within":
      return { text: `  ${cell.text}`, keeps: undefined }
    case "Bar":
      return { text: "", keeps: undefined }
  }
}

/** Cuts the names of rows so that they fit: the last column with names takes the room that is left. */
const fitted = (
  rows: ReadonlyArray<ReadonlyArray<ReturnType<typeof textOf>>>,
  heads: ReadonlyArray<string>,
  width: number
): ReadonlyArray<ReadonlyArray<string>> => {
  const last = heads.findLastIndex((_, at) => rows.some((row) => row[at]?.keeps !== undefined))
  const cutTo = (row: (typeof rows)[number], columns: (at: number) => number) =>
    row.map(({ keeps, text }, at) => (keeps === undefined ? text : truncate(text, columns(at), keeps)))
  const besides = rows.map((row) => cutTo(row, () => nameColumns.beside).map((text, at) => (at === last ? "" : text)))
  const widths = heads.map((head, at) =>
    Math.max(at === last ? 0 : Output.columnsOf(head), ...besides.map((row) => Output.columnsOf(row[at] ?? "")))
  )
  const left = width - widths.reduce((total, one) => total + one + 2, 0) + 2
  return rows.map((row) => cutTo(row, (at) => (at === last ? Math.max(nameColumns.least, left) : nameColumns.beside)))
}

type TableBlock = Extract<Block, { readonly _tag: "Table" }>

/** The prose of a row stands in a line of its own below it. */
const tableLines = (block: TableBlock, style: Output.Style, limits: TextLimits): ReadonlyArray<string> => {
  const isBeside = ({ form, only }: Column) => only !== "page" && form !== "prose"
  const beside = block.columns.flatMap((column, at) => (isBeside(column) ? [{ ...column, at }] : []))
  const prose = block.columns.flatMap(({ form, only }, at) => (form === "prose" && only !== "page" ? [at] : []))
  const shown = block.rows.slice(0, limits.rows)
  const heads = beside.map(({ head, isName }) => (isName === true ? truncate(printableLine(head), 30, "end") : head))
  const cells = shown.map((row) => beside.map(({ at }) => textOf(row[at] ?? "")))
  const width = limits.columns - indent
  const rows = fitted(cells, heads, width)
  const align = beside.map(({ form }) => (form === "number" ? "r" : "l")).join("")
  const [head = "", ...lines] = Output.table([heads, ...rows], align).split("\n")
  const isNarrow = [head, ...lines].some((line) => Output.columnsOf(line) > width)
  const entries = isNarrow
    ? cells.map((row) =>
        narrowRow(
          row.map(({ text }) => text),
          heads.slice(1),
          width,
          indent
        )
      )
    : lines.map((line) => [line])
  const more = block.rows.length - shown.length
  return [
    ...(isNarrow ? [] : [style.dim(head)]),
    ...entries.flatMap((entry, index) => [
      ...entry,
      ...prose.flatMap((at) => {
        const text = textOf(shown[index]?.[at] ?? "").text
        return text === "" ? [] : [style.dim(`  ${printableLine(text)}`)]
      })
    ]),
    ...(more > 0 ? [`and ${Output.number(more)} more (--json has them all)`] : [])
  ]
}

/** Lines of a sentence that are shown. */
const maxLines = 4

/** The lines of a sentence. */
const wrapped = (text: string, columns: number): ReadonlyArray<string> =>
  wrapLines(truncate(printableLine(text), columns * (maxLines - 1)), columns, Output.columnsOf)
    .split("\n")
    .slice(0, maxLines)
    .map((line) => truncate(line.trim(), columns))

/** The lines of a block. A caption that repeats the title of its section is left out. */
const blockLines = (block: Block, title: string, style: Output.Style, limits: TextLimits): ReadonlyArray<string> => {
  const width = limits.columns - indent
  switch (block._tag) {
    case "Table":
      return [
        ...(block.caption === title ? [] : [truncate(printableLine(block.caption), width)]),
        ...tableLines(block, style, limits)
      ]
    case "Text":
      if (block.only === "page") return []
      return wrapped(block.text, width).map((line) => (block.form === "warning" ? style.warn(line) : line))
    case "Chart":
      return block.values.length < 2
        ? []
        : [Output.sparkline(block.values, Math.min(60, width)), ...wrapped(block.caption, width)]
    case "Shares":
      return []
  }
}

/** The text of a section; tables after the first stand apart. Undefined when a terminal shows nothing of it. */
const sectionText = ({ blocks, title }: Section, style: Output.Style, limits: TextLimits): string | undefined => {
  const lines: Array<string> = []
  for (const block of blocks) {
    if (block._tag === "Table" && lines.length > 0) lines.push("")
    for (const line of blockLines(block, title, style, limits)) lines.push(" ".repeat(indent) + line)
  }
  return lines.length === 0 ? undefined : [style.bold(title), ...lines].join("\n").replace(/ +$/gm, "")
}

/** Returns a report as text. A section without text is left out. */
export const reportText = (
  sections: ReadonlyArray<Section>,
  style: Output.Style = Output.plain,
  limits: TextLimits = textLimits
): string =>
  sections
    .map((section) => sectionText(section, style, limits))
    .filter((text) => text !== undefined)
    .join("\n\n")
