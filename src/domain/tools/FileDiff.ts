import { TextDiff } from "effect"

/** A change of a file, as shown to the user and the model. */
export interface FileDiff {
  /** A unified diff with its header; empty when nothing changes. */
  readonly diff: string
  /** Number of added lines. */
  readonly added: number
  readonly removed: number
}

/** Maximum steps of the search for the smallest diff, about a tenth of a second. Beyond them the diff is correct but not minimal. */
const maxDiffSteps = 10_000_000
/** Minimum number of edits that are searched for, however long the texts. */
const minSearchedEdits = 50

/** Returns a file name for a diff header. A name with characters that would break the line is quoted, as git does. */
const headerName = (side: string, name: string): string => {
  const path = `${side}/${name}`
  return /[\p{Cc}"\\]/u.test(path) ? JSON.stringify(path) : path
}

const isBinary = (text: string): boolean => text.includes("\0")

/** Maximum characters of a line that is compared. The expression by which `TextDiff` splits lines overflows its stack on a few million. */
const maxLineChars = 1_000_000

const hasGiantLine = (text: string): boolean => {
  for (let start = 0; text.length - start > maxLineChars;) {
    const end = text.indexOf("\n", start)
    if (end < 0 || end - start > maxLineChars) return true
    start = end + 1
  }
  return false
}

/** Returns the change between two texts of a file, as `--- a/name`, `+++ b/name` and hunks with three lines of context. */
export const fileDiff = (name: string, before: string, after: string): FileDiff => {
  if (before === after) return { diff: "", added: 0, removed: 0 }
  const fromFile = headerName("a", name)
  const toFile = headerName("b", name)
  if (isBinary(before) || isBinary(after)) {
    return { diff: `Binary files ${fromFile} and ${toFile} differ\n`, added: 0, removed: 0 }
  }
  if (hasGiantLine(before) || hasGiantLine(after)) {
    return { diff: `Files ${fromFile} and ${toFile} differ: a line is too long to compare\n`, added: 0, removed: 0 }
  }
  const lines = (before.length + after.length) / 40 + 1
  const maxEdits = Math.max(minSearchedEdits, Math.floor(maxDiffSteps / lines))
  const edits = TextDiff.lines(before, after, { maxEdits })
  const count = (tag: TextDiff.Edit<string>["_tag"]) =>
    edits.reduce((sum, edit) => (edit._tag === tag ? sum + edit.items.length : sum), 0)
  return {
    diff: TextDiff.unified(edits, { fromFile, toFile }),
    added: count("Insert"),
    removed: count("Delete")
  }
}

/** What a line of a diff is, and its number: in the new file, for a removed line in the old one. */
interface DiffLine {
  readonly kind: "added" | "removed" | "context" | "heading" | "other"
  readonly number?: number | undefined
}

const hunkHeading = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/

/** Numbers the lines of a diff. `heading` is the line above a hunk; what belongs to no hunk is `other`. */
export const numberedDiff = (lines: ReadonlyArray<string>): ReadonlyArray<DiffLine> => {
  // The next numbers, and how many lines of each file the hunk still has.
  let before = 0
  let after = 0
  let beforeLeft = 0
  let afterLeft = 0
  return lines.map((line): DiffLine => {
    const heading = beforeLeft === 0 && afterLeft === 0 ? hunkHeading.exec(line) : null
    if (heading !== null) {
      before = Number(heading[1])
      beforeLeft = Number(heading[2] ?? 1)
      after = Number(heading[3])
      afterLeft = Number(heading[4] ?? 1)
      return { kind: "heading" }
    }
    if (line.startsWith("+") && afterLeft > 0) {
      afterLeft -= 1
      return { kind: "added", number: after++ }
    }
    if (line.startsWith("-") && beforeLeft > 0) {
      beforeLeft -= 1
      return { kind: "removed", number: before++ }
    }
    if ((line.startsWith(" ") || line === "") && beforeLeft > 0 && afterLeft > 0) {
      beforeLeft -= 1
      afterLeft -= 1
      before += 1
      return { kind: "context", number: after++ }
    }
    return { kind: "other" }
  })
}
