import { type Ratio, sumRatios, valueOf } from "./Measure.ts"
import { seededRandom } from "./SeededRandom.ts"

/** Confidence intervals by bootstrap. The same seed gives the same interval. */

const resamples = 1_000

/** An estimate with its 95 % interval. */
export interface Estimate {
  readonly value: number
  /** Absent for fewer than two sessions: one session says nothing about others. */
  readonly interval: readonly [low: number, high: number] | undefined
}

/**
 * Returns the value over all sessions, with the interval of a percentile bootstrap: sessions are drawn with replacement,
 * because compactions of one session resemble each other. Undefined when nothing was measured.
 */
export const estimate = (sessions: ReadonlyArray<Ratio>, seed: number): Estimate | undefined => {
  const measured = sessions.filter(({ whole }) => whole > 0)
  const value = valueOf(sumRatios(measured))
  if (value === undefined) return undefined
  if (measured.length < 2) return { value, interval: undefined }
  const next = seededRandom(seed)
  const values: Array<number> = []
  for (let round = 0; round < resamples; round += 1) {
    const drawn = measured.map(() => measured[Math.floor(next() * measured.length)] ?? { part: 0, whole: 0 })
    values.push(valueOf(sumRatios(drawn)) ?? value)
  }
  values.sort((a, b) => a - b)
  const at = (share: number) => values[Math.round(share * (resamples - 1))] ?? value
  return { value, interval: [at(0.025), at(0.975)] }
}
