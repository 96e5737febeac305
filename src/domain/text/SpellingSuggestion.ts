/** Suggests a known name for a misspelled one. */

/** Returns the Levenshtein distance of two words: the number of letters to insert, delete or replace. */
export const editDistance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same))
    }
    row = next
  }
  return row[other.length] ?? 0
}

/** Longer words are not compared: they are no typing error, and comparing them takes long. */
const maxNameChars = 64

/** Returns the known names at most `far` letters away from the given one, the closest first. Equally close names keep their order. */
export const closestNames = <Name extends string>(
  name: string,
  names: Iterable<Name>,
  far: number
): ReadonlyArray<Name> => {
  if (name.length > maxNameChars) return []
  return [...names]
    .filter((one) => Math.abs(one.length - name.length) <= far)
    .map((one) => ({ one, off: editDistance(name, one) }))
    .filter(({ off }) => off <= far)
    .sort((a, b) => a.off - b.off)
    .map(({ one }) => one)
}

/** Returns the first of `closestNames`. */
export const closestName = <Name extends string>(
  name: string,
  names: ReadonlyArray<Name>,
  far: number
): Name | undefined => closestNames(name, names, far)[0]
