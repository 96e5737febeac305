/** What a pattern from outside may be: checked before it is compiled, because compiling cannot pause. */

import { Result } from "effect"
import { number } from "./NumberText.ts"

/** Most characters of a pattern. */
export const maxPatternChars = 1_000

/** Most parts of a pattern with its repetitions written out. Compiling one takes about 20 µs, and each may be followed at each character of a text. */
export const maxPatternParts = 1_000

/** What takes as long to compile as this many parts. */
const unicodeClassParts = 50
const unicodeRangeParts = 300

const unicodeClass = /\\p/gi
/** A range whose end may be beyond ASCII. */
const unicodeRange = /-(?:\\x|[^\0-\x7f])/gi

const partsOfClass = (text: string): number =>
  1 +
  unicodeClassParts * (text.match(unicodeClass)?.length ?? 0) +
  unicodeRangeParts * (text.match(unicodeRange)?.length ?? 0)

/** An escape, a class, a count, flags, the beginning of a group or of what looks around, or one character. */
const token =
  /\\(?:p(?:\{[^}]*\}|[^])|x\{[^}]*\}|[^])|\[\^?\]?(?:\\[^]|\[:\^?\w+:\]|[^\]\\])*\]|\{\d+(?:,\d*)?\}|\(\?[\w-]+\)|\((?:\?(?:P?<\w+>|[\w-]*:|<?[=!]))?|[^]/giu

/** Writes `\u0041` and `\u{41}` as RE2 does. */
const withoutUnicodeEscapes = (source: string): string =>
  source.replace(
    /\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u\{([0-9a-f]{1,6})\}|u([0-9a-f]{4})|[^])/giu,
    (escaped, high, low, braced, four) => {
      if (high === undefined) return braced === undefined && four === undefined ? escaped : `\\x{${braced ?? four}}`
      const code = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)).codePointAt(0) ?? 0
      return `\\x{${code.toString(16)}}`
    }
  )

/** The parts of a repetition like `{2,5}`, written out. */
const repeatedParts = (parts: number, count: string): number => {
  const [least = "", most = least] = count.slice(1, -1).split(",")
  return most === "" ? parts * Math.max(1, Number(least)) + 1 : parts * Number(most) + Number(most) - Number(least)
}

/** Counts the parts of a pattern, not fewer than it has; fails with what is not supported. */
const partsOf = (source: string): Result.Result<number, string> => {
  /** The parts before each open group, and those of its own. */
  const groups: Array<readonly [before: number, own: number]> = []
  let sum = 0
  // What a repetition would repeat.
  let last = 0
  for (const [text] of source.matchAll(token)) {
    if (/^\(\?<?[=!]/.test(text)) return Result.fail("look-ahead and look-behind are not supported")
    if (/^\\[1-9k]/.test(text)) return Result.fail("back-references are not supported")
    if (/^\\[QE]/.test(text)) return Result.fail("\\Q and \\E are not supported")
    if (text.startsWith("(")) {
      if (text.endsWith(")")) continue
      groups.push([sum, text.endsWith(":") ? 0 : 2])
      sum = last = 0
    } else if (text === ")") {
      const [before, own] = groups.pop() ?? [0, 0]
      last = sum + own
      sum = before + last
    } else if (text.length > 1 && text.startsWith("{")) {
      const all = repeatedParts(last, text)
      sum += all - last
      last = all
    } else if (/^[*+?|]$/.test(text)) {
      sum += 1
      last += 1
    } else {
      last = text.startsWith("[") || /^\\p/i.test(text) ? partsOfClass(text) : 1
      sum += last
    }
  }
  return Result.succeed(sum)
}

/** Returns a pattern in the syntax of RE2, or in one line why it is not used. */
export const checkedPattern = (pattern: string): Result.Result<string, string> => {
  if (pattern.length > maxPatternChars) {
    return Result.fail(`it has ${number(pattern.length)} characters; a pattern may have ${number(maxPatternChars)}`)
  }
  const source = withoutUnicodeEscapes(pattern)
  return Result.flatMap(partsOf(source), (parts) =>
    parts > maxPatternParts
      ? Result.fail(`it repeats too much: written out it has more than ${number(maxPatternParts)} parts`)
      : Result.succeed(source)
  )
}
