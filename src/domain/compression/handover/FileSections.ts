/** The sections of the snapshot about files: those that were changed, with the latest edits, and those that were read or named. */

import { shortLine } from "../../text/OneLine.ts"
import { type FileState, fileHeadings } from "../evidence/FileHistory.ts"
import { type SectionName, type SnapshotItem, statement } from "../Snapshot.ts"
import { type ListedLine, listedLine, listing, type Material, newestFirst, partOf, type SectionPart } from "./Budget.ts"
import { isTransient } from "./NameIndex.ts"

/** Lines of an edit that are shown, and characters of each. */
const shownEdit = { lines: 10, chars: 140 }
const minEditChars = 24

/** Writes what the latest edit of each file wrote. */
const editItems = ({ evidence }: Material): ReadonlyArray<SnapshotItem> => {
  const latest = new Map(evidence.edits.map((edit) => [edit.path, edit]))
  return newestFirst(evidence.edits)
    .filter((edit) => latest.get(edit.path) === edit && evidence.files.get(edit.path)?.state !== "deleted")
    .flatMap(({ entry, path, text }, index) => {
      const lines = text.replaceAll("\t", "  ").split("\n")
      const shown = lines.filter((line) => line.trim().length > 2).slice(0, shownEdit.lines)
      // A bracket or a word says nothing; a value does (`port = 9090`).
      const whole = shown.join("").trim()
      if (whole.length < minEditChars && !/\w\s*[=:]\s*\S/.test(whole)) return []
      const more = lines.length > shownEdit.lines ? [`… ${lines.length} lines in all`] : []
      return statement(`edit ${entry} ${index}`, `last written to ${path} (${entry}):`, [
        ...shown.map((line) => shortLine(line, shownEdit.chars)),
        ...more
      ])
    })
}

/** Stand above the lists. Of a file that was only named, a command may have printed or changed it. */
const headings = { ...fileHeadings, named: "other files that were named:" }

/** A file in a list: by its name, and with the handle of its content. */
interface ListedFile {
  readonly short: ListedLine
  readonly long: ListedLine
}

const listedFile = ([path, { handle, state }]: readonly [path: string, file: FileState]): ListedFile => {
  const end = state === "created" || state === "deleted" ? ` (${state})` : ""
  return { short: listedLine(path + end), long: listedLine(`${path}${handle === undefined ? "" : ` ${handle}`}${end}`) }
}

/** Lists files: within its share first of all every name, then the handles of the first ones. */
const filePart = (section: SectionName, share: keyof typeof headings, files: ReadonlyArray<ListedFile>): SectionPart =>
  partOf(section, share, (tokens) => {
    let left = tokens - listedLine(headings[share]).tokens - files.reduce((sum, { short }) => sum + short.tokens, 0)
    const lines = files.map(({ long, short }) => {
      const more = long.tokens - short.tokens
      if (more > left) return short
      left -= more
      return long
    })
    return listing(share, headings[share], lines, tokens)
  })

/** Returns the parts about files: the working directory, the changed ones, what the latest edits wrote, those that were read, and the others that were named. */
export const fileParts = (material: Material): ReadonlyArray<SectionPart> => {
  const files = newestFirst(material.evidence.files)
  const changed = files
    .filter(([, { state }]) => state !== "read")
    .sort(([a], [b]) => Number(isTransient(a)) - Number(isTransient(b)))
  const read = files.filter(([, { state }]) => state === "read")
  const namedLines = material.namedFiles.map(listedLine).map((line) => ({ short: line, long: line }))
  const { cwd } = material.options
  const folder = cwd === undefined ? [] : [statement("cwd", `working directory: ${cwd}`)]
  return [
    partOf("artifact_trail", "changed", () => folder),
    filePart("artifact_trail", "changed", changed.map(listedFile)),
    partOf("artifact_trail", "edits", editItems(material)),
    filePart("file_system_state", "read", read.map(listedFile)),
    filePart("file_system_state", "named", namedLines)
  ]
}
