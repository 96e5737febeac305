import { Kind } from "../../domain/Inspection.ts"
import { type Html, markup } from "./Markup.ts"

/** The order in which kinds stand in bars and legends: who speaks first, then tools, then the rest. */
export const kindOrder: ReadonlyArray<Kind> = Kind.literals

/** The small square that shows a kind's colour. */
export const swatch = (kind: Kind): Html => markup`<i class="swatch k-${kind}"></i>`

/** A stretch of a bar. */
export interface Stretch {
  readonly of: string
  readonly tokens: number
}

const percent = (part: number, whole: number): string => {
  const value = (part / whole) * 100
  return Number.isFinite(value) ? String(Math.round(Math.min(100, Math.max(0, value)) * 100) / 100) : "0"
}

/**
 * Stretches side by side, as wide together as `whole` allows: all of it is the full width. It repeats numbers that stand beside it,
 * so it is hidden from who has it read out.
 */
export const bar = (stretches: ReadonlyArray<Stretch>, whole: number, name = "bar"): Html => {
  let before = 0
  const rects = stretches.flatMap(({ of, tokens }) => {
    if (!(tokens > 0) || !(whole > 0)) return []
    const from = percent(before, whole)
    before += tokens
    return [markup`<rect class="${of}" x="${from}%" width="${percent(tokens, whole)}%" height="100%" />`]
  })
  return markup`<svg class="${name}" aria-hidden="true">${rects}</svg>`
}
