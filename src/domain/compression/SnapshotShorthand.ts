/**
 * Short forms of neighbouring statements of a snapshot: messages of the user in one element, files below their folder, items
 * below their status. `shortForm` makes them when a snapshot is rendered, `writtenOut` expands them before it is read, so that
 * all other code sees each statement by itself.
 */

import { closedPart } from "../text/TextsBetween.ts"

/** The tag around an exact span of the user's text. */
export const wordsTag = "user_words"
const noteOf = (chars: string, handle: string | undefined): string =>
  `${chars}${handle === undefined ? "" : `: ${handle}`}`

/** Matches a message on its own, whole or by its ends. */
const message = new RegExp(
  `^<${wordsTag} entry="(e\\d+)"(?: at="([\\d :-]+)")?>([^]*?)</${wordsTag}>` +
    `(?:\\n- … (\\d+) more characters(?:: (h_[a-z2-7]+))? …(?:\\n<${wordsTag} entry="\\1">([^]*?)</${wordsTag}>)?)?$`
)
/** Starts the note of what is left out of a message. A message that contains it is not grouped. */
const gap = "[…"

/** Lines after the first are indented, so that none can pass for another message. */
const indented = (text: string): string => text.replace(/\n(?=[^\n])/g, "\n  ")
const unindented = (text: string): string => text.replace(/\n {2}(?=[^\n])/g, "\n")

/** Returns the short form of a message; undefined for anything else. */
const messageLine = (item: string): string | undefined => {
  const [whole, entry, at, head = "", chars, handle, tail] = message.exec(item) ?? []
  if (whole === undefined || item.includes(gap)) return undefined
  const left =
    chars === undefined ? "" : ` ${gap}${noteOf(`${chars} more`, handle)}…]${tail === undefined ? "" : ` ${tail}`}`
  return indented(`[${entry}${at === undefined ? "" : ` ${at}`}] ${head}${left}`)
}

const grouped = new RegExp(`<${wordsTag} entries="e\\d+ to e\\d+">\\n([^]*?)\\n</${wordsTag}>`, "g")
const groupedMessage = /^\[(e\d+)(?: ([\d :-]+))?\] ([^]*)$/
const groupedGap = /^([^]*) \[…(\d+) more(?:: (h_[a-z2-7]+))?…\](?: ([^]*))?$/

/** Expands a line of a group to a message; undefined for any other line. */
const messageOf = (line: string): string | undefined => {
  const [whole, entry, at, text = ""] = groupedMessage.exec(unindented(line)) ?? []
  if (whole === undefined) return undefined
  const quote = (words: string, time = "") => `<${wordsTag} entry="${entry}"${time}>${words}</${wordsTag}>`
  const time = at === undefined ? "" : ` at="${at}"`
  const [clipped, head = "", chars = "", handle, tail] = groupedGap.exec(text) ?? []
  if (clipped === undefined) return quote(text, time)
  const note = `- … ${noteOf(`${chars} more characters`, handle)} …`
  return [quote(head, time), note, ...(tail === undefined ? [] : [quote(tail)])].join("\n")
}

const withoutMessageGroups = (text: string): string => {
  if (!text.includes(`<${wordsTag} entries=`)) return text
  const closed = closedPart(text, new RegExp(`\\n</${wordsTag}>`, "g"))
  const written = closed.replace(grouped, (group: string, body: string) => {
    const messages = body.split(/\n(?=\[e\d+[ \]])/).map(messageOf)
    return messages.some((each) => each === undefined) ? group : messages.join("\n")
  })
  return written + text.slice(closed.length)
}

/** Matches the state of a file, with its folder apart: `src/a/` and `b.ts: modified (2 changes; e9)`. */
const fileState = /^- ((?:\/|~\/)?(?:[\w@.+-]+\/)+)([\w@.+-]+: (?:read|created|modified|deleted) \([^(){}\n]*\))$/
/** Matches a file of a list, in the same way. */
const listedFile = /^ {4}((?:\/|~\/)?(?:[\w@.+-]+\/)+)([\w@.+-]+(?: h_[a-z2-7]+)?(?: \((?:created|deleted)\))?)$/
/** The headings of lists of files. Snapshots until November 2026 have `changed, too` and `seen, but not read`. */
const lists: ReadonlySet<string> = new Set([
  "- changed:",
  "- changed, too:",
  "- read, but not changed:",
  "- other files that were named:",
  "- seen, but not read:"
])

/** Returns the folder that two folders share. */
const sharedFolder = (one: string, other: string): string => {
  let end = 0
  for (let at = 0; at < Math.min(one.length, other.length) && one[at] === other[at]; at += 1) {
    if (one[at] === "/") end = at + 1
  }
  return one.slice(0, end)
}

/** A folder that is shorter is not worth a line. */
const minFolderChars = 4

/** Files in a row and the folder that they share. */
interface FileRow {
  readonly folder: string
  readonly lines: ReadonlyArray<string>
}

/** Returns the lines in rows of files that share a folder; a line that is no file is a row without a folder. */
const rowsOf = (lines: ReadonlyArray<string>, form: RegExp): ReadonlyArray<FileRow> => {
  const rows: Array<FileRow> = []
  for (const line of lines) {
    const own = form.exec(line)?.[1] ?? ""
    const row = rows.at(-1)
    const shared = row === undefined ? "" : sharedFolder(row.folder, own)
    // A row does not give up most of its folder for one more file.
    if (row === undefined || shared.length < minFolderChars || shared.length * 2 < row.folder.length) {
      rows.push({ folder: own, lines: [line] })
    } else rows[rows.length - 1] = { folder: shared, lines: [...row.lines, line] }
  }
  return rows
}

const isGroup = ({ folder, lines }: FileRow): boolean => folder !== "" && lines.length > 1

/** Writes the states of files as details of the folder that they share. */
const statesBelowFolders = (items: ReadonlyArray<string>): ReadonlyArray<string> =>
  rowsOf(items, fileState).flatMap((row) =>
    isGroup(row)
      ? [`- ${row.folder}:`, ...row.lines.map((line) => `    ${line.slice(2 + row.folder.length)}`)]
      : row.lines
  )

/** Writes the files of a list below the folder that they share. */
const listedBelowFolders = (lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  rowsOf(lines, listedFile).flatMap((row) =>
    isGroup(row)
      ? [`    ${row.folder}:`, ...row.lines.map((line) => `        ${line.slice(4 + row.folder.length)}`)]
      : row.lines
  )

/** Matches an item of a todo list. */
const todo = /^- \[([a-z_]{3,20})\] ([^\n]+)$/
/** Fewer items are not worth a heading. */
const minItems = 3
const itemsBelow = /^- \[([a-z_]{3,20})\]:\n((?: {4}[^\n]*(?:\n|$))+)/gm

/** Writes items in a row below the status that they share. */
const itemsBelowStatus = (items: ReadonlyArray<string>): ReadonlyArray<string> => {
  const rows: Array<Array<string>> = []
  for (const item of items) {
    const status = todo.exec(item)?.[1]
    const row = rows.at(-1)
    if (status !== undefined && row !== undefined && todo.exec(row[0] ?? "")?.[1] === status) row.push(item)
    else rows.push([item])
  }
  return rows.flatMap((row) => {
    const start = row.length < minItems ? undefined : `- [${todo.exec(row[0] ?? "")?.[1]}]`
    return start === undefined ? row : [`${start}:`, ...row.map((item) => `    ${item.slice(start.length + 1)}`)]
  })
}

const withoutStatus = (text: string): string =>
  text.includes("]:\n    ")
    ? text.replace(itemsBelow, (_, status: string, body: string) => body.replace(/^ {4}/gm, `- [${status}] `))
    : text

/** The statement that lists names. */
export const namesHeading = "- names:"
/** Matches a name that is a path, with its folder apart. */
const pathName = /^((?:[\w@.+~-]*\/)+)([\w@.+-]+)$/
const bracedNames = /(?<=\s)((?:[\w@.+~-]*\/)+)\{([\w@.+,-]+)\}(?=\s|$)/g

/** Writes paths in a row after the folder that they share: `lib/{a.ts,b.ts}`. */
const namesInBraces = (line: string): string => {
  const words: Array<string> = []
  let folder: string | undefined
  let row: Array<string> = []
  const close = () => {
    if (folder === undefined) return
    words.push(row.length > 1 ? `${folder}{${row.join(",")}}` : `${folder}${row[0]}`)
    folder = undefined
    row = []
  }
  // The first word names the file.
  for (const word of line.trimStart().split(" ")) {
    const [, own, name = ""] = pathName.exec(word) ?? []
    if (own !== folder) close()
    if (own === undefined || own.length < minFolderChars) words.push(word)
    else {
      folder = own
      row.push(name)
    }
  }
  close()
  return `    ${words.join(" ")}`
}

const withoutBraces = (text: string): string => {
  // It is the last statement. The user may have written such a line, too.
  const at = text.lastIndexOf(`${namesHeading}\n`)
  if (at < 0) return text
  const [, lines = ""] = /^[^\n]*\n((?: {4}[^\n]*(?:\n|$))+)/.exec(text.slice(at)) ?? []
  const from = at + namesHeading.length + 1
  const written = lines.replace(bracedNames, (_, root: string, names: string) =>
    names
      .split(",")
      .map((name) => root + name)
      .join(" ")
  )
  return text.slice(0, from) + written + text.slice(from + lines.length)
}

const folder = "((?:\\/|~\\/)?(?:[\\w@.+-]+\\/)+)"
const statesBelow = new RegExp(`^- ${folder}:\\n((?: {4}[^\\n]*(?:\\n|$))+)`, "gm")
const filesBelow = new RegExp(`^ {4}${folder}:\\n((?: {8}[^\\n]*(?:\\n|$))+)`, "gm")
const listed = new RegExp(`^(?:${[...lists].join("|")})\\n(?: {4}[^\\n]*(?:\\n|$))+`, "gm")

/** Writes out the files below folders. */
const withoutFolders = (text: string): string => {
  const states = text.includes("/:\n    ")
    ? text.replace(statesBelow, (group: string, root: string, body: string) => {
        const lines = body.replace(/\n$/, "").split("\n")
        const items = lines.map((line) => `- ${root}${line.slice(4)}`)
        return items.every((item) => fileState.test(item))
          ? items.join("\n") + (body.endsWith("\n") ? "\n" : "")
          : group
      })
    : text
  return states.replace(listed, (list) =>
    list.replace(filesBelow, (_, root: string, files: string) => files.replace(/ {8}/g, `    ${root}`))
  )
}

const withFolders = (item: string): string => {
  const [heading = "", ...lines] = item.split("\n")
  if (heading === namesHeading) return [heading, ...lines.map(namesInBraces)].join("\n")
  return lists.has(heading) ? [heading, ...listedBelowFolders(lines)].join("\n") : item
}

/** Renders the statements of a section, with short forms for those that stand side by side. */
export const shortForm = (items: ReadonlyArray<string>): string => {
  const written: Array<string> = []
  let messages: Array<{ readonly item: string; readonly line: string }> = []
  const close = () => {
    const entries = messages.map(({ line }) => /e\d+/.exec(line)?.[0] ?? "")
    if (messages.length > 1) {
      const lines = messages.map(({ line }) => line).join("\n")
      written.push(`<${wordsTag} entries="${entries[0]} to ${entries.at(-1)}">\n${lines}\n</${wordsTag}>`)
    } else written.push(...messages.map(({ item }) => item))
    messages = []
  }
  for (const item of items) {
    const line = messageLine(item)
    if (line !== undefined) {
      messages.push({ item, line })
      continue
    }
    close()
    written.push(withFolders(item))
  }
  close()
  return itemsBelowStatus(statesBelowFolders(written)).join("\n")
}

/** Writes out the short forms in a snapshot, or in a text that may have some. */
export const writtenOut = (text: string): string =>
  withoutBraces(withoutFolders(withoutStatus(withoutMessageGroups(text))))

/** Returns how an item stands among others of its kind, by which its size is judged. */
export const amongOthers = (item: string): string => messageLine(item) ?? todo.exec(item)?.[2] ?? item
