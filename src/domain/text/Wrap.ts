/** Wraps text to a limited width. */

/**
 * Wraps a line of text at its spaces to at most `columns` columns; `widthOf` measures. A word wider than a line stands whole on a
 * line of its own, so that it can be copied.
 */
export const wrap = (
  text: string,
  columns: number,
  widthOf: (text: string) => number = ({ length }) => length
): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  let width = 0
  for (const word of text.split(" ")) {
    const wide = widthOf(word)
    if (line !== "" && width + 1 + wide <= columns) {
      line += ` ${word}`
      width += 1 + wide
    } else {
      if (line !== "") lines.push(line)
      line = word
      width = wide
    }
  }
  return [...lines, line]
}

// oxlint-disable-next-line no-control-regex
const styles = /\u001b\[\d{1,2}m/g
/** The blanks at the beginning of a line, and the styles before them. */
// oxlint-disable-next-line no-control-regex
const indentation = /^(?:\u001b\[\d{1,2}m)* */

/**
 * Wraps each line of a text, which may contain text styles, at its spaces to at most `columns` columns. Lines that fit are unchanged.
 */
export const wrapLines = (
  text: string,
  columns: number,
  widthOf: (text: string) => number = ({ length }) => length
): string => {
  const visible = (part: string) => widthOf(part.replace(styles, ""))
  return text
    .split("\n")
    .flatMap((line) => {
      if (visible(line) <= columns) return [line]
      const lead = indentation.exec(line)?.[0] ?? ""
      const [first = "", ...rest] = wrap(line.slice(lead.length), Math.max(1, columns - visible(lead)), visible)
      if (rest.length === 0) return [line]
      // What goes on is indented a little more.
      const indent = " ".repeat(Math.min(visible(lead) + 2, Math.floor(columns / 2)))
      const others = wrap(rest.join(" ").trimStart(), columns - indent.length, visible)
      return [`${lead}${first}`, ...others.map((part) => `${indent}${part.trimStart()}`)]
    })
    .join("\n")
}

/** Columns of a word after which it is written before its end: scripts without spaces have no shorter ones. */
const heldColumns = 30

/** Columns that text fills on a terminal. Undefined where the terminal does not know its size. */
export const columnsWithin = (columns: number | undefined): number | undefined =>
  columns !== undefined && columns > 0 ? Math.max(40, Math.min(200, columns)) : undefined

/** Columns between the tab stops of a terminal. */
const tabColumns = 8

/**
 * Makes a `wrap` for a text that comes in pieces: what it returns can be written at once. A word waits until it ends or is long, and
 * `undefined` ends the text. Mutable.
 */
export const wrapStream = (
  columns: number,
  widthOf: (text: string) => number = ({ length }) => length
): ((piece: string | undefined) => string) => {
  let word = ""
  let spaces = ""
  let written = 0
  let isInWord = false
  /** The column after the spaces that wait. */
  const indented = (): number => {
    let at = written
    for (const space of spaces) at += space === "\t" ? tabColumns - (at % tabColumns) : 1
    return at
  }
  /** The column after a word: a terminal goes on in its next line where one is too wide. */
  const after = (column: number): number => {
    let at = column + widthOf(word)
    if (at <= columns) return at
    at = column
    for (const character of word) {
      const wide = widthOf(character)
      at = at + wide > columns ? wide : at + wide
    }
    return at
  }
  const takeWord = () => {
    const start = indented()
    const begins = !isInWord && written > 0 && word !== "" && start + widthOf(word) > columns
    const taken = `${begins ? "\n" : spaces}${word}`
    written = after(begins ? 0 : start)
    spaces = ""
    word = ""
    return taken
  }
  return (piece) => {
    let taken = ""
    for (const part of (piece ?? "").match(/\n|[ \t]+|[^\n \t]+/g) ?? []) {
      if (part === "\n") {
        if (word !== "" || indented() <= columns) taken += takeWord()
        taken += "\n"
        spaces = ""
        written = 0
        isInWord = false
      } else if (/^[ \t]/.test(part)) {
        if (word !== "") taken += takeWord()
        spaces += part
        isInWord = false
      } else {
        word += part
        if (!isInWord && widthOf(word) <= heldColumns) continue
        taken += takeWord()
        isInWord = true
      }
    }
    return piece === undefined ? taken + takeWord() : taken
  }
}
