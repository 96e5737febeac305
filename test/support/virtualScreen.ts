/**
 * A screen without a terminal behind it: takes what a program writes and holds what is shown. It knows the sequences that the
 * terminal UI uses, no others.
 */
export const virtualScreen = (columns = 80, rows = 24) => {
  let lines: Array<Array<string>> = Array.from({ length: rows }, () => [])
  let row = 0
  let column = 0
  const scrolled: Array<string> = []
  const textOf = (line: ReadonlyArray<string>) =>
    Array.from(line, (cell) => cell ?? " ")
      .join("")
      .trimEnd()
  const wide = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}]/u
  const feed = () => {
    if (row < rows - 1) row += 1
    else {
      scrolled.push(textOf(lines.shift() ?? []))
      lines.push([])
    }
  }
  const put = (character: string) => {
    const width = wide.test(character) ? 2 : 1
    if (column + width > columns) {
      column = 0
      feed()
    }
    const line = lines[row] ?? []
    while (line.length < column) line.push(" ")
    line[column] = character
    if (width === 2) line[column + 1] = ""
    column += width
  }
  const control = (count: number, kind: string) => {
    switch (kind) {
      case "A":
        row = Math.max(0, row - Math.max(1, count))
        break
      case "B":
        row = Math.min(rows - 1, row + Math.max(1, count))
        break
      case "G":
        column = Math.max(0, count - 1)
        break
      case "H":
        row = Math.min(rows, Math.max(1, count)) - 1
        column = 0
        break
      case "K":
        lines[row] = count === 2 ? [] : (lines[row] ?? []).slice(0, column)
        break
      case "J":
        lines = lines.map((line, at) => (at < row ? line : at === row ? line.slice(0, column) : []))
    }
  }
  // oxlint-disable-next-line no-control-regex
  const token = /\u001b\[([?>=<]?)([\d;]*)([A-Za-z])|\u001b\][^\u0007]*\u0007|\u001b_[^\u0007]*\u0007|\u001b.|[^]/gu
  return {
    write: (text: string) => {
      for (const [all, mark, count = "", kind = ""] of text.matchAll(token)) {
        if (kind !== "") {
          if (mark === "") control(Number(count === "" ? 0 : count.split(";")[0]), kind)
        } else if (all === "\n") feed()
        else if (all === "\r") column = 0
        else if (!/^\p{C}/u.test(all)) put(all)
      }
    },
    /** What is shown, without white space at the ends of lines and of the screen. */
    shown: () => lines.map(textOf).join("\n").trimEnd(),
    /** What has scrolled off the screen, and what is on it. */
    everything: () => [...scrolled, ...lines.map(textOf)].join("\n").trimEnd(),
    /** Changes the size. Unlike a real one, the screen does not lay out its lines again. */
    resize: (toColumns: number, toRows: number) => {
      columns = toColumns
      rows = toRows
      lines = Array.from({ length: rows }, (_, at) => lines[at] ?? [])
      row = Math.min(row, rows - 1)
    }
  }
}
