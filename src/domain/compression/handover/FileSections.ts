import { shortLine } from "../../text/OneLine.ts"
import { changedHeading, type FileState, listedFile, readHeading } from "../evidence/FileHistory.ts"
import { type SnapshotItem, statement } from "../Snapshot.ts"
import {
  byFolder,
  type ListedLine,
  listedLine,
  listing,
  type Material,
  newestFirst,
  ofEntry,
  within,
  type Writer
} from "./Budget.ts"
import { carriedTo } from "./CarriedStatements.ts"
import { isTransient } from "./NameIndex.ts"

/** The sections of the snapshot about files: those that were changed, with the latest edits, and those that were read or named. */

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

const fileText = (path: string, file: FileState): string => {
  const counts = [
    file.changes > 0 ? plural(file.changes, "change") : "",
    file.reads > 0 && file.changes === 0 ? plural(file.reads, "read") : ""
  ].filter((text) => text !== "")
  const notes = [counts.join(", "), ofEntry(file.entry, file.handle)].filter((text) => text !== "")
  return `${path}: ${file.state} (${notes.join("; ")})`
}

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

/** A file in a list: by its name, and with the handle of its content. */
interface NamedFile {
  readonly short: ListedLine
  readonly long: ListedLine
}

const headingTokens = 8

/** Returns the lines of files within a budget: first of all every name, then handles for the first ones. */
const withHandles = (files: ReadonlyArray<NamedFile>, budget: number): ReadonlyArray<ListedLine> => {
  let left = budget - files.reduce((sum, { short }) => sum + short.tokens, 0)
  return files.map(({ long, short }) => {
    const more = long.tokens - short.tokens
    if (more > left) return short
    left -= more
    return long
  })
}

/** Writes the changed files, then what the latest edits wrote. */
export const artifactItems = (material: Material): Writer => {
  const { evidence, options } = material
  const changed = newestFirst(evidence.files)
    .filter(([, file]) => file.state !== "read")
    .sort(([a], [b]) => Number(isTransient(a)) - Number(isTransient(b)))
  const files = [
    ...(options.cwd === undefined ? [] : [statement("cwd", `working directory: ${options.cwd}`)]),
    ...changed.map(([path, file]) => statement(path, fileText(path, file)))
  ]
  const names = changed.map(([path, file]) => ({
    path,
    short: listedLine(listedFile(path, file)),
    long: listedLine(listedFile(path, file, { withHandle: true }))
  }))
  const edits = editItems(material)
  const carried = carriedTo(evidence, "artifact_trail")
  return (share) => {
    const artifacts = byFolder(within(files, share("changed")), ({ key }) => key)
    // Every changed file is named, whatever else can be said of it.
    const named = new Set(artifacts.map(({ key }) => key))
    const others = names.filter(({ path }) => !named.has(path))
    const budget = share.least("changed")
    artifacts.push(...listing("changed", changedHeading, withHandles(others, budget - headingTokens), budget))
    artifacts.push(...within(edits, share("edits")))
    artifacts.push(...within(carried(artifacts), share("carried")))
    return artifacts
  }
}

/** It says no more than that: a command may have printed or changed any of them. */
const namedHeading = "other files that were named:"

/** Writes the files that were read, then the others that were named. */
export const fileItems = ({ evidence, named }: Material): Writer => {
  const read = newestFirst(evidence.files)
    .filter(([, file]) => file.state === "read")
    .map(([path, file]) => {
      const short = listedLine(path)
      return { short, long: file.handle === undefined ? short : listedLine(`${path} ${file.handle}`) }
    })
  const namedLines = named.map(listedLine)
  const carried = carriedTo(evidence, "file_system_state")
  return (share) => {
    const files = [
      ...listing("read", readHeading, withHandles(read, share.least("read") - headingTokens), share.least("read")),
      ...listing("named", namedHeading, namedLines, share.least("named"))
    ]
    files.push(...within(carried(files), share("carried")))
    return files
  }
}
