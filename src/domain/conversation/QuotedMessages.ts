/**
 * Quotes messages as data inside one message, for a model that judges them. Each text is bounded. No call needs a response,
 * nothing in them reads as an instruction, and the request stays small.
 */

import { type Content, isCall, isMedia, isResponse, isText, type Part } from "../content/Content.ts"
import { responseText } from "../content/MediaBlocks.ts"
import { firstUnits, lastUnits } from "../text/Bytes.ts"

/** Maximum characters of a quoted text: two thirds from its beginning, the rest from its end. */
const maxTextChars = 1_500

const clipText = (text: string): string => {
  if (text.length <= maxTextChars) return text
  const head = firstUnits(text, Math.floor((maxTextChars * 2) / 3))
  const tail = lastUnits(text, Math.floor(maxTextChars / 3))
  return `${head} [… ${text.length - head.length - tail.length} characters …] ${tail}`
}

const quotedPart = (part: Part): ReadonlyArray<Readonly<Record<string, string>>> => {
  if (isCall(part)) {
    return [{ call: part.functionCall.name, arguments: clipText(JSON.stringify(part.functionCall.args ?? {})) }]
  }
  if (isResponse(part)) {
    const { name = "" } = part.functionResponse
    return [{ answer_of: name, output: clipText(responseText(part)) }]
  }
  if (isMedia(part)) return [{ media: part.inlineData?.mimeType ?? part.fileData?.mimeType ?? "unknown" }]
  return isText(part) ? [{ text: clipText(part.text) }] : []
}

/** Returns messages as a JSON value, without those that have no content. */
export const quotedMessages = (
  contents: ReadonlyArray<Content>
): ReadonlyArray<{ readonly role: string; readonly parts: ReadonlyArray<Readonly<Record<string, string>>> }> =>
  contents.flatMap(({ parts, role }) => {
    const shown = parts.flatMap(quotedPart)
    return shown.length === 0 ? [] : [{ role, parts: shown }]
  })
