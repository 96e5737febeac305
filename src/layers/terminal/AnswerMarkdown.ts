/** What an answer's Markdown needs before and after it is drawn: parts that later text does not change, and aligned tables. */

import { Marked, sliceByColumn, stripTerminalSequences, type Token, type Tokens } from "@earendil-works/pi-tui"

/** A code block that grows beyond this is drawn in parts. */
const maxPartLines = 200

const parser = new Marked()

/** A list with this many items is drawn in parts. */
const maxListItems = 100
/** Items that stay in the part of a list that can still change. */
const openListItems = 10

/** Splits a text that begins with a long list before the last items. The rest goes on counting where the first part ends. */
const settledList = (text: string, { items, ordered, start }: Tokens.List) => {
  const kept = items.length - openListItems
  const done = items
    .slice(0, kept)
    .map(({ raw }) => raw)
    .join("")
  if (items.length < maxListItems || !text.startsWith(done)) return undefined
  const rest = text.slice(done.length)
  const next = (typeof start === "number" ? start : 1) + kept
  return { done, rest: ordered ? rest.replace(/^(\s*)\d+/, (_, indent: string) => `${indent}${next}`) : rest }
}

/** Markdown split into a part that no later text changes, and the rest. */
export interface Split {
  readonly done: string
  readonly rest: string
  /** The block that the split is in; undefined between blocks. */
  readonly openBlock: "code" | "list" | undefined
}

/**
 * Splits Markdown before the part that later text can change; undefined where it cannot be split. A split list goes on below
 * without a blank row where its items have none: then `openBlock` is `list`.
 */
export const settled = (text: string): Split | undefined => {
  const tokens = parser.lexer(text).filter(({ raw }) => raw !== "")
  const tail = tokens.at(-1)
  const before = tokens
    .slice(0, -1)
    .map(({ raw }) => raw)
    .join("")
  if (before.trim() !== "") return { done: before, rest: text.slice(before.length), openBlock: undefined }
  if (isList(tail)) {
    const split = before === "" ? settledList(text, tail) : undefined
    return split === undefined ? undefined : { ...split, openBlock: tail.loose ? undefined : "list" }
  }
  const lines = text.split("\n")
  if (tail?.type !== "code" || lines.length < maxPartLines * 2) return undefined
  const fence = /^ {0,3}(`{3,}|~{3,})[^\n]*/.exec(lines[0] ?? "")
  if (fence === null) return undefined
  return {
    done: `${lines.slice(0, maxPartLines).join("\n")}\n${fence[1]}\n`,
    rest: `${fence[0]}\n${lines.slice(maxPartLines).join("\n")}`,
    openBlock: "code"
  }
}

const isList = (token: Token | undefined): token is Tokens.List => token?.type === "list"
const isTable = (token: Token): token is Tokens.Table => token.type === "table"

/** A table with a column that is aligned to the right or centred. */
const alignedTable = /^[ \t>]*\|?[ \t:|-]*-:[ \t]*(?:\||$)/m

/** A cell with its blanks where its column is aligned. */
const alignedCell = (cell: string, align: "center" | "left" | "right" | null | undefined): string => {
  // oxlint-disable-next-line no-control-regex
  const [, text = "", blanks = "", codes = ""] = /^(.*?)( *)((?:\u001b\[[\d;]*m)*)$/.exec(cell) ?? []
  if (blanks === "" || (align !== "right" && align !== "center")) return cell
  const before = align === "right" ? blanks.length : Math.floor(blanks.length / 2)
  // oxlint-disable-next-line no-control-regex
  return `${text.replace(/^(?:\u001b\[[\d;]*m)*/, (styles) => styles + " ".repeat(before))}${blanks.slice(before)}${codes}`
}

// oxlint-disable-next-line no-control-regex
const blankBefore = /^((?:\u001b\[[\d;]*m)*) /

/** Aligns the columns of drawn tables as their delimiter rows say: the renderer puts every cell to the left. */
export const aligned = (rows: ReadonlyArray<string>, text: string): ReadonlyArray<string> => {
  if (!alignedTable.test(text)) return rows
  const tables: Array<Tokens.Table> = []
  parser.walkTokens(parser.lexer(text), (token) => {
    if (isTable(token)) tables.push(token)
  })
  let isCode = false
  let open: { readonly indent: number; readonly widths: ReadonlyArray<number>; readonly of: Tokens.Table } | undefined
  return rows.map((row) => {
    const plain = stripTerminalSequences(row).trimEnd()
    if (/^\s*(?:│ )*```/.test(plain)) isCode = !isCode
    if (isCode) return row
    const top = /^((?:│ | )*)┌─(─*(?:─┬──*)*)─┐$/.exec(plain)
    if (top !== null) {
      const widths = (top[2] ?? "").split("─┬─").map(({ length }) => length)
      const [of] = tables
      open = of?.align.length === widths.length ? { indent: (top[1] ?? "").length, widths, of } : undefined
      if (open !== undefined) tables.shift()
      return row
    }
    if (open === undefined) return row
    if (plain.startsWith("└", open.indent)) open = undefined
    if (open === undefined || !plain.startsWith("│ ", open.indent)) return row
    const { indent, of, widths } = open
    let at = indent + 2
    const cells = widths.map((width, column) => {
      // With the blanks around it: a style that ends or begins at the cell belongs to it.
      const cell = sliceByColumn(row, at - 1, width + 2)
        .replace(blankBefore, "$1")
        .replace(/ $/, "")
      at += width + 3
      return alignedCell(cell, of.align[column])
    })
    return `${sliceByColumn(row, 0, indent)}│ ${cells.join(" │ ")} │`
  })
}
