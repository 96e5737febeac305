/**
 * How far the estimator is off for one model, learned from the counts that its API reports, and an upper bound of the true count,
 * which keeps requests within the window. A text is split into classes (`TextFeatures`), each measured in estimated tokens; a
 * model has a factor for each class, and every reported count is evidence about them. This is Bayesian linear regression: the
 * factors explain the counts best, and the bound adds how uncertain they still are.
 */

import { Schema } from "effect"
import { type CountHistory, isCut, isPlausibleCount, isUnchangedCount, withCount } from "./CutPrompts.ts"
import { type Features, textClasses, totalTokens } from "./TextFeatures.ts"

/**
 * The margin before any count, as a share: how much more than estimated a class may cost an unknown model. The noise of every bound (15 % before any
 * count) is added to it.
 */
export const uncalibratedMargin: Features = {
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

const classes = textClasses.length
/** The classes, and what a server adds to each request by itself. */
const dimension = classes + 1

const ofLength = (length: number) =>
  Schema.makeFilter((values: ReadonlyArray<number>) => values.length === length || `expected ${length} numbers`)

/**
 * What was learned of one model. It holds sums over all observations, so that its size does not grow with them. Stored as JSON. `gram` holds the
 * products of the classes' shares, row by row, `moment` those of the shares and the ratio of actual to estimated tokens, `square` the squared ratios.
 * `request` has the same of one token in each request, whose share is that of what a server adds by itself; what was stored before has none.
 */
export const Calibration = Schema.Struct({
  observations: Schema.Natural,
  weight: Schema.Finite,
  gram: Schema.Array(Schema.Finite).check(ofLength(classes * classes)),
  moment: Schema.Array(Schema.Finite).check(ofLength(classes)),
  request: Schema.optionalKey(
    Schema.Struct({ gram: Schema.Array(Schema.Finite).check(ofLength(dimension)), moment: Schema.Finite })
  ),
  square: Schema.Finite,
  /** How far the last count above the bound was above it, as a share of its estimate and `tellingRequest`. It decays. */
  surprise: Schema.Finite,
  /** The last count, and what the server seems to keep of a prompt (`CutPrompts`). */
  history: Schema.optionalKey(
    Schema.Struct({
      last: Schema.optionalKey(Schema.Struct({ estimated: Schema.Finite, counted: Schema.Finite })),
      kept: Schema.optionalKey(Schema.Finite)
    })
  )
})
export type Calibration = typeof Calibration.Type

/** The calibration of a model before any count. */
export const uncalibrated: Calibration = {
  observations: 0,
  weight: 0,
  gram: Array.from({ length: classes * classes }, () => 0),
  moment: Array.from({ length: classes }, () => 0),
  square: 0,
  surprise: 0
}

/** Standard deviations between a bound and the expected count. */
const deviations = 3
/** The relative noise expected before any is measured, and its weight in observations. */
const expectedNoise = { size: 0.05, worth: 6 }
/** The minimum noise assumed of any tokenizer. */
const minNoise = 0.005
/** Random deviations matter more in a small request, however well a model is calibrated: at this size as much as `expectedNoise`. */
const smallRequest = 128
/**
 * The tokens that a server adds to a request by itself (standard deviations): usually for a template of roles and a preamble of tools, rarely for a
 * prompt of its own.
 */
const serverTokens = { usually: 32, rarely: 3_000 }
/** How much better a prompt of the server's own has to explain the counts, as twice a difference of log likelihoods. */
const minRareGain = 2 * Math.log(serverTokens.rarely / serverTokens.usually)
/** The size of a request below which what is usually added may weigh more than the expected noise. */
const tellingRequest = serverTokens.usually / expectedNoise.size
/** The factor by which a surprise decays per observation. */
const surpriseDecay = 0.7

type Vector = ReadonlyArray<number>

const dot = (a: Vector, b: Vector): number => {
  let total = 0
  for (let i = 0; i < a.length; i += 1) total += (a[i] ?? 0) * (b[i] ?? 0)
  return total
}

/**
 * The inverse of a symmetric positive definite matrix, by Gauss and Jordan. In one flat array, because every observation needs five of them. The row of
 * the pivot is zero before its own column, and, in the right half, after it.
 */
const inverse = (matrix: ReadonlyArray<Vector>): ReadonlyArray<Vector> => {
  const size = matrix.length
  const width = 2 * size
  const cells = new Float64Array(size * width)
  const at = (place: number): number => cells[place] ?? 0
  for (const [i, row] of matrix.entries()) {
    cells.set(row, i * width)
    cells[i * width + size + i] = 1
  }
  for (let i = 0; i < size; i += 1) {
    const pivot = i * width
    const scale = at(pivot + i)
    for (let k = i; k <= size + i; k += 1) cells[pivot + k] = at(pivot + k) / scale
    for (let j = 0; j < size; j += 1) {
      const row = j * width
      const factor = at(row + i)
      if (j === i || factor === 0) continue
      for (let k = i; k <= size + i; k += 1) cells[row + k] = at(row + k) - factor * at(pivot + k)
    }
  }
  return matrix.map((_, i) => [...cells.subarray(i * width + size, (i + 1) * width)])
}

/** The factors derived from the observations, their uncertainty, and the unexplained rest. */
interface Fit {
  readonly gram: ReadonlyArray<Vector>
  readonly factors: Vector
  readonly covariance: ReadonlyArray<Vector>
  readonly noise: number
  readonly prior: Prior
}

const nothingAdded = { gram: Array.from({ length: dimension }, () => 0), moment: 0 }

const rowsOf = ({ gram, request = nothingAdded }: Calibration): ReadonlyArray<Vector> => [
  ...textClasses.map((_, i) => [...gram.slice(i * classes, (i + 1) * classes), request.gram[i] ?? 0]),
  request.gram
]

const momentOf = ({ moment, request = nothingAdded }: Calibration): Vector => [...moment, request.moment]

/**
 * Before any count, every factor is one. Tokenizers differ in two ways: some count more of everything, and each has classes that it splits more
 * finely. So a factor may deviate by a shared part and by its own part (standard deviations), and a count of prose says much about code, too.
 * Before any count, a server adds nothing.
 */
const spread = { shared: 1, own: 0.25 }

/** What is expected before any count: the inverse of its covariance, that times its mean, and the tokens that a server may add. */
interface Prior {
  readonly precision: ReadonlyArray<Vector>
  readonly target: Vector
  readonly added: number
}

/** By Sherman and Morrison. The mean is one for each class. */
const priorWith = (added: number): Prior => {
  const precision = Array.from({ length: dimension }, (_, i) =>
    Array.from({ length: dimension }, (__, j) => {
      if (i === classes || j === classes) return i === j ? 1 / added ** 2 : 0
      const own = spread.own ** 2
      const shared = spread.shared ** 2 / (own + classes * spread.shared ** 2)
      return ((i === j ? 1 : 0) - shared) / own
    })
  )
  const target = precision.map((row, i) => (i === classes ? 0 : row.reduce((total, value) => total + value, 0)))
  return { precision, target, added }
}

const commonPrior = priorWith(serverTokens.usually)
const rarePrior = priorWith(serverTokens.rarely)

const solve = (calibration: Calibration, prior: Prior, gram: ReadonlyArray<Vector>, noise: number): Fit => {
  const evidence = 1 / noise ** 2
  const covariance = inverse(
    gram.map((row, i) => row.map((value, j) => value * evidence + (prior.precision[i]?.[j] ?? 0)))
  )
  const target = momentOf(calibration).map((value, i) => value * evidence + (prior.target[i] ?? 0))
  return { factors: covariance.map((row) => dot(row, target)), covariance, gram, noise, prior }
}

/** The squares of what the factors do not explain. */
const unexplained = (calibration: Calibration, { factors, gram }: Fit): number => {
  const explained = gram.reduce((total, row, i) => total + (factors[i] ?? 0) * dot(row, factors), 0)
  return Math.max(0, calibration.square - 2 * dot(momentOf(calibration), factors) + explained)
}

/** The remaining noise: the expected noise with its weight, and what the factors do not explain. */
const noiseOf = (calibration: Calibration, learned: Fit): number => {
  const { covariance, gram, noise } = learned
  const left = unexplained(calibration, learned)
  const used = gram.reduce((total, row, i) => total + dot(row, covariance[i] ?? []), 0) / noise ** 2
  const degrees = expectedNoise.worth + Math.max(0, calibration.weight - used)
  return Math.max(minNoise, Math.sqrt((expectedNoise.worth * expectedNoise.size ** 2 + left) / degrees))
}

/** Factors and noise depend on each other and settle within a few rounds. */
const maxRounds = 4

/** How badly a fit explains the counts and agrees with its prior, as twice a negative log likelihood. */
const costOf = (calibration: Calibration, learned: Fit): number => {
  const { factors, prior } = learned
  const off = factors.map((factor, i) => (i === classes ? factor : factor - 1))
  const surprise = prior.precision.reduce((total, row, i) => total + (off[i] ?? 0) * dot(row, off), 0)
  return unexplained(calibration, learned) / expectedNoise.size ** 2 + surprise
}

/** No tokenizer needs fewer tokens for an estimated one. A fit that says so takes counts that changed over time for a prompt of the server. */
const minPlausibleFactor = 0.5

/** The factor of all that was counted, by the shares of the classes in it. */
const averageFactor = ({ weight }: Calibration, { factors, gram }: Fit): number => {
  const amounts = gram.slice(0, classes).map((row) => row.slice(0, classes).reduce((total, value) => total + value, 0))
  return weight === 0 ? 1 : dot(amounts, factors) / weight
}

/** The tokens that a server adds to each request by itself, as a fit has them. */
const addedIn = ({ factors }: Fit): number => factors[classes] ?? 0

/** A calibration is immutable, and every request needs its fit several times. */
const fits = new WeakMap<Calibration, Fit>()

const fit = (calibration: Calibration): Fit => {
  const cachedFit = fits.get(calibration)
  if (cachedFit !== undefined) return cachedFit
  const gram = rowsOf(calibration)
  const common = solve(calibration, commonPrior, gram, expectedNoise.size)
  const rare = solve(calibration, rarePrior, gram, expectedNoise.size)
  const isRare =
    addedIn(rare) > 0 &&
    averageFactor(calibration, rare) >= minPlausibleFactor &&
    costOf(calibration, common) > costOf(calibration, rare) + minRareGain
  let settled = isRare ? rare : common
  for (let round = 0; round < maxRounds; round += 1) {
    settled = solve(calibration, settled.prior, gram, noiseOf(calibration, settled))
  }
  fits.set(calibration, settled)
  return settled
}

/** A class counts as observed once its squared shares add up to this: a seventh of one request. */
const minObservedWeight = 0.02

/** While its factor is more uncertain than that, a class does not count as observed: what a server adds may explain the counts of short requests. */
const maxObservedDeviation = 0.4

const isObserved = ({ covariance, gram }: Fit, i: number): boolean =>
  (gram[i]?.[i] ?? 0) >= minObservedWeight && (covariance[i]?.[i] ?? 0) <= maxObservedDeviation ** 2

/** How far uncertain factors may move the count: by their variance for observed classes, by the margin for others. */
const uncertainty = (learned: Fit, amounts: Vector): number => {
  const { covariance } = learned
  const isAnyObserved = textClasses.some((_, i) => isObserved(learned, i))
  const observed = amounts.map((amount, i) => ((i === classes ? isAnyObserved : isObserved(learned, i)) ? amount : 0))
  const unobserved = amounts.map((amount, i) => amount - (observed[i] ?? 0))
  const variance = dot(
    observed,
    covariance.map((row) => dot(row, observed))
  )
  const most = dot(observedMargins, observed) + deviations * learned.prior.added
  return dot(margins, unobserved) + Math.min(most, deviations * Math.sqrt(Math.max(0, variance)))
}

const margins = [...textClasses.map((name) => uncalibratedMargin[name]), 0]
/** The factor of an observed class is not assumed to be worse than this. */
const observedMargins = margins.map((margin, i) => (i === classes ? 0 : Math.max(margin, 1)))

/** The estimated tokens of each class, and the one request that they are. */
const amountsOf = (features: Features): Vector => [
  ...textClasses.map((name) => features[name]),
  totalTokens(features) > 0 ? 1 : 0
]

const boundBy = (learned: Fit, features: Features): number => {
  const amounts = amountsOf(features)
  const total = totalTokens(features)
  const noise = deviations * Math.hypot(learned.noise * total, expectedNoise.size * Math.sqrt(total * smallRequest))
  // Other classes may raise the factor of a class that was never observed, never lower it. No server takes tokens away.
  const factors = learned.factors.map((factor, i) =>
    i === classes ? Math.max(0, factor) : isObserved(learned, i) ? factor : Math.max(1, factor)
  )
  return Math.max(0, dot(factors, amounts)) + uncertainty(learned, amounts) + noise
}

/** The likely count of a text with these features, not an upper bound. Undefined: no count of this model has been observed. */
export const expected = (calibration: Calibration, features: Features): number | undefined =>
  calibration.observations === 0
    ? undefined
    : Math.round(Math.max(0, dot(fit(calibration).factors, amountsOf(features))))

/** The tokens that the server probably adds to each request by itself; 0 before any count. */
export const addedTokens = (calibration: Calibration): number => Math.max(0, addedIn(fit(calibration)))

/** The model's tokens for one estimated token, on average over all requests that were counted and without what the server adds; one before any. */
export const usualFactor = (calibration: Calibration): number => averageFactor(calibration, fit(calibration))

/** The tokens of which a surprise is a share. */
const surprising = (total: number): number => (total > 0 ? total + tellingRequest : 0)

/**
 * An upper bound of the model's count, in whole tokens. After a few dozen observations it is at most 1 % below the true count, for text of the
 * observed classes. Before any count it is the estimate, `uncalibratedMargin` and 15 %.
 */
export const upperBound = (calibration: Calibration, features: Features): number =>
  Math.ceil(boundBy(fit(calibration), features) + calibration.surprise * surprising(totalTokens(features)))

/** A count, as far as it can be trusted. `isLonger`: the request is the last one and some more text. */
export const isCutCount = (
  { history = {} }: Calibration,
  features: Features,
  actual: number,
  isLonger: boolean
): boolean => isCut(history, totalTokens(features), actual, isLonger)

/**
 * The calibration after a count of a prompt that the server cut. It teaches nothing; if it was plausible, then so were earlier counts of cut prompts,
 * and what was learned is forgotten.
 */
export const doubted = (calibration: Calibration, features: Features, actual: number): Calibration => {
  const total = totalTokens(features)
  const history: CountHistory = withCount(calibration.history ?? {}, total, actual, true)
  return { ...(isPlausibleCount(actual, total) ? uncalibrated : calibration), history }
}

/** How far counts are trusted whose origin nobody knows. */
export interface Trust {
  /** The share of their weight that earlier counts keep with each new one: what is called by the name of a model may change. Default: all of it. */
  readonly kept?: number
  /** The most tokens that a count tells of for one estimated token. Default: no limit. */
  readonly most?: number
}

/**
 * The calibration after the API counted `actual` tokens for a text with these features. Large requests weigh a little more than
 * small ones. An empty text, a count of zero, an implausible count and one that does not grow with the request change nothing.
 */
export const observe = (
  calibration: Calibration,
  features: Features,
  actual: number,
  { kept = 1, most = Infinity }: Trust = {}
): Calibration => {
  const total = totalTokens(features)
  if (total <= 0 || !Number.isFinite(actual) || actual <= 0) return calibration
  const shares = amountsOf(features).map((amount) => amount / total)
  const ratio = Math.min(most, actual / total)
  if (!isPlausibleCount(actual, total) || isUnchangedCount(calibration.history ?? {}, total, actual)) return calibration
  const weight = total / (total + smallRequest)
  const { request = nothingAdded } = calibration
  const added = 1 / total
  const next: Calibration = {
    observations: calibration.observations + 1,
    weight: kept * calibration.weight + weight,
    gram: calibration.gram.map(
      (value, at) => kept * value + weight * (shares[Math.floor(at / classes)] ?? 0) * (shares[at % classes] ?? 0)
    ),
    moment: calibration.moment.map((value, i) => kept * value + weight * (shares[i] ?? 0) * ratio),
    request: {
      gram: request.gram.map((value, i) => kept * value + weight * added * (shares[i] ?? 0)),
      moment: kept * request.moment + weight * added * ratio
    },
    square: kept * calibration.square + weight * ratio ** 2,
    surprise: 0,
    history: withCount(calibration.history ?? {}, total, actual, false)
  }
  const learned = fit(next)
  const over = (actual - boundBy(learned, features)) / surprising(total)
  const observed = { ...next, surprise: Math.max(0, over, calibration.surprise * surpriseDecay) }
  // A surprise changes no fit.
  fits.set(observed, learned)
  return observed
}
