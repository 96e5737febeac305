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

/** What a line that goes on is indented by: what the line is indented by, and a little more. */
const hanging = (line: string, columns: number): string => {
  const indent = /^ */.exec(line.replace(styles, ""))?.[0] ?? ""
  return " ".repeat(Math.min(indent.length + 2, Math.floor(columns / 2)))
}

/** Wraps each line of a text, which may contain text styles, at its spaces to at most `columns` columns. Lines that fit are unchanged. */
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
      const indent = hanging(line, columns)
      const [first = "", ...rest] = wrap(line, columns, visible)
      if (rest.length === 0) return [line]
      return [
        first,
        ...wrap(rest.join(" "), columns - indent.length, visible).map((part) => `${indent}${part.trimStart()}`)
      ]
    })
    .join("\n")
}
