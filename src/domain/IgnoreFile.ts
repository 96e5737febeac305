import { Glob } from "effect"
import { runSync, type Work } from "./Work.ts"

/** What lines of a `.gitignore` and its like say (gitignore(5)). */

/** One line: what it matches, and whether it takes something out again. */
export interface IgnoreRule {
  readonly isNegated: boolean
  readonly onlyFolders: boolean
  /** Whether it is about paths from the folder of the file; else about names, wherever they stand. */
  readonly isAnchored: boolean
  /** Whether it is meant by a path, or a name, with forward slashes. */
  readonly matches: (text: string) => boolean
}

/** Spaces at the end count for nothing, save one that is escaped. */
const trimmed = (line: string): string => {
  const text = line.replace(/\r$/, "")
  let end = text.length
  while (end > 0 && text[end - 1] === " ") end -= 1
  let slashes = 0
  while (end - slashes > 0 && text[end - 1 - slashes] === "\\") slashes += 1
  return slashes % 2 === 1 && end < text.length ? text.slice(0, end + 1) : text.slice(0, end)
}

/** Braces mean nothing there. */
const escapeBraces = (pattern: string): string =>
  pattern.replace(/\\.|[{}]/gs, (found) => (found.length > 1 ? found : `\\${found}`))

const special = /[\\*?[\]{}]/

/** Whether a text matches; most patterns are plain names or endings, which need no machine. */
const matcher = (pattern: string): ((text: string) => boolean) => {
  if (!special.test(pattern)) return (text) => text === pattern
  const ending = pattern.slice(1)
  if (pattern.startsWith("*") && !special.test(ending) && !ending.includes("/")) {
    return (text) => text.endsWith(ending) && !text.includes("/")
  }
  // `a/**` is what lies in a, not a itself.
  const inside = pattern.endsWith("/**") ? `${pattern}/*` : pattern
  const glob = Glob.make(escapeBraces(inside), { dot: true })
  return (text) => Glob.match(glob, text)
}

/** Rules of one file that count; the rest is left out: nobody wrote them, and each file would be held against all of them. */
export const mostRules = 5_000
/** A line that is longer, or has more stars, is none: it would take for ever to match, and no name is meant by it. */
const longestLine = 1_024
const mostStars = 16

const isSensible = (line: string): boolean => line.length <= longestLine && line.split("*").length - 1 <= mostStars

const parseLine = (line: string): IgnoreRule | undefined => {
  const text = trimmed(line)
  if (text === "" || text.startsWith("#")) return undefined
  const isNegated = text.startsWith("!")
  const body = isNegated ? text.slice(1) : text
  const onlyFolders = body.endsWith("/")
  const path = onlyFolders ? body.slice(0, -1) : body
  if (path === "") return undefined
  const isAnchored = path.includes("/")
  const pattern = path.startsWith("/") ? path.slice(1) : path
  return { isNegated, onlyFolders, isAnchored, matches: matcher(pattern) }
}

/** What a rule costs to make, in characters of plain scanning. */
const making = 500

/** The first rules of a file, in order. */
export function* ignoreRules(text: string): Work<ReadonlyArray<IgnoreRule>> {
  const rules: Array<IgnoreRule> = []
  for (const line of text.replace(/^\uFEFF/, "").split("\n")) {
    if (rules.length === mostRules) break
    const rule = isSensible(line) ? parseLine(line) : undefined
    if (rule !== undefined) rules.push(rule)
    yield making
  }
  return rules
}

/** The same, all at once: for small files. */
export const parseIgnoreFile = (text: string): ReadonlyArray<IgnoreRule> => runSync(ignoreRules(text))

/**
 * What a file's rules say of an entry: left out, taken in again, or nothing. `path` is from the folder of the file, with
 * forward slashes. The last line that matches decides.
 */
export const verdict = (rules: ReadonlyArray<IgnoreRule>, path: string, isFolder: boolean): boolean | undefined => {
  const name = path.slice(path.lastIndexOf("/") + 1)
  for (let i = rules.length - 1; i >= 0; i -= 1) {
    const rule = rules[i]
    if (rule === undefined || (rule.onlyFolders && !isFolder)) continue
    if (rule.matches(rule.isAnchored ? path : name)) return !rule.isNegated
  }
  return undefined
}
