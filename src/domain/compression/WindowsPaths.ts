/** Finds paths of Windows in a text, where a backslash may be a separator of folders or begin an escape. */

import { cmdlet } from "../actions/ShellLine.ts"
import { endOf } from "../text/MatchAt.ts"

const segment = "[\\p{L}\\p{N}_.@+$~#-]{1,128}"
/** A folder whose name has several words, as `Program Files (x86)`. */
const folderName = `${segment}(?: [\\p{Lu}\\p{N}(][\\p{L}\\p{N}_.()-]{0,64}){0,5}`
/** Makes a form for paths with single backslashes, and for those with the doubled ones of JSON, where a single one begins an escape. */
const bySeparator = (form: (backslash: string) => string): string =>
  `(?:${form("\\\\{2}(?!\\\\)")}|${form("\\\\(?!\\\\)")})`

/** `C:\w\a.ts`, `C:/w/a.ts`, `C:w\a.ts` (relative to the folder of the drive). */
const onDrive = new RegExp(
  `${bySeparator(
    (backslash) =>
      `(?:(?:[A-Za-z]:${backslash}|[A-Z]:/(?!/))(?:${folderName}(?:${backslash}|/)){0,40}${segment}|[A-Za-z]:(?:${segment}${backslash}){1,40}${segment})`
  )}`,
  "uy"
)
/** `\\server\share\a.ts`, and as JSON writes it. */
const onServer = new RegExp(
  `\\\\{2}(?!\\\\)${segment}(?:\\\\(?!\\\\)${folderName}){1,40}|\\\\{4}(?!\\\\)${segment}(?:\\\\{2}(?!\\\\)${folderName}){1,40}`,
  "uy"
)
/** `src\a.ts`, `.\a.ts`, `..\a.ts`, and `\w\a.ts` on the drive of the folder. */
const relative = new RegExp(
  `${bySeparator(
    (backslash) =>
      `(?:\\.{1,2}${backslash}${segment}|\\\\?${segment}${backslash}${segment})(?:${backslash}${segment}){0,40}`
  )}`,
  "uy"
)

/** A letter after a backslash that an escape may begin. */
const escapeLetter = /\\[nrtbfvuxdswDSWB0-9]/
/** What stands before a path. A letter after `%` belongs to a format: `%s:\n`. */
const opening = "[\\s\"'`=(,;:<>[|&\\\\]"
const drive = new RegExp(`(?:^|${opening})(?:[A-Z]:\\\\{1,2}|[a-z]:(?:\\\\{2}|\\\\(?![nrt])))[\\p{L}\\p{N}_.]`, "u")
const opens = new RegExp(`${opening}`)
const withExtension = /\.[A-Za-z]\w{0,6}$/

/** Whether a text has paths of Windows, or commands of PowerShell, so that a backslash between words separates folders. */
export const hasWindowsPaths = (text: string): boolean => drive.test(text) || cmdlet.test(text)

/** A path, and where it ends in the text. */
export interface WindowsPath {
  readonly path: string
  readonly end: number
}

/** What programs write before the name of a file, which is the rest of its line: nothing, a state of git, `*** Update File:`. */
const beforeFile = /^ {0,8}(?:[MADRCU?]{1,2} +|(?:\*\*\* )?[\w ]{1,24}: +)?$/

/** Whether a chain of words with backslashes between them is a path. */
const isRelativePath = (text: string, at: number, end: number, isWindows: boolean): boolean => {
  const found = text.slice(at, end)
  const separators = found.match(/[^\\]\\{1,2}(?=[^\\])/g)?.length ?? 0
  if (separators === 0) return false
  const isFile = withExtension.test(found)
  if (isWindows) return isFile || (separators > 1 && !found.startsWith("\\"))
  // Elsewhere a backslash is an escape, unless the whole can be nothing else.
  if (found.startsWith("\\") || /\\\.(?!\.?\\)/.test(found) || !isFile) return false
  const isWholeLine =
    /^(?:$|[\r\n])/.test(text.slice(end, end + 1)) &&
    beforeFile.test(text.slice(text.lastIndexOf("\n", at - 1) + 1, at))
  return isWholeLine || found.startsWith(".") || !escapeLetter.test(found)
}

/** Returns the path of Windows that begins at a place; undefined when none does. Separators that JSON doubled are single in it. */
export const windowsPathAt = (text: string, at: number, isWindows: boolean): WindowsPath | undefined => {
  if (at > 0 && !opens.test(text.charAt(at - 1))) return undefined
  const absolute = endOf(onDrive, text, at) ?? endOf(onServer, text, at)
  const found = absolute ?? (text[at - 1] === "\\" ? undefined : endOf(relative, text, at))
  if (found === undefined) return undefined
  const end = at + text.slice(at, found).replace(/[.~@+#$-]+$/, "").length
  if (absolute === undefined && !isRelativePath(text, at, end, isWindows)) return undefined
  const path = text.slice(at, end)
  const start = /^\\*/.exec(path)?.[0].length ?? 0
  const rest = path.slice(start).replace(/\\\\/g, "\\")
  return { path: `${start >= 2 ? "\\\\" : "\\".repeat(start)}${rest}`, end }
}

const wholePath = /^(?:[A-Za-z]:|\\|\.{1,2}\\)?[^\s"'<>|?*:]*\\[^\s"'<>|?*:\\]|^[A-Z]:\/[^/\s]/

/** Whether a word is a path of Windows. */
export const isWindowsPath = (word: string): boolean => wholePath.test(word)
