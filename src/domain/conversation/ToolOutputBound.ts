/**
 * Tool results that are too large for the window when they arrive. The entry holds the whole result and the form in which it
 * is shown. The shown text is derived each time, so no byte is stored twice.
 */

import { Schema } from "effect"
import { bytesOf } from "../content/Base64Bytes.ts"
import { type Part, withOutput } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import { responseContent } from "../content/MediaBlocks.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import { untrustedLine } from "../text/UntrustedText.ts"
import { TokenCount } from "../tokens/Tokens.ts"
import { OutputForm, defaultSize, shorten, recallNote } from "./ToolOutputShortening.ts"

/** The form in which a bounded part is shown, and the tokens of that form. */
export const BoundedResult = Schema.Union([
  Schema.Struct({
    form: OutputForm,
    /** Characters of `head-tail-chars` or lines of `head-tail-lines`. Not used by `last-lines`, which has its own measure. */
    size: Schema.Natural,
    tokens: TokenCount
  }),
  /** A text that replaces the result, such as a summary. */
  Schema.Struct({ text: Schema.String, tokens: TokenCount })
])
export type BoundedResult = typeof BoundedResult.Type

/** Limits for the part of a tool's output that enters the window. */
export interface OutputBound {
  /** Results with more characters are shortened. 0: results are never shortened. */
  readonly most: number
  readonly form: OutputForm
  /** Lines of `head-tail-lines`. */
  readonly lines: number
}

/** The first fifth and the last four fifths of 40,000 characters, because both ends of a new result matter. */
export const defaultBound: OutputBound = { most: defaultSize.chars, form: "head-tail-chars", lines: defaultSize.lines }

/** Returns the text of a result without its media. Undefined when the part is not a result. */
export const resultText = (part: Part): string | undefined => {
  return part.functionResponse === undefined ? undefined : responseContent(part).text
}

/** Returns a result with another text and the same media. A part that is not a result becomes that text alone. */
const withShownText = (part: Part, text: string): Part => {
  if (part.functionResponse === undefined) return { text }
  const shown = withOutput(part, text)
  const { media } = responseContent(part)
  return media.length === 0 ? shown : { ...shown, functionResponse: { ...shown.functionResponse, parts: media } }
}

/** The form in which a part is shown, before its tokens are counted. */
export type BoundedForm = { readonly form: OutputForm; readonly size: number } | { readonly text: string }

/** Returns the part that replaces a bounded one in the window. */
export const boundedPart = (part: Part, handle: Handle, recipe: BoundedForm): Part =>
  "text" in recipe
    ? withShownText(part, `${recipe.text}\n${recallNote(handle)}`)
    : withShownText(
        part,
        shorten(resultText(part) ?? part.text ?? "", handle, recipe.form, {
          ...defaultSize,
          chars: recipe.size,
          lines: recipe.size
        })
      )

/** Returns the note for an image or a document that does not fit the window. */
export const omittedMediaNote = (part: Part): string => {
  const { data = "", mimeType = "file" } = part.inlineData ?? {}
  return `${runtimeMark} A ${untrustedLine(mimeType)} of ${bytesOf(data).length} bytes stood here; it does not fit the window.`
}

/** Returns the maximum for each so that all together fit. Small ones leave the rest of their share to the others. */
export const fairShare = (sizes: ReadonlyArray<number>, all: number): number => {
  let left = all
  for (const [index, size] of [...sizes].sort((one, other) => one - other).entries()) {
    const share = left / (sizes.length - index)
    if (size > share) return share
    left -= size
  }
  return Infinity
}
