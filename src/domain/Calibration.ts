import { Schema } from "effect"
import { outputText, type Part } from "./Content.ts"
import { beginning, partTokens, roundedTokens, scan } from "./Tokens.ts"
import type * as Work from "./Work.ts"

/**
 * How far the estimator is off for one model, learned from the counts its API reports, and from that an upper bound of
 * the true count (law 3). A text is taken apart into classes, each measured in estimated tokens; a model has a factor for
 * each class, and every reported count says something about them. That is Bayesian linear regression: the factors are
 * what explains the counts best, and the bound adds how uncertain they still are.
 */

/** Classes of text that vocabularies treat differently. The order is part of what is stored. */
export const classes = [
  "prose",
  "code",
  /** Logs, tables, numbers in JSON. */
  "figures",
  "hexadecimal",
  "base64",
  "latin",
  /** Alphabets that are neither Latin nor ideographic. */
  "script",
  "cjk",
  "symbols",
  "emoji",
  "media",
  /** What the protocol puts round parts, calls and responses. */
  "frame"
] as const
/** The kinds of text whose tokens are told apart. */
export type TextClass = (typeof classes)[number]

/** Estimated tokens by class. */
export type Features = Readonly<Record<TextClass, number>>

type Amounts = Record<TextClass, number>

const nothing: Features = {
  prose: 0,
  code: 0,
  figures: 0,
  hexadecimal: 0,
  base64: 0,
  latin: 0,
  script: 0,
  cjk: 0,
  symbols: 0,
  emoji: 0,
  media: 0,
  frame: 0
}

/** What several texts have together. */
export const sum = (all: ReadonlyArray<Features>): Features => {
  const total: Amounts = { ...nothing }
  for (const each of all) for (const name of classes) total[name] += each[name]
  return total
}

/** All estimated tokens. */
export const size = (features: Features): number => classes.reduce((total, name) => total + features[name], 0)

/**
 * Changes whenever features or the estimator below them do: factors learned for others mean nothing then.
 */
export const featuresVersion = 3

type WordKind = "digit" | "lower" | "upper" | "joint" | "other"

/** Digits, letters and what joins them in base64, file names and UUIDs. */
const wordKind = (code: number): WordKind => {
  if (code >= 97 && code <= 122) return "lower"
  if (code >= 48 && code <= 57) return "digit"
  if (code >= 65 && code <= 90) return "upper"
  return code === 43 || code === 45 || code === 47 || code === 61 || code === 95 ? "joint" : "other"
}

/** Letters with accents stand within words: they are no runs of their own. */
const latinEnd = 0x250

const otherClass = (code: number): TextClass => {
  if (code < 0x2000) return "script"
  if (code === 0x200d || code === 0xfe0f || (code >= 0x2600 && code < 0x27c0)) return "emoji"
  if (code < 0x2e80) return "symbols"
  if (code < 0xd800) return "cjk"
  return code < 0xe000 ? "emoji" : "cjk"
}

/** Where the run of characters of one class beyond the Latin ones ends. */
const otherEnd = (text: string, start: number, end: number, name: TextClass): number => {
  let at = start + 1
  for (; at < end; at += 1) {
    const code = text.charCodeAt(at)
    if (code < latinEnd || otherClass(code) !== name) break
  }
  return at
}

/** Shorter runs are words, whatever they look like. */
const shortestJumble = 20
/** Changes between digits, small and capital letters, a character: words and camelCase stay below, hashes above. */
const jumbleRate = 0.28
/** A run is judged in pieces of this length, so that a long one needs no second look. */
const longestRun = 512

const hexadecimal = /^[0-9a-f-]+$|^[0-9A-F-]+$/

/** The run of word characters at `start`: where it ends, and whether it is an encoding rather than words. */
const wordRun = (text: string, start: number, end: number): { readonly end: number; readonly jumble: boolean } => {
  let changes = 0
  let before: WordKind = "other"
  let capital = false
  let at = start
  for (; at < end && at - start < longestRun; at += 1) {
    const kind = wordKind(text.charCodeAt(at))
    if (kind === "other") break
    if (kind === "joint") continue
    // A capital begins the word that follows it.
    if (kind !== before && !(capital && kind === "lower")) changes += 1
    capital = kind === "upper" && before !== "upper"
    before = kind
  }
  const length = at - start
  return { end: at, jumble: length >= shortestJumble && changes > length * jumbleRate }
}

/** Letters and what stands between them are judged in windows of whole lines of about this length. */
const windowLength = 256
const figureShare = 0.16
const markShare = 0.11
const accentShare = 0.02

/** What a window is made of, without the runs that have a class of their own. */
interface Window {
  /** Estimated tokens. */
  tokens: number
  length: number
  letters: number
  digits: number
  marks: number
  accents: number
}

const newWindow = (): Window => ({ tokens: 0, length: 0, letters: 0, digits: 0, marks: 0, accents: 0 })

const windowClass = ({ accents, digits, letters, marks }: Window): TextClass => {
  const all = digits + letters + marks + accents
  if (accents > all * accentShare) return "latin"
  if (digits > all * figureShare) return "figures"
  return marks > all * markShare ? "code" : "prose"
}

const addToWindow = (window: Window, text: string, start: number, end: number): void => {
  window.length += end - start
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at)
    if (code <= 32) continue
    const kind = wordKind(code)
    if (kind === "digit") window.digits += 1
    else if (kind === "lower" || kind === "upper") window.letters += 1
    else if (code < 128) window.marks += 1
    else window.accents += 1
  }
}

/** Characters that one step looks at. */
const step = 65_536

/** Features of a text, sliced. Each stretch costs what it costs where it stands, so all together they are the estimate. */
export function* textFeatures(text: string): Work.Work<Features> {
  const amounts: Amounts = { ...nothing }
  let at = 0
  let reported = 0
  let progress = beginning
  /** Reads on to `end`; the tokens of what lies between. */
  const read = (end: number): number => {
    const before = progress.cost
    progress = scan(text, at, end, progress)
    at = end
    return (progress.cost - before) / 100
  }
  let window = newWindow()
  const closeWindow = () => {
    amounts[windowClass(window)] += window.tokens
    window = newWindow()
  }
  while (at < text.length) {
    const start = at
    const end = Math.min(text.length, start + step)
    const code = text.charCodeAt(start)
    if (code >= latinEnd) {
      const name = otherClass(code)
      amounts[name] += read(otherEnd(text, start, end, name))
    } else {
      const run = wordRun(text, start, end)
      const stop = Math.max(run.end, start + 1)
      if (run.jumble) amounts[hexadecimal.test(text.slice(start, stop)) ? "hexadecimal" : "base64"] += read(stop)
      else {
        addToWindow(window, text, start, stop)
        window.tokens += read(stop)
      }
      if (window.length >= windowLength && (code === 10 || window.length >= 4 * windowLength)) closeWindow()
    }
    if (at - reported >= step) {
      yield 2 * (at - reported)
      reported = at
    }
  }
  closeWindow()
  yield 2 * (text.length - reported)
  return amounts
}

/** Texts that a part puts into a request; none for media. */
const textsOf = (part: Part): ReadonlyArray<string> => {
  if (part.functionCall !== undefined) return [part.functionCall.name, JSON.stringify(part.functionCall.args ?? {})]
  if (part.functionResponse !== undefined) {
    const { name = "", parts, response } = part.functionResponse
    const nested = parts === undefined ? "" : JSON.stringify(parts)
    return [name, outputText(part) ?? JSON.stringify(response ?? ""), nested]
  }
  return [part.text ?? JSON.stringify(part)]
}

/** What the protocol puts round a call or a response (tokens, as the estimator has it). */
const callFrame = 8

/** Features that come to as many tokens as the estimator says: it rounds every text by itself. */
const rounded = (features: Features): Features => {
  const exact = size(features)
  const tokens = roundedTokens(exact)
  if (exact === 0 || exact === tokens) return features
  const amounts: Amounts = { ...features }
  for (const name of classes) amounts[name] *= tokens / exact
  return amounts
}

/** Features of one part, as it stands in a request: together the estimator's tokens. */
export function* partFeatures(part: Part): Work.Work<Features> {
  yield 20
  if (part.inlineData !== undefined || part.fileData !== undefined) {
    return { ...nothing, media: yield* partTokens(part, undefined) }
  }
  const isCalled = part.functionCall !== undefined || part.functionResponse !== undefined
  const found: Array<Features> = [{ ...nothing, frame: isCalled ? callFrame : 0 }]
  for (const text of textsOf(part)) found.push(rounded(yield* textFeatures(text)))
  return sum(found)
}

/**
 * The stated margin of the cold start: how much more than estimated, as a share, a class may cost a model of which nothing
 * is known. The noise that every bound allows for (15 % until counts come in) is added to it.
 */
export const coldMargin: Features = {
  prose: 0.2,
  code: 0.25,
  figures: 0.6,
  hexadecimal: 1,
  base64: 1,
  latin: 0.5,
  script: 1,
  cjk: 1,
  symbols: 1,
  emoji: 1.5,
  media: 0.5,
  frame: 1
}

const dimension = classes.length

const ofLength = (length: number) =>
  Schema.makeFilter((values: ReadonlyArray<number>) => values.length === length || `expected ${length} numbers`)

/**
 * What is known of one model: sums over all observations, so that its size does not grow with them. JSON as it is.
 * `gram` holds the products of the classes' shares, row by row, `moment` those of the shares and the ratio of actual to
 * estimated tokens, `square` the squared ratios.
 */
export const Calibration = Schema.Struct({
  observations: Schema.Natural,
  weight: Schema.Finite,
  gram: Schema.Array(Schema.Finite).check(ofLength(dimension * dimension)),
  moment: Schema.Array(Schema.Finite).check(ofLength(dimension)),
  square: Schema.Finite,
  /** The last count that went over the bound, as a share of its estimate; it fades. */
  surprise: Schema.Finite
})
export type Calibration = typeof Calibration.Type

/** A model of which nothing is known. */
export const cold: Calibration = {
  observations: 0,
  weight: 0,
  gram: Array.from({ length: dimension * dimension }, () => 0),
  moment: Array.from({ length: dimension }, () => 0),
  square: 0,
  surprise: 0
}

/** Standard deviations that a bound keeps away from the expected count. */
const deviations = 3
/** The relative noise expected before any is measured, and how many observations that expectation is worth. */
const expectedNoise = { size: 0.05, worth: 6 }
/** No tokenizer is known better than this. */
const leastNoise = 0.005
/** Chance matters more in a small request than in a large one, however well a model is known: at this size as much as `expectedNoise`. */
const smallRequest = 128
/** How fast a surprise fades, an observation. */
const fading = 0.7

type Vector = ReadonlyArray<number>

const dot = (a: Vector, b: Vector): number => a.reduce((total, value, index) => total + value * (b[index] ?? 0), 0)

/** The inverse of a symmetric positive definite matrix, by Gauss and Jordan. */
const inverse = (matrix: ReadonlyArray<Vector>): ReadonlyArray<Vector> => {
  const rows = matrix.map((row, i) => [...row, ...row.map((_, j) => (i === j ? 1 : 0))])
  for (const [i, pivot] of rows.entries()) {
    const scale = pivot[i] ?? 1
    for (let k = 0; k < pivot.length; k += 1) pivot[k] = (pivot[k] ?? 0) / scale
    for (const [j, row] of rows.entries()) {
      const factor = row[i] ?? 0
      if (j === i || factor === 0) continue
      for (let k = 0; k < row.length; k += 1) row[k] = (row[k] ?? 0) - factor * (pivot[k] ?? 0)
    }
  }
  return rows.map((row) => row.slice(matrix.length))
}

/** What the observations say: the factors, how uncertain they are, and what they cannot explain. */
interface Fit {
  readonly gram: ReadonlyArray<Vector>
  readonly factors: Vector
  readonly covariance: ReadonlyArray<Vector>
  readonly noise: number
}

const rowsOf = ({ gram }: Calibration): ReadonlyArray<Vector> =>
  classes.map((_, i) => gram.slice(i * dimension, (i + 1) * dimension))

/**
 * Before any count, every factor is one. Tokenizers differ in two ways: some count more of everything, and each has classes
 * that it splits finer. So a factor may be off by what all share and by what is its own (standard deviations): a count of prose
 * says much about code, too.
 */
const prior = { shared: 5, own: 0.25 }

/** The inverse of the prior's covariance, by Sherman and Morrison. */
const priorPrecision: ReadonlyArray<Vector> = classes.map((_, i) =>
  classes.map((__, j) => {
    const own = prior.own ** 2
    const shared = prior.shared ** 2 / (own + dimension * prior.shared ** 2)
    return ((i === j ? 1 : 0) - shared) / own
  })
)
/** The prior's precision times its mean of ones. */
const priorTarget: Vector = priorPrecision.map((row) => row.reduce((total, value) => total + value, 0))

const solve = (calibration: Calibration, gram: ReadonlyArray<Vector>, noise: number): Fit => {
  const evidence = 1 / noise ** 2
  const covariance = inverse(
    gram.map((row, i) => row.map((value, j) => value * evidence + (priorPrecision[i]?.[j] ?? 0)))
  )
  const target = calibration.moment.map((value, i) => value * evidence + (priorTarget[i] ?? 0))
  return { factors: covariance.map((row) => dot(row, target)), covariance, gram, noise }
}

/** The noise that is left over: what is expected beforehand, as much as it is worth, and what the factors leave. */
const noiseOf = (calibration: Calibration, { covariance, factors, gram, noise }: Fit): number => {
  const explained = gram.reduce((total, row, i) => total + (factors[i] ?? 0) * dot(row, factors), 0)
  const left = Math.max(0, calibration.square - 2 * dot(calibration.moment, factors) + explained)
  const used = gram.reduce((total, row, i) => total + dot(row, covariance[i] ?? []), 0) / noise ** 2
  const degrees = expectedNoise.worth + Math.max(0, calibration.weight - used)
  return Math.max(leastNoise, Math.sqrt((expectedNoise.worth * expectedNoise.size ** 2 + left) / degrees))
}

/** Factors and noise depend on each other and settle within a few rounds. */
const rounds = 4

const fit = (calibration: Calibration): Fit => {
  const gram = rowsOf(calibration)
  let found = solve(calibration, gram, expectedNoise.size)
  for (let round = 0; round < rounds; round += 1) {
    found = solve(calibration, gram, noiseOf(calibration, found))
  }
  return found
}

/** The least share of what is estimated that a count of the same text can be: no tokenizer is three times as sparing. */
const leastBelieved = 0.3

/** Whether a count can be one of a text that is estimated so. Who says so little counted something else. */
export const isBelievable = (actual: number, estimated: number): boolean =>
  estimated > 0 && actual > 0 && actual >= estimated * leastBelieved

/** A class counts as seen once its observed shares, squared, come to this: a seventh of one request. */
const seenAt = 0.02

/** How far the factors' uncertainty may move the count: for classes that were seen as the counts say, for others by the margin. */
const doubt = ({ covariance, gram }: Fit, amounts: Vector): number => {
  const seen = amounts.map((amount, i) => ((gram[i]?.[i] ?? 0) < seenAt ? 0 : amount))
  const unseen = amounts.map((amount, i) => amount - (seen[i] ?? 0))
  const variance = dot(
    seen,
    covariance.map((row) => dot(row, seen))
  )
  return dot(margins, unseen) + Math.min(dot(seenMargins, seen), deviations * Math.sqrt(Math.max(0, variance)))
}

const margins = classes.map((name) => coldMargin[name])
/** However little is known of a class that was seen, its factor is not worse than this. */
const seenMargins = margins.map((margin) => Math.max(margin, 1))

const amountsOf = (features: Features): Vector => classes.map((name) => features[name])

const boundBy = (found: Fit, features: Features): number => {
  const amounts = amountsOf(features)
  const total = size(features)
  const noise = deviations * Math.hypot(found.noise * total, expectedNoise.size * Math.sqrt(total * smallRequest))
  // What other classes say of one that was never seen may raise its factor, never lower it.
  const factors = found.factors.map((factor, i) => ((found.gram[i]?.[i] ?? 0) < seenAt ? Math.max(1, factor) : factor))
  return Math.max(0, dot(factors, amounts)) + doubt(found, amounts) + noise
}

/** The likely count of a text with these features. Never an upper bound. Undefined: no count of this model is known. */
export const expected = (calibration: Calibration, features: Features): number | undefined =>
  calibration.observations === 0
    ? undefined
    : Math.round(Math.max(0, dot(fit(calibration).factors, amountsOf(features))))

/**
 * A count that the model's own does not exceed, in whole tokens: after a few dozen observations no more than 1 % below
 * the truth for text of the classes they held. Cold, it is the estimate and `coldMargin` and 15 %.
 */
export const upperBound = (calibration: Calibration, features: Features): number =>
  Math.ceil(boundBy(fit(calibration), features) + calibration.surprise * size(features))

/**
 * What is known after the API counted `actual` tokens for a text with these features. Large requests weigh a little more than small
 * ones, whose counts hold more of what is no text. An empty text or a count of none says nothing.
 */
export const observe = (calibration: Calibration, features: Features, actual: number): Calibration => {
  const total = size(features)
  if (total <= 0 || !Number.isFinite(actual) || actual <= 0) return calibration
  const shares = amountsOf(features).map((amount) => amount / total)
  const ratio = actual / total
  // Believed, it would let anything through.
  if (!isBelievable(actual, total)) return calibration
  const weight = total / (total + smallRequest)
  const next: Calibration = {
    observations: calibration.observations + 1,
    weight: calibration.weight + weight,
    gram: calibration.gram.map(
      (value, at) => value + weight * (shares[Math.floor(at / dimension)] ?? 0) * (shares[at % dimension] ?? 0)
    ),
    moment: calibration.moment.map((value, i) => value + weight * (shares[i] ?? 0) * ratio),
    square: calibration.square + weight * ratio ** 2,
    surprise: 0
  }
  const over = (actual - boundBy(fit(next), features)) / total
  return { ...next, surprise: Math.max(0, over, calibration.surprise * fading) }
}
