/** What a context says, statement by statement, as a reader takes it: a line, and the headings above it. */

import { escape as escapeRegExp } from "effect/RegExp"
import { unprotect } from "../text/UntrustedText.ts"

/** A line of a context. */
export interface Statement {
  /** Without its bullet and its emphasis, on one line. */
  readonly text: string
  /** The headings and the less indented lines above it, the nearest first. */
  readonly under: ReadonlyArray<string>
  /** Whether it is a user's message, quoted. */
  readonly isQuoted: boolean
}

/** A context, read. */
export interface ReadContext {
  readonly statements: ReadonlyArray<Statement>
  /** The whole text on one line, in the form of `plain`. */
  readonly flatText: string
}

/** Returns a text on one line, without emphasis and the folders, in which it is compared. */
export const plain = (text: string, folders: ReadonlyArray<string> = []): string => {
  let short = text
  for (const folder of folders) {
    if (folder.length > 1) short = short.replaceAll(`${folder}/`, "").replaceAll(folder, ".")
  }
  return short
    .replace(/\bcd (["']?)\.\1 && /g, "")
    .replace(/[`*]/g, "")
    .replace(/\s+/g, " ")
    .trim()
}

const maxDepth = 6
const bullet = /^(?:[-*+•]|\d+[.)])\s+/

/** The level of a line: a heading is above all lines without one, a bullet is below a line that is none. */
const levelOf = (line: string): number => {
  const hashes = /^(#{1,6})\s/.exec(line)?.[1]
  if (hashes !== undefined) return hashes.length - 20
  if (/^<\w+>$/.test(line.trim())) return -40
  const indent = /^\s*/.exec(line)?.[0].replaceAll("\t", "    ").length ?? 0
  return indent * 2 + (bullet.test(line.trim()) ? 1 : 0)
}

/** Reads a context. Paths below one of the folders are relative to it. */
export const readContext = (text: string, folders: ReadonlyArray<string> = []): ReadContext => {
  const statements: Array<Statement> = []
  const above: Array<{ readonly level: number; readonly text: string }> = []
  let isQuoted = false
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue
    const opens = line.lastIndexOf("<user_words ")
    const closes = line.lastIndexOf("</user_words>")
    const wasQuoted = isQuoted || opens >= 0
    if (opens >= 0 || closes >= 0) isQuoted = opens > closes
    const level = levelOf(line)
    const words = plain(
      unprotect(line.replace(/<\/?user_words\b[^>]*>/g, " "))
        .trim()
        .replace(bullet, ""),
      folders
    )
    if (wasQuoted) {
      statements.push({ text: words, under: [], isQuoted: true })
      continue
    }
    while (above.length > 0 && (above.at(-1)?.level ?? 0) >= level) above.pop()
    statements.push({ text: words, under: above.map((each) => each.text).reverse(), isQuoted: false })
    if (above.length < maxDepth) above.push({ level, text: words })
  }
  return {
    statements,
    flatText: plain(unprotect(text.replace(/<\/?user_words\b[^>]*>/g, " ")), folders)
  }
}

/** Returns a pattern for these words as whole words: `100` is not in `1000`, nor `a.ts` in `ba.ts`. */
export const wholeWord = (words: string, flags = ""): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{N}_])${escapeRegExp(words)}(?![\\p{L}\\p{N}_])`, `u${flags}`)

/** Whether a text holds these words as whole words. */
export const hasWords = (text: string, words: string): boolean => text.includes(words) && wholeWord(words).test(text)
