/** Finds lines by their breaks in texts of any length, in slices. */

import type { SlicedWork } from "./SlicedWork.ts"

/** Characters that are looked through at once. */
const pieceChars = 65_536

/** Passes over up to `maxBreaks` line breaks from an offset. Returns how many, and the offset behind the last. */
export function* passBreaks(
  text: string,
  from: number,
  maxBreaks = Number.POSITIVE_INFINITY
): SlicedWork<{ readonly breaks: number; readonly at: number }> {
  let breaks = 0
  let at = from
  for (let begin = from; begin < text.length && breaks < maxBreaks; begin += pieceChars) {
    const piece = text.slice(begin, begin + pieceChars)
    for (let found = piece.indexOf("\n"); found >= 0 && breaks < maxBreaks; found = piece.indexOf("\n", found + 1)) {
      breaks += 1
      at = begin + found + 1
    }
    yield
  }
  return { breaks, at }
}

/** The number of lines of a text. */
export function* countLines(text: string): SlicedWork<number> {
  return (yield* passBreaks(text, 0)).breaks + 1
}

/** The offset of the line break at or after an offset, or of the end of the text. */
export function* lineEnd(text: string, from: number): SlicedWork<number> {
  for (let begin = from; begin < text.length; begin += pieceChars) {
    const found = text.slice(begin, begin + pieceChars).indexOf("\n")
    if (found >= 0) return begin + found
    yield
  }
  return text.length
}

/** The offset at which the line of an offset begins. */
export function* lineStart(text: string, at: number): SlicedWork<number> {
  for (let end = at; end > 0; end -= pieceChars) {
    const begin = Math.max(0, end - pieceChars)
    const found = text.slice(begin, end).lastIndexOf("\n")
    if (found >= 0) return begin + found + 1
    yield
  }
  return 0
}
