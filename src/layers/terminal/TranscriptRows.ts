/** The rows of what the transcript shows besides answers. */

import { stripTerminalSequences, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui"
import { numberedDiff } from "../../domain/tools/FileDiff.ts"
import type { Card, Detail } from "../../services/terminal/ChatTerminal.ts"
import type { Theme } from "./Theme.ts"

// The rows of a diff: line numbers, and added and removed lines on a background of their own.

const reset = "\u001b[0m"

/** A text on a background that fills the row. */
const filled = (row: string, background: string, width: number): string =>
  background === ""
    ? row.trimEnd()
    : `${background}${row.replaceAll(reset, reset + background)}${" ".repeat(Math.max(0, width - visibleWidth(row)))}\u001b[49m`

/** Returns the rows of the lines of a diff, which may contain text styles. A long line is wrapped beside its number. */
const diffRows = (
  lines: ReadonlyArray<string>,
  language: string,
  theme: Theme,
  width: number
): ReadonlyArray<string> => {
  const plain = lines.map(stripTerminalSequences)
  const numbered = numberedDiff(plain)
  const coloured = theme.diff(lines, language)
  const digits = numbered.reduce((most, { number = "" }) => Math.max(most, String(number).length), 0)
  const isNumbered = digits > 0 && width > digits + 12
  return numbered.flatMap(({ kind, number }, at) => {
    // Red on red is hard to read.
    const line = (kind === "removed" && theme.removedRow !== "" ? plain[at] : coloured[at]) ?? ""
    if (kind === "heading") return at === 0 ? [] : [theme.dim(`${" ".repeat(digits)}⋯`)]
    const background = kind === "added" ? theme.addedRow : kind === "removed" ? theme.removedRow : ""
    const gutter = isNumbered && kind !== "other" ? digits + 1 : 0
    const label = number === undefined ? "" : String(number)
    return wrapTextWithAnsi(line, Math.max(1, width - gutter)).map((row, index) =>
      filled(gutter === 0 ? row : `${theme.dim((index === 0 ? label : "").padStart(digits))} ${row}`, background, width)
    )
  })
}

/** A row that fits the width. The renderer stops the program at one that does not. */
export const fitted = (row: string, width: number): string =>
  visibleWidth(row) > width ? truncateToWidth(row, width, "") : row

const wrapped = (line: string, width: number): ReadonlyArray<string> => {
  const rows = wrapTextWithAnsi(line, width).map((row) => row.trimEnd())
  return rows.length === 0 ? [""] : rows
}

/** Rows of an opened card. Of longer outputs the last lines are shown. */
const maxOpenLines = 500

/** A row that ends in `mark`, cut where both need more than the width. */
const marked = (row: string, mark: string, width: number): string =>
  visibleWidth(row) + visibleWidth(mark) <= width
    ? row + mark
    : truncateToWidth(row, Math.max(1, width - visibleWidth(mark)), "…") + mark

/** Rows of a message of the user that are shown while cards are closed. */
const maxMessageRows = 10

/** The rows of a card. `sign` stands for what runs. */
export const cardRows = (card: Card, isOpen: boolean, theme: Theme, width: number, sign = ""): Array<string> => {
  const room = Math.max(1, width - 2)
  const coloured = (lines: ReadonlyArray<string>) =>
    card.language === undefined
      ? lines.flatMap((line) => wrapped(line, room))
      : diffRows(lines, card.language, theme, room)
  const more = card.more.slice(-maxOpenLines)
  const cut = card.more.length - more.length
  const count = more.length === 0 || isOpen ? "" : theme.dim(" ▸")
  const shown = isOpen
    ? [...(cut > 0 ? [theme.dim(`… ${cut} lines before`)] : []), ...coloured(more)]
    : coloured(card.body)
  return [
    ...(count === "" ? wrapped(`${sign}${card.head}`, width) : [marked(`${sign}${card.head}`, count, width)]),
    ...shown.map((row) => `  ${row}`.trimEnd())
  ]
}

/** The rows of a message of the user. A long one is folded while cards are closed. */
export const messageRows = (text: string, isOpen: boolean, theme: Theme, width: number): Array<string> => {
  const rows = text.split("\n").flatMap((line) => wrapped(line, Math.max(1, width - 2)))
  const isFolded = !isOpen && rows.length > maxMessageRows + 1
  const rest = theme.dim(`… ${rows.length - maxMessageRows} more rows ▸`)
  return [...rows.slice(0, isFolded ? maxMessageRows : undefined), ...(isFolded ? [rest] : [])].map((row, index) =>
    filled(`${index === 0 ? theme.accent(">") : " "} ${row}`, theme.messageRow, width)
  )
}

/** Lines of a text, each wrapped to the width. */
export const wrappedLines = (text: string, width: number) =>
  text
    .replace(/\n$/, "")
    .split("\n")
    .flatMap((line) => wrapped(line, width))

const menuIndent = "   "

/** The rows of a possible answer: what goes on stands below its meaning, not below its letter. */
const optionRows = (line: string, width: number): ReadonlyArray<string> => {
  const [first = "", ...rest] = wrapped(line, width)
  return rest.length === 0
    ? [first]
    : [
        first,
        ...wrapped(rest.join(" "), Math.max(1, width - menuIndent.length)).map(
          (row) => `${menuIndent}${row.trimStart()}`
        )
      ]
}

const contentRows = ({ code, language, lines }: Detail, theme: Theme, width: number): ReadonlyArray<string> => {
  if (language !== undefined) return diffRows(lines, language, theme, width)
  const shown = code === undefined ? lines : (theme.markdown.highlightCode?.(lines.join("\n"), code) ?? lines)
  return shown.flatMap((line) => wrapped(line, width))
}

/** The rows of what a question is about, and of its answers: the one at `marked` is what Enter gives. */
export const detailRows = (detail: Detail, theme: Theme, width: number, marked?: number) => {
  const { head, options } = detail
  const answers = options.map(([letter, meaning], at) =>
    at === marked ? theme.bold(`${letter}▸ ${meaning}`) : `${theme.bold(letter)}  ${meaning}`
  )
  const hint = detail.hint === "" ? "" : theme.dim(` · ${detail.hint}`)
  return {
    head: head === "" ? [] : wrappedLines(head, width),
    rows: contentRows(detail, theme, Math.max(1, width - 2)).map((row) => `  ${row}`),
    foot:
      answers.length === 0
        ? []
        : ["", ...answers.flatMap((line, at) => optionRows(at === answers.length - 1 ? line + hint : line, width))]
  }
}

/** Rows of what a question was about that stay in the conversation. */
const maxDetailRows = 30

/** The rows of what a question was about, as they stay in the conversation: at least the beginning. */
export const keptDetailRows = (detail: Detail, theme: Theme, width: number): Array<string> => {
  const { foot, head, rows } = detailRows(detail, theme, width)
  const isCut = rows.length > maxDetailRows + 1
  const rest = theme.dim(`  … ${rows.length - maxDetailRows} more rows`)
  return [...head, ...rows.slice(0, isCut ? maxDetailRows : undefined), ...(isCut ? [rest] : []), ...foot]
}
