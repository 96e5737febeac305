/** Counts of tokens: a provider's usage, and the estimates of texts and parts. */

import { Schema } from "effect"
import type { Part } from "../content/Content.ts"
import { remoteTokens, sampleText, inlineTokens } from "../content/Media.ts"
import { responseContent } from "../content/MediaBlocks.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { costBits, machine } from "./TokenMachine.ts"

/** A number of tokens. */
export const TokenCount = Schema.Natural.pipe(Schema.brand("TokenCount"))
export type TokenCount = typeof TokenCount.Type

/** Rounds tokens to a whole count of at least 0. */
export const tokenCount = (tokens: number): TokenCount => TokenCount.make(Math.max(0, Math.round(tokens)))

/** Tokens of one model call, as counted by the provider. */
export const Usage = Schema.Struct({
  /** The whole request, including what came from a cache. */
  prompt: Schema.Natural,
  /** The answer, without thoughts if the provider counts them separately. */
  answer: Schema.Natural,
  thoughts: Schema.Natural,
  /** The part of `prompt` that was read from a cache. */
  cached: Schema.Natural,
  /** The part of `prompt` that was written to a cache, if the provider charges for that. */
  cacheWrite: Schema.optionalKey(Schema.Natural),
  /** The part of `cacheWrite` that the provider keeps for an hour, at a higher price. */
  cacheWriteHour: Schema.optionalKey(Schema.Natural),
  /** US dollars, where an agent recorded them; 0 for a call that reached no model. */
  cost: Schema.optionalKey(Schema.Finite)
})
export type Usage = typeof Usage.Type

/** Adds two counts. Sums stay whole numbers that JSON can hold, whatever a file contains. */
export const addClamped = (a: number, b: number): number => Math.min(Number.MAX_SAFE_INTEGER, a + b)

/** Adds the tokens of two calls. A count that neither states is in the sum neither. */
export const addUsage = (one: Usage, other: Usage): Usage => {
  const stated = (["cacheWrite", "cacheWriteHour"] as const).filter((key) => (one[key] ?? other[key]) !== undefined)
  return {
    prompt: addClamped(one.prompt, other.prompt),
    answer: addClamped(one.answer, other.answer),
    thoughts: addClamped(one.thoughts, other.thoughts),
    cached: addClamped(one.cached, other.cached),
    ...Object.fromEntries(stated.map((key) => [key, addClamped(one[key] ?? 0, other[key] ?? 0)]))
  }
}

/** The version of the estimator. It is written into every log, so that counts of different estimators can be distinguished. */
export const estimatorVersion = "classes-3"

/** Characters that one estimation step processes. */
const chunkChars = 262_144
/** Characters among which the last one that fits is searched for. */
const searchedChars = 16_384

/** The progress of the machine in a text. */
export interface Progress {
  /** The cost so far in hundredths of a token. */
  readonly cost: number
  readonly place: number
}
/** The state before the first character. */
export const beginning: Progress = { cost: 0, place: 0 }
const costMask = (1 << costBits) - 1

/** Reads from `start` to `end` in one pass, a few ms per MiB. */
export const scan = (text: string, start: number, end: number, from: Progress): Progress => {
  const { classOf, steps } = machine()
  let { cost, place } = from
  for (let i = start; i < end; i += 1) {
    const step = steps[place + (classOf[text.charCodeAt(i)] ?? 0)] ?? 0
    place = step >> costBits
    cost += step & costMask
  }
  return { cost, place }
}

/** Converts a cost to whole tokens. */
export const roundedTokens = (tokens: number): number => Math.max(1, Math.round(tokens))

/** Whole tokens of a text; only the empty text has none. */
const tokensOf = (text: string, { cost }: Progress): number => (text === "" ? 0 : roundedTokens(cost / 100))

/** Estimated tokens of a text, computed in slices: the same number as `estimateText`. */
export function* textTokens(text: string): SlicedWork<number> {
  let progress = beginning
  for (let at = 0; at < text.length; at += chunkChars) {
    const end = Math.min(text.length, at + chunkChars)
    progress = scan(text, at, end, progress)
    yield
  }
  return tokensOf(text, progress)
}

/**
 * Returns how much of a part of a text fits into a number of estimated tokens, in slices: the offset behind it, and its tokens. `from` is the progress in
 * what stands before the part.
 */
export function* fittingPart(
  text: string,
  [start, end]: readonly [start: number, end: number],
  tokens: number,
  from: Progress = beginning
): SlicedWork<{ readonly at: number; readonly tokens: number }> {
  let progress = from
  for (let at = start; at < end; at += searchedChars) {
    const pieceEnd = Math.min(end, at + searchedChars)
    const begun = progress
    const after = (middle: number) => roundedTokens(scan(text, at, middle, begun).cost / 100)
    if (after(pieceEnd) > tokens) {
      let [low, high] = [at, pieceEnd]
      while (low < high) {
        const middle = Math.ceil((low + high) / 2)
        if (after(middle) <= tokens) low = middle
        else high = middle - 1
      }
      return { at: low, tokens: after(low) }
    }
    progress = scan(text, at, pieceEnd, progress)
    if (pieceEnd < end) yield
  }
  return { at: end, tokens: progress.cost === 0 ? 0 : roundedTokens(progress.cost / 100) }
}

/**
 * Estimated tokens of a text, computed at once.
 *
 * **Example** (Estimating a text)
 *
 * ```ts
 * import { Tokens } from "palimpsest"
 *
 * console.log(Tokens.estimateText("Why does the build fail?")) // => 6
 * ```
 */
export const estimateText = (text: string): number => tokensOf(text, scan(text, 0, text.length, beginning))

/** Tokens of the protocol around a call or a response. */
const callFrameTokens = 8

/** Tokens of inline data: text as text, anything else by the rules for media. */
function* carriedTokens(mimeType: string, data: string): SlicedWork<number> {
  const text = sampleText(mimeType, data)
  if (text === undefined) return yield* inlineTokens(mimeType, data)
  return Math.ceil((yield* textTokens(text.sample)) * text.times)
}

/** Tokens of media, in a part or within a response. Undefined for any other part. */
function* mediaTokens({ fileData, inlineData }: Part): SlicedWork<number | undefined> {
  if (inlineData !== undefined) return yield* carriedTokens(inlineData.mimeType ?? "", inlineData.data ?? "")
  return fileData === undefined ? undefined : remoteTokens(fileData.mimeType ?? "")
}

/** What a part that is no media puts into a request: the tokens of the protocol around it, its texts, and the media within a response. */
export const requestContent = (part: Part) => {
  if (part.functionCall !== undefined) {
    const { args, name } = part.functionCall
    return { frame: callFrameTokens, texts: [name, args === undefined ? "" : JSON.stringify(args)], media: [] }
  }
  if (part.functionResponse !== undefined) {
    const { media, text } = responseContent(part)
    return { frame: callFrameTokens, texts: [part.functionResponse.name ?? "", text], media }
  }
  return { frame: 0, texts: [part.text ?? JSON.stringify(part)], media: [] }
}

/**
 * Estimated tokens of one part: text by its characters, calls and responses by their JSON, media by the rules of the API (Media.ts), also within a
 * response. A response that consists of one text counts as that text.
 */
export function* partTokens(part: Part): SlicedWork<number> {
  const own = yield* mediaTokens(part)
  if (own !== undefined) return own
  const { frame, media, texts } = requestContent(part)
  let tokens = frame
  for (const text of texts) tokens += yield* textTokens(text)
  for (const one of media) tokens += (yield* mediaTokens(one)) ?? 0
  return tokens
}
