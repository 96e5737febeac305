/** Applies a unified diff to a text, as `patch` does; throws where a line of context or removal does not match. */
export const applyDiff = (before: string, diff: string): string => {
  const lines = before.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const out: Array<string> = []
  let at = 0
  const rows = diff.split("\n")
  for (const [index, row] of rows.entries()) {
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@$/.exec(row)
    const noBreak = rows[index + 1] === "\\ No newline at end of file"
    const line = row.slice(1) + (noBreak ? "" : "\n")
    if (hunk !== null) {
      const start = Number(hunk[1]) - (hunk[2] === "0" ? 0 : 1)
      while (at < start) out.push(lines[at++] ?? "")
    } else if (index < 2 || row === "" || row.startsWith("\\")) continue
    else if (row.startsWith("+")) out.push(line)
    else {
      if (lines[at] !== line) throw new Error(`line ${at + 1} is ${lines[at]}, not ${line}`)
      if (row.startsWith(" ")) out.push(line)
      at += 1
    }
  }
  return [...out, ...lines.slice(at)].join("")
}
