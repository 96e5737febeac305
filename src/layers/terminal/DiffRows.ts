import { stripTerminalSequences, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui"
import { numberedDiff } from "../../domain/tools/FileDiff.ts"
import type { Theme } from "./Theme.ts"

/** The rows of a diff: line numbers, and added and removed lines on a background of their own. */

const reset = "\u001b[0m"

/** A text on a background that fills the row. */
export const filled = (row: string, background: string, width: number): string =>
  background === ""
    ? row.trimEnd()
    : `${background}${row.replaceAll(reset, reset + background)}${" ".repeat(Math.max(0, width - visibleWidth(row)))}\u001b[49m`

/** Returns the rows of the lines of a diff, which may contain text styles. A long line is wrapped beside its number. */
export const diffRows = (
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
