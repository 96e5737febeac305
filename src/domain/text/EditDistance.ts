/** Compares two texts by the characters to insert, delete or replace. */

/** Maximum comparison steps, about a fifth of a second. */
export const maxComparisonSteps = 20_000_000

/** The remaining comparison steps. */
export interface ComparisonBudget {
  left: number
}

/**
 * Returns the Levenshtein distance of two texts, or `maxDistance + 1` when it is larger or the steps are used up. Computes only
 * a band around the diagonal, and doubles it until it is wide enough (Ukkonen).
 */
export const distance = (
  a: string,
  b: string,
  maxDistance: number,
  work: ComparisonBudget = { left: maxComparisonSteps }
): number => {
  if (Math.abs(a.length - b.length) > maxDistance) return maxDistance + 1
  for (let band = Math.min(maxDistance, 16); ; band = Math.min(maxDistance, band * 2)) {
    const edits = banded(a, b, band, work)
    if (edits <= band || work.left <= 0) return work.left <= 0 ? maxDistance + 1 : edits
    if (band >= maxDistance) return maxDistance + 1
  }
}

const banded = (a: string, b: string, band: number, work: ComparisonBudget): number => {
  const over = band + 1
  if (Math.abs(a.length - b.length) > band) return over
  let previous = new Int32Array(b.length + 2).fill(over)
  let current = new Int32Array(b.length + 2).fill(over)
  for (let j = 0; j <= Math.min(b.length, band); j += 1) previous[j] = j
  for (let i = 1; i <= a.length; i += 1) {
    const from = Math.max(0, i - band)
    const to = Math.min(b.length, i + band)
    work.left -= to - from + 1
    if (work.left <= 0) return over
    const unit = a.charCodeAt(i - 1)
    let lowest = over
    for (let j = from; j <= to; j += 1) {
      const same = j > 0 && unit === b.charCodeAt(j - 1)
      const replaced = j === 0 ? over : (previous[j - 1] ?? over) + (same ? 0 : 1)
      const removed = j === i + band ? over : (previous[j] ?? over) + 1
      const inserted = j === from ? over : (current[j - 1] ?? over) + 1
      const cost = j === 0 ? i : Math.min(replaced, removed, inserted, over)
      current[j] = cost
      if (cost < lowest) lowest = cost
    }
    if (lowest >= over) return over
    const spare = previous
    previous = current
    current = spare
  }
  return Math.min(previous[b.length] ?? over, over)
}
