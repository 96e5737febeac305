/** Reads values in texts: how far a value reaches, in quotes, to the next blank, and over several lines. */

import { matchAt } from "./MatchAt.ts"
import { hasDigitAndLetter } from "./RandomText.ts"

/** The quote before a value, in one of the forms of programs, shells, JSON in JSON, HTML and addresses. */
export const openQuote =
  /(?:\$|[bBuUrR]{1,2}(?=\\{0,7}["']))?(?:'\\{1,4}''|\\{0,7}["'`]|&quot;|&#34;|&#39;|%22|%27|@")/y
const maxValueChars = 8_192
const bare = new RegExp(String.raw`(?:[^\s"'\`,;&)}\]<>\\|]|\\(?![nrtu"'\`\\])){1,${maxValueChars}}`, "y")
const bareInQuery = new RegExp(String.raw`[^\s"'\`&#<>\\,;)}\]|]{1,${maxValueChars}}`, "y")

/** An element of a snapshot is never part of a value: an unclosed quote ends there. */
const element = /<\/?[a-z]+_[a-z_]+[ >]/y

/** A value in a text, without its quotes. */
export interface Value {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly quote: string
}

/** Returns the value at `at`: quoted, also within a JSON string, or up to the next blank. */
export const valueAt = (text: string, at: number, inQuery = false): Value | undefined => {
  const begin = matchAt(openQuote, text, at)
  if (begin < 0) {
    const end = matchAt(inQuery ? bareInQuery : bare, text, at)
    return end < 0 ? undefined : { start: at, end, text: text.slice(at, end), quote: "" }
  }
  const quote = text.slice(at, begin).replace(/^[$@bBuUrR]+/, "")
  const limit = Math.min(text.length, begin + maxValueChars)
  let end = begin
  while (
    end < limit &&
    text.charCodeAt(end) !== 10 &&
    !text.startsWith(quote, end) &&
    matchAt(element, text, end) < 0
  ) {
    // A quote after a backslash belongs to the value, unless the delimiters are escaped the same way.
    end += quote.length === 1 && text.charCodeAt(end) === 92 && text.charCodeAt(end + 1) !== 10 ? 2 : 1
  }
  end = Math.min(end, limit)
  return end === begin ? undefined : { start: begin, end, text: text.slice(begin, end), quote }
}

/** Lines that continue a long value: base64 is wrapped. */
const continued = /(?:\r?\n[ \t]{0,40}|\\n)[A-Za-z0-9+/=_-]{20,}(?![^\s\\"'])/y

/** Returns the end of a value with the lines that continue it. */
export const withContinued = (text: string, value: Value): number => {
  let { end } = value
  if (end - value.start < 40) return end
  for (;;) {
    const next = matchAt(continued, text, end)
    if (next < 0) return end
    end = next
  }
}

const lineStart = /(?:^|[\n\r]|\\n)[ \t+-]{0,24}(?:(?:export|ENV|set)[ \t]{1,4})?[A-Za-z0-9_.-]{0,24}$/
const toBlank = /[^\s<"]{1,512}/y

/** Extends an unquoted value to the next blank or the end of the line if its name begins the line: there `&` and `;` end nothing. */
export const wholeOf = (text: string, value: Value, name: string, before: string | undefined): Value => {
  if (value.quote !== "" || before === undefined || !lineStart.test(before)) return value
  const end = matchAt(toBlank, text, value.start)
  const whole = text.slice(value.start, end).replace(/[,;)\]}'`]+$/, "")
  // In source code, the text that follows is code.
  const goesOn = !/^[\r\n]|^$/.test(text.slice(end, end + 1)) && !/^[A-Z0-9_]+$/.test(name)
  return whole.length <= value.text.length ||
    goesOn ||
    !hasDigitAndLetter(whole) ||
    /[({[$=]|\\[nrtu"']|&&|\|\|/.test(whole)
    ? value
    : { ...value, text: whole, end: value.start + whole.length }
}
