import { PartKind } from "../../domain/evaluation/PartKind.ts"
import { type Html, markup } from "./Markup.ts"

/** Bars and colours of the kinds of parts on a page. */

/** The order of kinds in bars and legends: messages first, then tools, then the rest. */
export const kindOrder: ReadonlyArray<PartKind> = PartKind.literals

/** The colour square of a kind. */
export const swatch = (kind: PartKind): Html => markup`<i class="swatch k-${kind}"></i>`

/** A segment of a bar. */
export interface BarSegment {
  /** The class that colours the segment. */
  readonly of: string
  /** Tokens of the segment. */
  readonly tokens: number
}

const percent = (part: number, whole: number): string => {
  const value = (part / whole) * 100
  return Number.isFinite(value) ? String(Math.round(Math.min(100, Math.max(0, value)) * 100) / 100) : "0"
}

/**
 * Draws segments side by side; `whole` is the full width. The bar repeats numbers beside it and is hidden from screen readers.
 */
export const bar = (segments: ReadonlyArray<BarSegment>, whole: number, name = "bar"): Html => {
  let before = 0
  const rects = segments.flatMap(({ of, tokens }) => {
    if (!(tokens > 0) || !(whole > 0)) return []
    const from = percent(before, whole)
    before += tokens
    return [markup`<rect class="${of}" x="${from}%" width="${percent(tokens, whole)}%" height="100%" />`]
  })
  return markup`<svg class="${name}" aria-hidden="true">${rects}</svg>`
}
