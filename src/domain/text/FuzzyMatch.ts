/** Finding names by some of their letters, for menus that filter while a user types. */

/** Costs: a letter between two found ones, and one at the beginning. A whole prefix costs nothing. */
const gapCost = 2
const startCost = 1
/** A match behind a separator is nearly as good as one at the beginning. */
const isSeparator = /[\s/._-]/

/**
 * Ranks how well the letters of `query` occur in `text` in their order, ignoring case; undefined when they do not. Smaller is
 * better: letters side by side, at the beginning or behind a separator, in a short text.
 */
export const fuzzyRank = (query: string, text: string): number | undefined => {
  const letters = query.toLowerCase()
  const lower = text.toLowerCase()
  if (letters === "") return 0
  const whole = lower.lastIndexOf(letters)
  if (whole >= 0) {
    const isStart = whole === 0 || isSeparator.test(lower[whole - 1] ?? "")
    return (isStart ? 0 : startCost * Math.min(whole, 10)) + text.length / 1_000
  }
  let rank = 20
  let at = -1
  for (const letter of letters) {
    const next = lower.indexOf(letter, at + 1)
    if (next < 0) return undefined
    if (at >= 0 && next > at + 1 && !isSeparator.test(lower[next - 1] ?? ""))
      rank += gapCost * Math.min(next - at - 1, 10)
    at = next
  }
  return rank + text.length / 1_000
}
