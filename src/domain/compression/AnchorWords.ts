/** Splits a text into the words that may be anchors. Reads each character once, because every message is read for its names. */

import { endOf } from "../text/MatchAt.ts"
import { hasWindowsPaths, windowsPathAt } from "./WindowsPaths.ts"

/** The classes of a character: bits of `classes`. */
const begins = 1
const continues = 2
const ends = 4
const isLower = 8
const isUpper = 16
const isDigit = 32
const isMark = 64
const isSeparator = 128

/** The classes of each character code below 128; others are in no word. */
const classes = new Uint8Array(128)
const add = (characters: string, bits: number): void => {
  for (let at = 0; at < characters.length; at += 1) {
    const code = characters.charCodeAt(at)
    classes[code] = (classes[code] ?? 0) | bits
  }
}
add("abcdefghijklmnopqrstuvwxyz", begins | continues | ends | isLower)
add("ABCDEFGHIJKLMNOPQRSTUVWXYZ", begins | continues | ends | isUpper)
add("0123456789", begins | continues | ends | isDigit)
add("_$", begins | continues | ends)
add("@~#/.-", begins | continues)
add(":%+=?&", continues)
add("/?!", ends)
// At the beginning or at the end of a word, these may belong to the sentence.
add(".@~/?!", isMark)
add(":=&?%+", isSeparator)

const escape = 0x1b
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c
const exclamation = 0x21

/** Matches a number with thousands separators, which is one word. */
const grouped = /\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w|,\d)/y
/** Matches an escape sequence of a terminal, which is none: the `32m` of a colour. */
const terminalEscape = /\[[\d;]*[A-Za-z]/y

/** Whether the character before a place belongs to the same word. */
const isInWord = (text: string, at: number): boolean => {
  const before = at === 0 ? 0 : text.charCodeAt(at - 1)
  return before < 128 && ((classes[before] ?? 0) & ends) !== 0 && before !== exclamation
}

const minWordChars = 3
const maxGroupDigits = 3

/**
 * `hasMark`: the word begins or ends with a character that may belong to the sentence. `isComposite`: it may be several words, as
 * `path:12`.
 */
type Visit = (word: string, at: number, hasMark: boolean, isComposite: boolean) => void

/**
 * Calls `visit` with each word of a text, in order, and its place in characters. Left out are ordinary words (`word`, `Word`) and
 * those of fewer than 3 characters, which are never anchors. The letter of a spelled-out escape (`\\n`) does not begin a word.
 * A path of Windows is one word, with single backslashes. `isOnWindows`: the text is of a conversation on Windows.
 */
export const eachWord = (text: string, visit: Visit, isOnWindows = false): void => {
  const isWindows = isOnWindows || hasWindowsPaths(text)
  const hasPaths = isWindows || text.includes(":/")
  let at = 0
  /** Visits the path of Windows that begins at a place, if one does. */
  const visitPath = (start: number): boolean => {
    const path = isInWord(text, start) ? undefined : windowsPathAt(text, start, isWindows)
    if (path === undefined) return false
    visit(path.path, start, false, false)
    at = path.end
    return true
  }
  while (at < text.length) {
    const code = text.charCodeAt(at)
    const first = code < 128 ? (classes[code] ?? 0) : 0
    if ((code === backslash || (hasPaths && text.charCodeAt(at + 1) === colon)) && visitPath(at)) continue
    if ((first & begins) === 0 || (at > 0 && text.charCodeAt(at - 1) === backslash)) {
      at = (code === escape ? endOf(terminalEscape, text, at + 1) : undefined) ?? at + 1
      continue
    }
    const start = at
    // A word goes on to the last character that may end one: `read` is what was read, `word` what the word holds after its first.
    let next = at + 1
    let follower = 0
    let end = next
    let last = first
    const read = { all: 0, common: 0xff }
    const word = { all: 0, common: 0xff }
    for (; next < text.length; next += 1) {
      follower = text.charCodeAt(next)
      const own = follower < 128 ? (classes[follower] ?? 0) : 0
      if ((own & continues) === 0) break
      read.all |= own
      read.common &= own
      if ((own & ends) === 0) continue
      word.all = read.all
      word.common = read.common
      last = own
      end = next + 1
    }
    if (follower === backslash && visitPath(start)) continue
    const isGroup = follower === comma && (first & read.common & isDigit) !== 0 && next - start <= maxGroupDigits
    const whole = isGroup ? endOf(grouped, text, start) : undefined
    if (whole !== undefined) {
      at = whole
      visit(text.slice(start, whole), start, false, false)
      continue
    }
    if (follower === exclamation) {
      at = next + 1
      if (at - start >= minWordChars) visit(text.slice(start, at), start, true, (read.all & isSeparator) !== 0)
      continue
    }
    // No other word begins in what follows the last character that may end one, but for `..\\a`.
    at = follower === backslash ? end : next
    const isOrdinary = (first & (isLower | isUpper)) !== 0 && (word.common & isLower) !== 0
    if (!isOrdinary && end - start >= minWordChars)
      visit(text.slice(start, end), start, ((first | last) & isMark) !== 0, (word.all & isSeparator) !== 0)
  }
}
