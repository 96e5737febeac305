import { Schema } from "effect"
import { outputText, type Part, withOutput } from "./Content.ts"
import type { Handle } from "./Handle.ts"
import { foreignLine } from "./Foreign.ts"
import { runtimeMark } from "./RuntimeMark.ts"
import { TokenCount } from "./Tokens.ts"
import { OutputForm, seedSize, shorten, wholeAt } from "./ToolOutput.ts"

/**
 * Results of tools that are too large for the window from the start: the entry holds the whole, and how it is shown. What
 * stands in its place is made of the whole each time, so that no byte of it is written twice.
 */

/** How a part of an entry is shown in its place, and its tokens then. */
export const Bounded = Schema.Union([
  Schema.Struct({
    form: OutputForm,
    /** Characters of `head-tail-chars`, lines of `head-tail-lines`; nothing for `last-lines`, which has its own measure. */
    size: Schema.Natural,
    tokens: TokenCount
  }),
  /** A text that somebody wrote for it: a summary. */
  Schema.Struct({ text: Schema.String, tokens: TokenCount })
])
export type Bounded = typeof Bounded.Type

/** What of an output enters the window. */
export interface OutputBound {
  /** Characters from which on a result is shortened (seed 001: 40,000; seed 002: 4,000,000). 0: none is. */
  readonly most: number
  readonly form: OutputForm
  /** Lines of `head-tail-lines` (seed 002: 1,000). */
  readonly lines: number
}

/** The first fifth and the last four fifths of 40,000 characters: of a result that just came both ends matter (spec 3.4, 5.2). */
export const defaultBound: OutputBound = { most: seedSize.chars, form: "head-tail-chars", lines: seedSize.lines }

/** A result's text: its own, or the JSON of what it answered. Undefined: it is no result. */
export const resultText = (part: Part): string | undefined => {
  const { functionResponse } = part
  if (functionResponse === undefined) return undefined
  return outputText(part) ?? JSON.stringify(functionResponse.response) ?? ""
}

/** A result that is shown by another text; media that lie in it stay. What is no result is that text alone. */
const saying = (part: Part, text: string): Part => {
  if (part.functionResponse === undefined) return { text }
  const shown = withOutput(part, text)
  const media = part.functionResponse?.parts
  return media === undefined || shown.functionResponse === undefined
    ? shown
    : { ...shown, functionResponse: { ...shown.functionResponse, parts: media } }
}

/** How a part is shown, before its tokens are known. */
export type Recipe = { readonly form: OutputForm; readonly size: number } | { readonly text: string }

/** What stands in the window for a part. */
export const boundedPart = (part: Part, handle: Handle, recipe: Recipe): Part =>
  "text" in recipe
    ? saying(part, `${recipe.text}\n${wholeAt(handle)}`)
    : saying(
        part,
        shorten(resultText(part) ?? part.text ?? "", handle, recipe.form, {
          ...seedSize,
          chars: recipe.size,
          lines: recipe.size
        })
      )

/** What is said of an image or a document that does not fit the window. */
export const unshownMedia = (part: Part): string => {
  const { data = "", mimeType = "file" } = part.inlineData ?? {}
  return `${runtimeMark} A ${foreignLine(mimeType)} of ${Math.floor((data.length * 3) / 4)} bytes stood here; it does not fit the window.`
}
