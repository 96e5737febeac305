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
