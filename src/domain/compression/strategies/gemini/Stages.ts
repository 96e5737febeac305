/**
 * How messages that exceed the summarizing model's window are made smaller: in halves, each of which gets a summary of its own,
 * and by their ends where nothing can be halved. Gemini CLI fails in this case.
 */

import { type Content, hasResponses, isMedia, type Part, text, withOutput } from "../../../content/Content.ts"
import { omittedMediaNote, resultText } from "../../../conversation/ToolOutputBound.ts"
import { firstUnits, lastUnits } from "../../../text/Bytes.ts"
import type * as Work from "../../../text/SlicedWork.ts"

const sizeOf = (value: unknown): number => JSON.stringify(value).length

/**
 * Returns two halves of about the same size. The second begins with a message that answers no call. Undefined: there is no
 * such place.
 */
export function* halving(
  contents: ReadonlyArray<Content>
): Work.SlicedWork<readonly [ReadonlyArray<Content>, ReadonlyArray<Content>] | undefined> {
  const sizes: Array<number> = []
  for (const content of contents) {
    sizes.push(sizeOf(content))
    yield
  }
  const middle = sizes.reduce((sum, size) => sum + size, 0) / 2
  let best: { readonly at: number; readonly distance: number } | undefined
  let before = 0
  for (const [at, content] of contents.entries()) {
    const distance = Math.abs(before - middle)
    if (at > 0 && !hasResponses(content) && (best === undefined || distance < best.distance)) best = { at, distance }
    before += sizes[at] ?? 0
  }
  return best === undefined ? undefined : [contents.slice(0, best.at), contents.slice(best.at)]
}

/** A part of fewer characters is not shortened. */
const minPartChars = 800

const charsOf = (part: Part): number => {
  const { functionResponse, text: plainText } = part
  if (functionResponse === undefined) return plainText?.length ?? sizeOf(part)
  return (resultText(part)?.length ?? 0) + sizeOf(functionResponse.parts ?? "")
}

const byEnds = (whole: string, maxChars: number): string =>
  whole.length <= maxChars
    ? whole
    : `${firstUnits(whole, Math.floor(maxChars / 2))}\n… ${whole.length - maxChars} characters …\n${lastUnits(whole, Math.floor(maxChars / 2))}`

/** Returns a part that shows the ends of its text in about so many characters. Media become a note. */
const shortened = (part: Part, maxChars: number): Part => {
  const { functionCall, functionResponse } = part
  if (functionResponse !== undefined) return withOutput(part, byEnds(resultText(part) ?? "", maxChars))
  if (functionCall !== undefined) {
    return {
      functionCall: { ...functionCall, args: { shortened: byEnds(JSON.stringify(functionCall.args ?? {}), maxChars) } }
    }
  }
  return text(isMedia(part) ? omittedMediaNote(part) : byEnds(part.text ?? JSON.stringify(part), maxChars))
}

/** Returns the messages with the ends of each part that is larger than half of the largest one. Undefined: all are small. */
export function* shortening(contents: ReadonlyArray<Content>): Work.SlicedWork<ReadonlyArray<Content> | undefined> {
  let largest = 0
  for (const part of contents.flatMap(({ parts }) => parts)) {
    largest = Math.max(largest, charsOf(part))
    yield
  }
  if (largest < minPartChars) return undefined
  const maxChars = largest / 2
  return contents.map((content) => ({
    ...content,
    parts: content.parts.map((part) => (charsOf(part) > maxChars ? shortened(part, Math.floor(maxChars * 0.8)) : part))
  }))
}
