/** Texts on lines of a limited width. */

/**
 * A text of one line set on lines of at most `columns` columns, broken at its spaces; `widthOf` measures. A word that is
 * wider than a line stands on a line of its own, whole, so that it can be copied.
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
