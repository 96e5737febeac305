import { Schema } from "effect"
import { firstUnits } from "../text/Bytes.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { estimateText } from "../tokens/Tokens.ts"
import { type LinePattern, matchIn } from "./RecallQuery.ts"

/** Excerpts of long texts: by lines, by pattern, within a token budget. */

/** Selects a part of a stored text. Lines count from 1, both ends included. */
export const Selection = Schema.Struct({
  lines: Schema.optionalKey(Schema.Tuple([Schema.Natural, Schema.Natural])),
  /** A regular expression (flags `u`, see `parsePattern`). Selects only the lines that match, with their numbers. */
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

const cut = (line: string, tokens: number): string => {
  let low = 0
  let high = line.length
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (estimateText(line.slice(0, middle)) <= tokens) low = middle
    else high = middle - 1
  }
  return firstUnits(line, low)
}

/**
 * Returns the selected part of `text`: whole lines, in order, or the beginning of a line that alone exceeds the token
 * budget. Without a selection it returns the text unchanged.
 */
export function* excerpt(text: string, selection: Selection, pattern?: LinePattern): SlicedWork<Excerpt> {
  if (selection.lines === undefined && pattern === undefined && selection.maxTokens === undefined) {
    return { text, totalLines: text.split("\n").length, omittedLines: 0 }
  }
  const all = text.split("\n")
  const [from, to] = selection.lines ?? [1, all.length]
  const selected: Array<string> = []
  for (let number = Math.max(1, from); number <= Math.min(to, all.length); number += 1) {
    const line = all[number - 1] ?? ""
    if (pattern === undefined) selected.push(line)
    else {
      yield 20 + line.length
      if ((yield* matchIn(pattern, line)) !== undefined) selected.push(`${number}: ${line}`)
    }
  }
  const budget = selection.maxTokens ?? Number.POSITIVE_INFINITY
  const shown: Array<string> = []
  let used = 0
  for (const line of selected) {
    const tokens = estimateText(line) + 1
    if (used + tokens > budget) {
      if (shown.length === 0 && budget > 1) shown.push(cut(line, budget - 1))
      break
    }
    used += tokens
    shown.push(line)
  }
  return { text: shown.join("\n"), totalLines: all.length, omittedLines: selected.length - shown.length }
}
