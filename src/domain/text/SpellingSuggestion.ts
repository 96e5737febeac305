/** Suggests a known name for a misspelled one. */

import { distance } from "./EditDistance.ts"

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
    .map((one) => ({ one, off: distance(name, one, Math.floor(far)) }))
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
