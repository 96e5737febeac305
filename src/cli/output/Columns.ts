/** Fits text into the columns of a terminal. */

import { wrap } from "../../domain/text/Wrap.ts"
import { columnsOf } from "./Output.ts"

/** The end of a text that stays when it is cut. */
export type KeptEnd = "start" | "end"

/** Cuts a text to a number of columns. */
export const truncate = (text: string, columns: number, keeps: KeptEnd = "start"): string => {
  if (columnsOf(text) <= columns) return text
  const characters = [...text]
  if (keeps === "end") characters.reverse()
  const kept: Array<string> = []
  let width = 0
  for (const character of characters) {
    width += columnsOf(character)
    if (width > columns - 1) break
    kept.push(character)
  }
  return keeps === "end" ? `…${kept.reverse().join("").trimStart()}` : `${kept.join("").trimEnd()}…`
}

const indent = "  "
/** In fewer columns an explanation is hard to read and goes below its name. */
const minMeaningColumns = 22

/** Formats names and meanings: in two columns if there is room, else one below the other. */
export const definitions = (rows: ReadonlyArray<readonly [name: string, meaning: string]>, columns: number): string => {
  const nameWidth = rows.reduce((max, [name]) => Math.max(max, columnsOf(name)), 0)
  const besides = indent.length + nameWidth + indent.length
  const longestWord = rows
    .flatMap(([, meaning]) => meaning.split(" "))
    .reduce((max, word) => Math.max(max, columnsOf(word)), minMeaningColumns)
  const isBeside = columns - besides >= longestWord
  return rows
    .flatMap(([name, meaning]) => {
      const lines = wrap(meaning, columns - (isBeside ? besides : 2 * indent.length), columnsOf)
      return isBeside
        ? lines.map((line, at) => {
            const shown = at === 0 ? name : ""
            return `${indent}${shown}${" ".repeat(nameWidth - columnsOf(shown))}${indent}${line}`
          })
        : [`${indent}${name}`, ...lines.map((line) => `${indent}${indent}${line}`)]
    })
    .join("\n")
}

/**
 * Formats a row for a terminal that is narrower than its table: its name, and indented below it each figure with its title. Empty ones are left
 * out.
 */
export const narrowRow = (
  [name = "", ...values]: ReadonlyArray<string>,
  titles: ReadonlyArray<string>,
  columns: number,
  below: number
): ReadonlyArray<string> => {
  const room = columns - below
  const shown = values.flatMap((value, at) => (value === "" ? [] : [`${titles[at] ?? ""} ${value}`.trim()]))
  // What fits into a line wraps as a whole: a title is not parted from its value.
  const pairs = shown.map((pair) => (columnsOf(pair) > room ? pair : pair.replaceAll(" ", "\u00a0")))
  const lines = wrap(pairs.join("  "), room, columnsOf)
  return [truncate(name, columns), ...lines.map((line) => " ".repeat(below) + line.trim().replaceAll("\u00a0", " "))]
}
