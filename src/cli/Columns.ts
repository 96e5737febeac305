import { wrap } from "../domain/Wrap.ts"
import { columnsOf } from "./Output.ts"

/** What has to fit into the columns of a terminal. */

/** A text cut to a number of columns. */
export const cut = (text: string, columns: number): string => {
  if (columnsOf(text) <= columns) return text
  let width = 0
  let kept = ""
  for (const character of text) {
    width += columnsOf(character)
    if (width > columns - 1) break
    kept += character
  }
  return `${kept.trimEnd()}…`
}

const indent = "  "
/** An explanation in fewer columns than this is hard to read: it goes below what it explains. */
const readable = 22

/** Names and what they mean: in two columns where there is room, else one below the other. */
export const definitions = (rows: ReadonlyArray<readonly [name: string, meaning: string]>, columns: number): string => {
  const nameWidth = rows.reduce((most, [name]) => Math.max(most, columnsOf(name)), 0)
  const besides = indent.length + nameWidth + indent.length
  const longestWord = rows
    .flatMap(([, meaning]) => meaning.split(" "))
    .reduce((most, word) => Math.max(most, columnsOf(word)), readable)
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
