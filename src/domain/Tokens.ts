import { Schema } from "effect"
import { type Part, PartShape } from "./Content.ts"
import { addressTokens, inlineText, inlineTokens } from "./Media.ts"
import { costBits, machine } from "./TokenMachine.ts"
import type { Work } from "./Work.ts"

/** A number of tokens. */
export const TokenCount = Schema.Natural.pipe(Schema.brand("TokenCount"))
export type TokenCount = typeof TokenCount.Type

/** Tokens of one model call as the provider counted them. */
export const Usage = Schema.Struct({
  /** All that was sent, what came from a cache included. */
  prompt: Schema.Natural,
  /** What was said, thoughts left out where the provider tells them apart. */
  answer: Schema.Natural,
  thoughts: Schema.Natural,
  /** The part of `prompt` that was read from a cache. */
  cached: Schema.Natural,
  /** The part of `prompt` that was written to a cache, where the provider charges for that. */
  cacheWrite: Schema.optionalKey(Schema.Natural)
})
export type Usage = typeof Usage.Type

/** Written into every log, so that counts made by another estimator are told from ours. */
export const estimatorVersion = "classes-3"

/** Characters that one step of estimating looks at. */
const chunk = 262_144

/** How far the machine has come in a text. */
export interface Progress {
  /** In hundredths of a token. */
  readonly cost: number
  readonly place: number
}
/** Before the first character. */
export const beginning: Progress = { cost: 0, place: 0 }
const costMask = (1 << costBits) - 1

/** Reads on from `start` to `end`: one pass, a few ms a MiB. */
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

/** A text's cost in whole tokens. */
export const roundedTokens = (tokens: number): number => Math.max(1, Math.round(tokens))

/** In whole tokens; only the empty text has none. */
const tokensOf = (text: string, { cost }: Progress): number => (text === "" ? 0 : roundedTokens(cost / 100))

/** Estimated tokens of a text, sliced: the same number as at once. */
export function* textTokens(text: string): Work<number> {
  let progress = beginning
  for (let at = 0; at < text.length; at += chunk) {
    const end = Math.min(text.length, at + chunk)
    progress = scan(text, at, end, progress)
    yield end - at
  }
  return tokensOf(text, progress)
}

/** Estimated tokens of a text, at once. */
export const estimateText = (text: string): number => tokensOf(text, scan(text, 0, text.length, beginning))

/** The frame the protocol puts round a call or a response. */
const frame = 8

/** Tokens of bytes a part carries: text as text, all else by the rules for media. */
function* carriedTokens(mimeType: string, data: string): Work<number> {
  const text = inlineText(mimeType, data)
  if (text === undefined) return yield* inlineTokens(mimeType, data)
  return Math.ceil((yield* textTokens(text.sample)) * text.times)
}

/** Tokens of media, of a part or of a part within a response; undefined for any other part. */
function* mediaTokens({ fileData, inlineData }: Part): Work<number | undefined> {
  if (inlineData !== undefined) return yield* carriedTokens(inlineData.mimeType ?? "", inlineData.data ?? "")
  return fileData === undefined ? undefined : addressTokens(fileData.mimeType ?? "")
}

const isPart = Schema.is(PartShape)

/** Tokens of what stands beside the answer in a response: media by their rules, all else by its JSON. */
function* nestedPartsTokens(parts: unknown): Work<number> {
  if (parts === undefined) return 0
  const list: ReadonlyArray<unknown> = Array.isArray(parts) ? parts : [parts]
  let tokens = 0
  for (const one of list)
    tokens += (isPart(one) ? yield* mediaTokens(one) : undefined) ?? (yield* textTokens(JSON.stringify(one)))
  return tokens
}

/**
 * Estimated tokens of one part: text by its characters, calls and responses by their JSON, media by the rules of the API
 * (Media.ts), also within a response. A response that is one text counts as that text.
 */
export function* partTokens(part: Part, output: string | undefined): Work<number> {
  yield 20
  const media = yield* mediaTokens(part)
  if (media !== undefined) return media
  if (part.functionCall !== undefined) {
    const args = part.functionCall.args === undefined ? "" : JSON.stringify(part.functionCall.args)
    return frame + estimateText(part.functionCall.name) + (yield* textTokens(args))
  }
  if (part.functionResponse !== undefined) {
    const { name = "", parts, response } = part.functionResponse
    const text = output ?? JSON.stringify(response ?? "")
    return frame + estimateText(name) + (yield* textTokens(text)) + (yield* nestedPartsTokens(parts))
  }
  if (part.text !== undefined) return yield* textTokens(part.text)
  return yield* textTokens(JSON.stringify(part))
}
