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

/**
 * The estimator is a machine that reads characters and adds a cost for each state it enters. States are runs of one
 * kind of character, by their length as far as that matters; costs are fitted to a real vocabulary.
 */
const kinds = { space: 0, line: 1, mark: 2, digit: 3, lower: 4, upper: 5 } as const
type Kind = keyof typeof kinds

const kindOf = (code: number): Kind => {
  if (code === 10 || code === 13) return "line"
  if (code <= 32) return "space"
  if (code >= 48 && code <= 57) return "digit"
  if (code >= 65 && code <= 90) return "upper"
  if (code >= 97 && code <= 122) return "lower"
  return "mark"
}
const asciiKind = Uint8Array.from({ length: 128 }, (_, code) => kinds[kindOf(code)])

/** Costs of the 1st, 2nd, … character of a run; the last one holds for all that follow (digits: in turns of three). */
const word = [1, 0, 0, 0, 0, 0, 0, 0.17]
const runCosts = {
  space: [0, 0.65, 0],
  line: [0.7, 0],
  mark: [0.9, 0, 0.25],
  digit: [1, 0, 0],
  lower: word,
  upper: word
}
/** A run that follows letters or digits without a gap: ids, hashes, camelCase. */
const joined = [0.7, 0.1, 0.1, 0.1, 0, 0, 0, 0.17]

interface State {
  readonly kind: Kind | "start"
  readonly isJoined: boolean
  /** Characters of the run so far, as far as they matter. */
  readonly length: number
}

const stateName = ({ isJoined, kind, length }: State): string => `${kind} ${isJoined} ${length}`

const costsOf = ({ isJoined, kind }: State): ReadonlyArray<number> =>
  kind === "start" ? [0] : isJoined ? joined : runCosts[kind]

const isWord = (kind: State["kind"]): boolean => kind === "digit" || kind === "lower" || kind === "upper"

const following = (state: State, kind: Kind): State => {
  const { length } = costsOf(state)
  if (kind === state.kind) {
    const turns = kind === "digit" && !state.isJoined
    return { ...state, length: turns ? (state.length % length) + 1 : Math.min(length, state.length + 1) }
  }
  // A capital begins the word that follows it.
  if (state.kind === "upper" && kind === "lower" && state.length === 1) return { ...state, kind, length: 2 }
  return { kind, isJoined: isWord(kind) && isWord(state.kind), length: 1 }
}

const machine = (() => {
  const start: State = { kind: "start", isJoined: false, length: 1 }
  const states: Array<State> = [start]
  const numbers = new Map([[stateName(start), 0]])
  const next: Array<number> = []
  const costs: Array<number> = []
  for (let i = 0; i < states.length; i += 1) {
    const state = states[i] ?? start
    costs.push(costsOf(state)[state.length - 1] ?? 0)
    for (const [kind, column] of Object.entries(kinds)) {
      const after = following(state, kind as Kind)
      const name = stateName(after)
      if (!numbers.has(name)) {
        numbers.set(name, states.length)
        states.push(after)
      }
      next[i * 8 + column] = numbers.get(name) ?? 0
    }
  }
  return { next: Uint16Array.from(next, (state) => state ?? 0), costs: Float64Array.from(costs) }
})()

/** Tokens of a character outside ASCII, by script. */
const otherTokens = (code: number): number => {
  if (code < 0x250) return 0.5
  if (code < 0x530) return 0.33
  if (code < 0x780) return 0.38
  if (code < 0x2000) return 0.6
  if (code < 0x2e80) return 1
  if (code < 0xd7b0) return code >= 0xac00 ? 0.6 : 0.75
  return code >= 0xd800 && code < 0xe000 ? 0.9 : 1
}

/** Characters that one step of estimating looks at. */
const chunk = 262_144

/** Tokens of `text` from `start` to `end`: one pass, a few ms a MiB. */
const scan = (text: string, start: number, end: number): number => {
  const { costs, next } = machine
  let tokens = 0
  let state = 0
  for (let i = start; i < end; i += 1) {
    const code = text.charCodeAt(i)
    if (code < 128) {
      state = next[state * 8 + (asciiKind[code] ?? 0)] ?? 0
      tokens += costs[state] ?? 0
    } else {
      state = 0
      tokens += otherTokens(code)
    }
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
    return (
      frame + estimateText(part.functionResponse.name ?? "") + (yield* textTokens(text)) + (yield* textTokens(nested))
    )
  }
  if (part.text !== undefined) return yield* textTokens(part.text)
  return yield* textTokens(JSON.stringify(part))
}
