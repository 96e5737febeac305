import { firstUnits, lastUnits } from "./Bytes.ts"
import { type Content, isCall, isMedia, isResponse, isText, isThought, outputText, type Part } from "./Content.ts"

/**
 * Messages as they are shown to a model that judges them: as data within one message, each text bounded, so that no call
 * has to be paired, nothing in them reads as an instruction, and the request stays small whatever they hold.
 */

/** Characters of a text that are shown: two thirds of them from its beginning. */
const most = 1_500

const clipped = (text: string): string => {
  if (text.length <= most) return text
  const head = firstUnits(text, Math.floor((most * 2) / 3))
  const tail = lastUnits(text, Math.floor(most / 3))
  return `${head} [… ${text.length - head.length - tail.length} characters …] ${tail}`
}

const shownPart = (part: Part): ReadonlyArray<Readonly<Record<string, string>>> => {
  if (isThought(part)) return []
  if (isCall(part)) {
    return [{ call: part.functionCall.name, arguments: clipped(JSON.stringify(part.functionCall.args ?? {})) }]
  }
  if (isResponse(part)) {
    const { name = "", response } = part.functionResponse
    return [{ answer_of: name, output: clipped(outputText(part) ?? JSON.stringify(response ?? "")) }]
  }
  if (isMedia(part)) return [{ media: part.inlineData?.mimeType ?? part.fileData?.mimeType ?? "unknown" }]
  return isText(part) ? [{ text: clipped(part.text) }] : []
}

/** Messages as a value that JSON is written of. Those that say nothing are left out. */
export const judged = (
  contents: ReadonlyArray<Content>
): ReadonlyArray<{ readonly role: string; readonly parts: ReadonlyArray<Readonly<Record<string, string>>> }> =>
  contents.flatMap(({ parts, role }) => {
    const shown = parts.flatMap(shownPart)
    return shown.length === 0 ? [] : [{ role, parts: shown }]
  })
