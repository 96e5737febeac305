/** Which of the names that are known somebody may have meant. */

/** How many letters have to be put in, taken out or changed to make one word of another (Levenshtein). */
export const distance = (one: string, other: string): number => {
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

/** Longer words are nobody's slip of the finger, and comparing them would take long. */
const longest = 64

/** The known name that is nearest, where it is near: at most `far` letters off. Of equally near ones the first. */
export const nearest = <Name extends string>(
  name: string,
  known: ReadonlyArray<Name>,
  far: number
): Name | undefined => {
  if (name.length > longest) return undefined
  let best: { readonly name: Name; readonly off: number } | undefined
  for (const one of known) {
    if (Math.abs(one.length - name.length) > far) continue
    const off = distance(name, one)
    if (off <= far && (best === undefined || off < best.off)) best = { name: one, off }
  }
  return best?.name
}
