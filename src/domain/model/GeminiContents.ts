import { type Content, type Part, withSignature } from "../content/Content.ts"
import { wireContent } from "../content/WireContent.ts"
import { noWords } from "./Dialogue.ts"
import { isCarried } from "./ProviderSignature.ts"

/** Contents in the dialect of the Gemini API, from conversations that models of other providers took part in. */

const isBlank = (part: Part): boolean => part.text === "" && Object.keys(part).length === 1

const ownPart = (part: Part): Part => {
  const { thoughtSignature = "", ...rest } = part
  return isCarried(thoughtSignature) ? rest : part
}

/** A content as the Gemini API takes it: without the thinking of other providers, and with a signature at its first call. */
export const geminiContent = (content: Content): Content => {
  const wire = wireContent(content)
  if (wire.role !== "model") return wire
  const own = wire.parts.map(ownPart)
  const parts = own.filter((part) => !isBlank(part))
  if (own.length === parts.length && own.every((part, at) => part === wire.parts[at])) return withSignature(wire)
  return withSignature({ ...wire, parts: parts.length === 0 ? [{ text: noWords.model }] : parts })
}
