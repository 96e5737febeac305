import { Schema } from "effect"
import { type Part } from "./Content.ts"
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

/** The window of a model nobody told us about (spec 2). */
export const defaultLimit = 1_048_576

const limits: ReadonlyArray<readonly [name: RegExp, tokens: number]> = [
  [/^gemma-4-/, 256_000],
  [/^gemini-1\.5-pro/, 2_097_152]
]

/** The window of a model, in tokens: input, and where they share it, the answer too (spec 2). */
export const tokenLimit = (model: string): number => limits.find(([name]) => name.test(model))?.[1] ?? defaultLimit

/** Written into every log, so that counts made by another estimator are told from ours. */
export const estimatorVersion = "classes-2"

/**
 * The estimator is a machine that reads characters and adds a cost for each state it enters. States are runs of one
 * kind of character, by their length as far as that matters; costs are fitted to a real vocabulary. They are whole
 * hundredths of a token, so that sums are exact wherever a text is cut.
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

/** What the 1st, 2nd, … character of a run costs. Behind the last one the costs go on at `again`. */
interface Run {
  readonly costs: ReadonlyArray<number>
  readonly again: number
}

/** The last cost holds for all that follow. */
const steady = (...costs: ReadonlyArray<number>): Run => ({ costs, again: costs.length })

/** After `costs`, one token for every `turn` characters more. */
const turning = (costs: ReadonlyArray<number>, turn: number): Run => ({
  costs: [...costs, ...Array.from({ length: turn - 1 }, () => 0), 100],
  again: costs.length + 1
})

const word = steady(100, 0, 0, 0, 0, 0, 0, 17)
const runs: Record<Kind, Run> = {
  space: turning([0, 65], 128),
  line: turning([70], 16),
  mark: steady(90, 0, 25),
  digit: { costs: [100, 0, 0], again: 1 },
  lower: word,
  upper: word
}
/** A run that follows letters or digits without a gap: ids, hashes, camelCase. */
const joined = steady(70, 10, 10, 10, 0, 0, 0, 17)
/** A joined run that follows another of one or two characters: base64 and hexadecimal digits rather than words. */
const jumbled = steady(100, 20, 20, 20, 10, 10, 10, 17)

interface State {
  readonly kind: Kind | "start"
  readonly joint: "none" | "joined" | "jumbled"
  /** Characters of the run so far, as far as they matter. */
  readonly length: number
}

const stateName = ({ joint, kind, length }: State): string => `${kind} ${joint} ${length}`

const runOf = ({ joint, kind }: State): Run => {
  if (kind === "start") return steady(0)
  return joint === "none" ? runs[kind] : joint === "joined" ? joined : jumbled
}

const isWord = (kind: State["kind"]): boolean => kind === "digit" || kind === "lower" || kind === "upper"

const following = (state: State, kind: Kind): State => {
  if (kind === state.kind) {
    const { again, costs } = runOf(state)
    return { ...state, length: state.length < costs.length ? state.length + 1 : again }
  }
  // A capital begins the word that follows it.
  if (state.kind === "upper" && kind === "lower" && state.length === 1) return { ...state, kind, length: 2 }
  if (!isWord(kind) || !isWord(state.kind)) return { kind, joint: "none", length: 1 }
  return { kind, joint: state.joint === "none" || state.length > 2 ? "joined" : "jumbled", length: 1 }
}

/** Kinds that a state has room for. */
const columns = 8

/**
 * The machine as one table, for speed: at a state's place plus a kind stand the next state's place and, in the lowest
 * eight bits, its cost. The start is at place 0.
 */
const machine = (() => {
  const start: State = { kind: "start", joint: "none", length: 1 }
  const states: Array<State> = [start]
  const numbers = new Map([[stateName(start), 0]])
  const table: Array<number> = []
  for (let i = 0; i < states.length; i += 1) {
    for (const [kind, column] of Object.entries(kinds)) {
      const after = following(states[i] ?? start, kind as Kind)
      const name = stateName(after)
      if (!numbers.has(name)) numbers.set(name, states.push(after) - 1)
      const place = (numbers.get(name) ?? 0) * columns
      table[i * columns + column] = (place << 8) | (runOf(after).costs[after.length - 1] ?? 0)
    }
  }
  return Int32Array.from(table, (step) => step ?? 0)
})()

/** Hundredths of a token that a character outside ASCII costs, by script. */
const otherCost = (code: number): number => {
  if (code < 0x250) return 50
  if (code < 0x530) return 33
  if (code < 0x780) return 38
  if (code < 0x2000) return 60
  if (code < 0x2e80) return 100
  if (code < 0xd7b0) return code >= 0xac00 ? 60 : 75
  return code >= 0xd800 && code < 0xe000 ? 90 : 100
}

/** Characters that one step of estimating looks at. */
const chunk = 262_144

/** How far the machine has come in a text. */
interface Progress {
  readonly cost: number
  readonly place: number
}
const beginning: Progress = { cost: 0, place: 0 }

/** Reads on from `start` to `end`: one pass, a few ms a MiB. */
const scan = (text: string, start: number, end: number, from: Progress): Progress => {
  let { cost, place } = from
  for (let i = start; i < end; i += 1) {
    const code = text.charCodeAt(i)
    if (code < 128) {
      const step = machine[place + (asciiKind[code] ?? 0)] ?? 0
      place = step >> 8
      cost += step & 255
    } else {
      place = 0
      cost += otherCost(code)
    }
  }
  return { cost, place }
}

const tokensOf = ({ cost }: Progress): number => Math.ceil(cost / 100)

/** Estimated tokens of a text, sliced: the same number as at once. */
export function* textTokens(text: string): Work<number> {
  let progress = beginning
  for (let at = 0; at < text.length; at += chunk) {
    const end = Math.min(text.length, at + chunk)
    progress = scan(text, at, end, progress)
    yield end - at
  }
  return tokensOf(progress)
}

/** Estimated tokens of a text, at once. */
export const estimateText = (text: string): number => tokensOf(scan(text, 0, text.length, beginning))

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
