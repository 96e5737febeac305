import { type Content, isCall, isResponse } from "../../../content/Content.ts"
import type * as Work from "../../../text/SlicedWork.ts"

/** The fraction is out of range. Gemini CLI throws in this case. */
export interface SplitRefused {
  readonly _tag: "SplitRefused"
  readonly fraction: number
  readonly message: string
}

/**
 * Returns the index of the first message to keep. 0: nothing can be summarised. Gemini CLI also splits between a call and its
 * response when a message of the user stands between them; `isClean` is false there, by index.
 */
export function* splitting(
  contents: ReadonlyArray<Content>,
  fraction: number,
  isClean?: ReadonlyArray<boolean>
): Work.SlicedWork<number | SplitRefused> {
  if (fraction <= 0 || fraction >= 1) {
    return { _tag: "SplitRefused", fraction, message: "Fraction must be between 0 and 1" }
  }
  const sizes: Array<number> = []
  for (const content of contents) {
    sizes.push(JSON.stringify(content).length)
    yield
  }
  const target = fraction * sizes.reduce((sum, size) => sum + size, 0)
  let before = 0
  let lastSplit = 0
  for (const [index, content] of contents.entries()) {
    if (content.role === "user" && isClean?.[index] !== false && !content.parts.some(isResponse)) {
      if (before >= target) return index
      lastSplit = index
    }
    before += sizes[index] ?? 0
  }
  const last = contents[contents.length - 1]
  return last?.role === "model" && !last.parts.some(isCall) ? contents.length : lastSplit
}
