/** Gemini CLI's estimate of tokens, by which the strategy `gemini` decides. */

import { type Content, type FunctionResponse, isMedia, isPart, type Part } from "../../../content/Content.ts"
import * as Work from "../../../text/SlicedWork.ts"

/** Tokens per UTF-16 unit, in ASCII (code up to 127) and outside it. */
export interface Rates {
  readonly ascii: number
  readonly other: number
}
/** Gemini CLI, March 2026. */
export const defaultRates: Rates = { ascii: 0.25, other: 1.3 }

/** In UTF-16 units. A longer text counts a quarter of its length, whatever its script. */
const maxExactUnits = 100_000
/** UTF-16 units per token, for everything that is counted by length. */
export const unitsPerToken = 4
/** Parts nested deeper in responses count as 0. */
const maxDepth = 3
/** Fixed token counts of media. */
const mediaTokens = { image: 3_000, pdf: 25_800 }

/** Estimates the tokens of a text, without rounding. */
export const textCost = (value: string, rates: Rates): number => {
  if (value.length > maxExactUnits) return value.length / unitsPerToken
  let cost = 0
  for (let at = 0; at < value.length; at += 1) cost += value.charCodeAt(at) <= 127 ? rates.ascii : rates.other
  return cost
}

const jsonCost = (value: unknown): number => JSON.stringify(value).length / unitsPerToken

const answerCost = (answer: unknown): number => {
  if (answer === undefined || answer === null) return 0
  return typeof answer === "string" ? answer.length / unitsPerToken : jsonCost(answer)
}

const responseCost = (answer: FunctionResponse, depth: number, rates: Rates): number => {
  const own = (answer.name?.length ?? 0) / unitsPerToken + answerCost(answer.response)
  if (!Array.isArray(answer.parts) || depth >= maxDepth) return own
  let nested = 0
  for (const part of answer.parts) nested += isPart(part) ? partCost(part, depth + 1, rates) : jsonCost(part)
  // The original estimates nested parts with the same function, which rounds down once more.
  return own + Math.floor(nested)
}

const mediaCost = (part: Part): number => {
  const mimeType = part.inlineData?.mimeType ?? part.fileData?.mimeType ?? ""
  if (mimeType.startsWith("image/")) return mediaTokens.image
  return mimeType.startsWith("application/pdf") ? mediaTokens.pdf : jsonCost(part)
}

/** Text takes precedence over media. */
const partCost = (part: Part, depth: number, rates: Rates): number => {
  if (part.text !== undefined) return textCost(part.text, rates)
  if (part.functionResponse !== undefined) return responseCost(part.functionResponse, depth, rates)
  return isMedia(part) ? mediaCost(part) : jsonCost(part)
}

/** `estimate`, one part at a time, with the same result. */
export function* estimating(parts: Iterable<Part>, rates: Rates = defaultRates): Work.SlicedWork<number> {
  let sum = 0
  for (const part of parts) {
    sum += partCost(part, 0, rates)
    yield
  }
  return Math.floor(sum)
}

/** Estimates the tokens of these parts as Gemini CLI does. The sum is rounded down once. */
export const estimate = (parts: Iterable<Part>, rates: Rates = defaultRates): number =>
  Work.runSync(estimating(parts, rates))

/** Returns all parts of these messages, in order. */
export const partsOf = (contents: ReadonlyArray<Content>): ReadonlyArray<Part> => contents.flatMap(({ parts }) => parts)

/** Whether Gemini CLI asks the API for a count, which it does only for media. */
export const needsApiCount = (parts: ReadonlyArray<Part>): boolean => parts.some(isMedia)
