import { Schema } from "effect"
import { type Part } from "./Content.ts"
import type { Work } from "./Work.ts"

/** A number of tokens. */
export const TokenCount = Schema.Natural.pipe(Schema.brand("TokenCount"))
export type TokenCount = typeof TokenCount.Type

/** The window of a model nobody told us about (spec 2). */
export const defaultLimit = 1_048_576

const limits: ReadonlyArray<readonly [name: RegExp, tokens: number]> = [
  [/^gemma-4-/, 256_000],
  [/^gemini-1\.5-pro/, 2_097_152]
]

/** The window of a model, in tokens: input, and where they share it, the answer too (spec 2). */
export const tokenLimit = (model: string): number => limits.find(([name]) => name.test(model))?.[1] ?? defaultLimit

/** Written into every log, so that counts made by another estimator are told from ours. */
export const estimatorVersion = "classes-1"

const kinds = { space: 0, line: 1, mark: 2, digit: 3, lower: 4, upper: 5, other: 6 } as const

const kindOf = Uint8Array.from({ length: 65_536 }, (_, code) => {
  if (code === 10 || code === 13) return kinds.line
  if (code <= 32) return kinds.space
  if (code >= 48 && code <= 57) return kinds.digit
  if (code >= 65 && code <= 90) return kinds.upper
  if (code >= 97 && code <= 122) return kinds.lower
  return code < 128 ? kinds.mark : kinds.other
})

const longest = 64

/** Tokens of a run of n characters, n up to 64, by kind; fitted to a real vocabulary. */
const table = (cost: (length: number) => number): Float64Array =>
  Float64Array.from({ length: longest + 1 }, (_, length) => cost(length))

const runTokens = [
  table((n) => (n > 1 ? 0.65 : 0)),
  table(() => 0.7),
  table((n) => (n <= 2 ? 0.9 : 0.9 + (n - 2) * 0.25)),
  table((n) => Math.ceil(n / 3)),
  table((n) => (n <= 7 ? 1 : 1 + (n - 7) * 0.17)),
  table((n) => (n <= 7 ? 1 : 1 + (n - 7) * 0.17))
]

/** A run of letters or digits that follows the other kind without a gap: ids, hashes, camelCase. */
const joinedTokens = table((n) => (n <= 3 ? 0.6 + n * 0.1 : n <= 7 ? 1 : 1 + (n - 7) * 0.17))

/** Tokens of a character outside ASCII, by script. */
const otherTokens = Float64Array.from({ length: 65_536 }, (_, code) => {
  if (code < 0x250) return 0.5
  if (code < 0x530) return 0.33
  if (code < 0x780) return 0.38
  if (code < 0x2000) return 0.6
  if (code < 0x2e80) return 1
  if (code < 0xd7b0) return code >= 0xac00 ? 0.6 : 0.75
  return code >= 0xd800 && code < 0xe000 ? 0.9 : 1
})

/** Characters that one step of estimating looks at. */
const chunk = 262_144

/**
 * Tokens of `text` from `start` to `end`, by kind of character: words, digits, punctuation, white space, scripts.
 * One pass over runs of equal kind, under 10 ms a MiB.
 */
const scan = (text: string, start: number, end: number): number => {
  let tokens = 0
  let before = 0
  for (let i = start; i < end; ) {
    const code = text.charCodeAt(i)
    const kind = kindOf[code] ?? 6
    if (kind === 6) {
      tokens += otherTokens[code] ?? 1
      before = 6
      i += 1
      continue
    }
    let at = i + 1
    while (at < end && kindOf[text.charCodeAt(at)] === kind) at += 1
    // A capital begins the word that follows it.
    const capital = kind === 5 && at === i + 1 && at < end && kindOf[text.charCodeAt(at)] === 4
    if (capital) while (at < end && kindOf[text.charCodeAt(at)] === 4) at += 1
    let length = at - i
    const costs = kind >= 3 && before >= 3 && before < 6 ? joinedTokens : (runTokens[kind] ?? joinedTokens)
    for (; length > longest; length -= longest) tokens += costs[longest] ?? 0
    tokens += costs[length] ?? 0
    before = capital ? 4 : kind
    i = at
  }
  return tokens
}

/** Estimated tokens of a text, sliced. */
export function* textTokens(text: string): Work<number> {
  let tokens = 0
  for (let at = 0; at < text.length; at += chunk) {
    const end = Math.min(text.length, at + chunk)
    tokens += scan(text, at, end)
    yield end - at
  }
  return Math.ceil(tokens)
}

/** Estimated tokens of a text, at once. */
export const estimateText = (text: string): number => Math.ceil(scan(text, 0, text.length))

/** Tokens the API charges for an image, a page of PDF, a second of sound or film: spec 2 and the API's rules. */
const media = { image: 258, pdf: 258 * 10, other: 1_000 }

const mediaTokens = (mimeType: string): number =>
  mimeType.startsWith("image/") ? media.image : mimeType.startsWith("application/pdf") ? media.pdf : media.other

/** The frame the protocol puts round a call or a response. */
const frame = 8

/**
 * Estimated tokens of one part: text by its class of characters, calls and responses by their JSON, media by kind. A
 * response that is one text counts as that text.
 */
export function* partTokens(part: Part, output: string | undefined): Work<number> {
  yield 20
  if (part.inlineData !== undefined) return mediaTokens(part.inlineData.mimeType ?? "")
  if (part.fileData !== undefined) return mediaTokens(part.fileData.mimeType ?? "")
  if (part.functionCall !== undefined) {
    const args = part.functionCall.args === undefined ? "" : JSON.stringify(part.functionCall.args)
    return frame + estimateText(part.functionCall.name) + (yield* textTokens(args))
  }
  if (part.functionResponse !== undefined) {
    const text = output ?? JSON.stringify(part.functionResponse.response ?? "")
    const nested = part.functionResponse.parts === undefined ? "" : JSON.stringify(part.functionResponse.parts)
    return frame + estimateText(part.functionResponse.name ?? "") + (yield* textTokens(text)) + (yield* textTokens(nested))
  }
  if (part.text !== undefined) return yield* textTokens(part.text)
  return yield* textTokens(JSON.stringify(part))
}
