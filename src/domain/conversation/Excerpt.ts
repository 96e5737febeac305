/** Excerpts of long texts: by lines, by pattern, within a token budget. */

import { Schema } from "effect"
import { firstUnits } from "../text/Bytes.ts"
import { countLines, lineEnd, passBreaks } from "../text/Lines.ts"
import { type Pattern, PatternMatcher } from "../text/Pattern.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { beginning, fittingPart, scan } from "../tokens/Tokens.ts"

/** Selects a part of a stored text. Lines count from 1, both ends included. */
export const Selection = Schema.Struct({
  lines: Schema.optionalKey(Schema.Tuple([Schema.Natural, Schema.Natural])),
  /** A regular expression in the syntax of RE2. Selects only the lines that match, with their numbers. */
  grep: Schema.optionalKey(Schema.String),
  maxTokens: Schema.optionalKey(Schema.Natural)
})
export type Selection = typeof Selection.Type

/** The selected part of a text. */
export const Excerpt = Schema.Struct({
  text: Schema.String,
  /** Lines of the whole text, and how many selected lines the token budget left out. */
  totalLines: Schema.Natural,
  omittedLines: Schema.Natural
})
export type Excerpt = typeof Excerpt.Type

/** The lines that are shown so far, within the token budget. Mutable. */
class ShownLines {
  readonly lines: Array<string> = []
  isFull = false
  private used = 0
  private readonly text: string
  private readonly budget: number

  constructor(text: string, budget = Number.POSITIVE_INFINITY) {
    this.text = text
    this.budget = budget
  }

  /** Adds the line between two offsets, while all fit; of a first line that does not, its beginning. */
  *add(start: number, end: number, label = ""): SlicedWork<void> {
    if (this.isFull) return
    const { budget, lines, text } = this
    if (budget === Number.POSITIVE_INFINITY) return void lines.push(label + text.slice(start, end))
    const labelled = scan(label, 0, label.length, beginning)
    const { at, tokens } = yield* fittingPart(text, [start, end], budget - this.used - 1, labelled)
    this.used += tokens + 1
    this.isFull = at < end || this.used > budget
    if (!this.isFull || (lines.length === 0 && budget > 1))
      lines.push(label + firstUnits(text.slice(start, end), at - start))
  }
}

/** Adds the lines from an offset on, at most `count`. */
function* addLines(shown: ShownLines, text: string, begin: number, count: number): SlicedWork<void> {
  for (let at = begin, line = 0; line < count && !shown.isFull; line += 1) {
    const end = yield* lineEnd(text, at)
    yield* shown.add(at, end)
    yield
    at = end + 1
  }
}

/** Adds the matching lines among those from an offset on, at most `count` of which the first has this number. Returns how many match. */
function* addMatches(
  shown: ShownLines,
  pattern: Pattern,
  text: string,
  { begin, count, first }: { readonly begin: number; readonly count: number; readonly first: number }
): SlicedWork<number> {
  const passed = yield* passBreaks(text, begin, count)
  const limit = passed.breaks < count ? text.length : passed.at - 1
  const matcher = new PatternMatcher(pattern)
  let matches = 0
  for (let at = begin, number = first; at <= limit; number += 1) {
    const match = yield* matcher.line(text, at, limit)
    if (match === undefined) break
    matches += 1
    number += match.breaks
    const end = yield* lineEnd(text, match.from)
    yield* shown.add(match.start, end, `${number}: `)
    at = end + 1
  }
  return matches
}

/**
 * Returns the selected part of `text`: whole lines, in order, or the beginning of a line that alone exceeds the token
 * budget. Without a selection it returns the text unchanged.
 */
export function* excerpt(text: string, selection: Selection, pattern?: Pattern): SlicedWork<Excerpt> {
  const totalLines = yield* countLines(text)
  if (selection.lines === undefined && pattern === undefined && selection.maxTokens === undefined) {
    return { text, totalLines, omittedLines: 0 }
  }
  const [from, to] = selection.lines ?? [1, totalLines]
  const first = Math.max(1, from)
  const count = Math.max(0, Math.min(to, totalLines) + 1 - first)
  const shown = new ShownLines(text, selection.maxTokens)
  let selected = count
  if (count > 0) {
    const { at: begin } = yield* passBreaks(text, 0, first - 1)
    if (pattern === undefined) yield* addLines(shown, text, begin, count)
    else selected = yield* addMatches(shown, pattern, text, { begin, count, first })
  }
  return { text: shown.lines.join("\n"), totalLines, omittedLines: selected - shown.lines.length }
}
