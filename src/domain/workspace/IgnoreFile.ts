/**
 * Parses and matches `.gitignore` rules (gitignore(5)).
 *
 * The matcher is our own, on Effect's Glob. The package `ignore` was tried: it treats everything below an ignored
 * folder as ignored, so a later file of rules cannot include a folder that an earlier file excludes.
 */

import { Glob } from "effect"
import type { SlicedWork } from "../text/SlicedWork.ts"

/** One rule. */
export interface IgnoreRule {
  readonly isNegated: boolean
  readonly onlyFolders: boolean
  /** Whether it matches paths relative to the rule file's folder; else it matches names at any depth. */
  readonly isAnchored: boolean
  /** Tests a path or a name, with forward slashes. */
  readonly matches: (text: string) => boolean
}

/** Removes trailing spaces, except an escaped one. */
const trimmed = (line: string): string => {
  const text = line.replace(/\r$/, "")
  let end = text.length
  while (end > 0 && text[end - 1] === " ") end -= 1
  let slashes = 0
  while (end - slashes > 0 && text[end - 1 - slashes] === "\\") slashes += 1
  return slashes % 2 === 1 && end < text.length ? text.slice(0, end + 1) : text.slice(0, end)
}

/** Braces are literal in gitignore patterns. */
const escapeBraces = (pattern: string): string =>
  pattern.replace(/\\.|[{}]/gs, (brace) => (brace.length > 1 ? brace : `\\${brace}`))

const special = /[\\*?[\]{}]/

/** Compiles a pattern. Most are plain names or suffixes and need no glob. */
const matcher = (pattern: string): ((text: string) => boolean) => {
  if (!special.test(pattern)) return (text) => text === pattern
  const ending = pattern.slice(1)
  if (pattern.startsWith("*") && !special.test(ending) && !ending.includes("/")) {
    return (text) => text.endsWith(ending) && !text.includes("/")
  }
  // `a/**` matches what is inside a, not a itself.
  const inside = pattern.endsWith("/**") ? `${pattern}/*` : pattern
  const glob = Glob.make(escapeBraces(inside), { dot: true })
  return (text) => Glob.match(glob, text)
}

/** Most rules used from one file; every entry is tested against all of them. */
export const maxRules = 5_000
/** Lines that are longer or have more stars are skipped: matching them would take too long. */
const maxLineChars = 1_024
const maxStars = 16

const isSensible = (line: string): boolean => line.length <= maxLineChars && line.split("*").length - 1 <= maxStars

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

/** Parses the rules of a file, in order. */
export function* ignoreRules(text: string): SlicedWork<ReadonlyArray<IgnoreRule>> {
  const rules: Array<IgnoreRule> = []
  for (const line of text.replace(/^\uFEFF/, "").split("\n")) {
    if (rules.length === maxRules) break
    const rule = isSensible(line) ? parseLine(line) : undefined
    if (rule !== undefined) rules.push(rule)
    yield
  }
  return rules
}

/**
 * Whether the rules ignore an entry: true, false (re-included) or undefined (no rule matches). `path` is relative to
 * the rule file's folder, with forward slashes. The last matching rule wins.
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
