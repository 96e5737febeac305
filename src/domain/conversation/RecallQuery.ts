/** The query of a search: a regular expression, or else plain text, and its words. */

import { escape as escapeRegExp } from "effect/RegExp"
import type { Pattern } from "../text/Pattern.ts"
import { maxPatternChars } from "../text/PatternSyntax.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"

/** What a user or a model asks for. */
export interface WrittenQuery {
  /** The regular expression, and one for the same characters as plain text. */
  readonly pattern: string
  readonly plain: string
  /** Whether it has no capital letter, or says so. */
  readonly ignoresCase: boolean
  /** The words in lower case. Texts that hold all of them are the answer where no line matches. */
  readonly words: ReadonlyArray<string>
}

/** A compiled query. */
export interface RecallQuery {
  readonly pattern: Pattern
  readonly words: ReadonlyArray<string>
  /** Why it is searched for as plain text. */
  readonly problem: string | undefined
}

/** A match within a line: offsets in the text. */
export interface LineMatch {
  readonly start: number
  readonly end: number
  /** The greater, the more specific: 2 for a match of whole words, or the number of words on the line, whole ones twice. */
  readonly weight: number
}

const maxWords = 16

/** The flags that other dialects write at the beginning. */
const inlineFlags = /^\(\?[imsux]+\)/
const escapeSequence = /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|k<[^>]*>|[^])/g

/** Matches anything at the ends of a pattern. Without it, a match is what the line is shown for. */
const emptyEnds = /^\^?(?:\.[*]\??)+|(?<!\\)(?:\.[*]\??)+\$?$/g

const wordsOf = (text: string): ReadonlyArray<string> => {
  const words =
    text
      .toLowerCase()
      .replace(/\\[a-z]/g, " ")
      .match(/[\p{L}\p{N}_](?:[\p{L}\p{N}_./@:-]*[\p{L}\p{N}_])?/gu) ?? []
  return [...new Set(words)].filter((word) => word.length > 2).slice(0, maxWords)
}

/** Whether a pattern ignores case: it has no capital letter, escapes aside. */
export const ignoresCase = (pattern: string): boolean => !/\p{Lu}/u.test(pattern.replace(escapeSequence, ""))

/** Reads a query. Returns undefined for a blank one. */
export const readQuery = (query: string): WrittenQuery | undefined => {
  const [flags = ""] = inlineFlags.exec(query) ?? []
  const written = query.slice(flags.length)
  if (written.trim() === "") return undefined
  const words = wordsOf(written)
  return {
    pattern: written.replace(emptyEnds, ""),
    plain: escapeRegExp(written),
    ignoresCase: flags.includes("i") || ignoresCase(written),
    words: words.length === 1 && words[0] === written.toLowerCase() ? [] : words
  }
}

/** Whether the character at an offset belongs to a word. */
export const isWordAt = (text: string, at: number): boolean => /[\p{L}\p{N}_]/u.test(text.charAt(at))

const isWholeIn = (text: string, word: string): boolean => {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!isWordAt(text, at - 1) && !isWordAt(text, at + word.length)) return true
  }
  return false
}

/** Characters in which words are looked for at once. */
const pieceChars = 32_768

/** Returns the words that a part of a text holds: the place of the first of them, their number, and that of whole ones. */
export function* wordsIn(
  words: ReadonlyArray<string>,
  text: string,
  from: number,
  to: number
): SlicedWork<{ readonly start: number; readonly end: number; readonly present: number; readonly whole: number }> {
  const places = new Map<string, number>()
  const whole = new Set<string>()
  for (let begin = from; begin < to && whole.size < words.length; begin += pieceChars) {
    if (begin > from) yield
    // A word may lie across the end of a piece.
    const piece = text.slice(begin, Math.min(to, begin + pieceChars + maxPatternChars)).toLowerCase()
    for (const word of words) {
      const at = piece.indexOf(word)
      if (at < 0) continue
      if (!places.has(word)) places.set(word, begin + at)
      if (isWholeIn(piece, word)) whole.add(word)
    }
  }
  const first = words.find((word) => places.has(word)) ?? ""
  const start = places.get(first) ?? from
  return { start, end: start + first.length, present: places.size, whole: whole.size }
}
