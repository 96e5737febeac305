import { TextDiff } from "effect"

/** What a change does to a file, for a person and for the model (seed 004's appendix). */
export interface FileDiff {
  /** A unified diff with its header; empty where nothing changes. */
  readonly diff: string
  /** Lines. */
  readonly added: number
  readonly removed: number
}

/** Steps of the search for the smallest diff: beyond them it is still right, only not the smallest. About a tenth of a second. */
const mostSteps = 10_000_000
/** Edits that are searched for at least, however long the texts. */
const leastEdits = 50

/** A name as it stands in a header; one with characters that would break the line is quoted, as git does it. */
const headed = (side: string, name: string): string => {
  const path = `${side}/${name}`
  return /[\p{Cc}"\\]/u.test(path) ? JSON.stringify(path) : path
}

const isBinary = (text: string): boolean => text.includes("\0")

/** The change from one text of a file to another, as `--- a/name`, `+++ b/name` and hunks with three lines around. */
export const fileDiff = (name: string, before: string, after: string): FileDiff => {
  if (before === after) return { diff: "", added: 0, removed: 0 }
  const fromFile = headed("a", name)
  const toFile = headed("b", name)
  if (isBinary(before) || isBinary(after)) {
    return { diff: `Binary files ${fromFile} and ${toFile} differ\n`, added: 0, removed: 0 }
  }
  const lines = (before.length + after.length) / 40 + 1
  const maxEdits = Math.max(leastEdits, Math.floor(mostSteps / lines))
  const edits = TextDiff.lines(before, after, { maxEdits })
  const count = (tag: TextDiff.Edit<string>["_tag"]) =>
    edits.reduce((sum, edit) => (edit._tag === tag ? sum + edit.items.length : sum), 0)
  return {
    diff: TextDiff.unified(edits, { fromFile, toFile }),
    added: count("Insert"),
    removed: count("Delete")
  }
}
