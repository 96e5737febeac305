/** Compressions by hand, from which a threshold can be learned. */

/** Compressions at about the same size after which the threshold is offered, and how far apart their shares of the window may be. */
const enough = 3
const maxSpread = 0.1

/**
 * Returns the threshold to offer after compressions by hand at these shares of the window, oldest first: that of the last three, rounded down to
 * twentieths. Undefined where they differ, or are not below the threshold in force.
 */
export const offeredThreshold = (shares: ReadonlyArray<number>, threshold: number): number | undefined => {
  const last = shares.slice(-enough)
  const [least, most] = [Math.min(...last), Math.max(...last)]
  const offered = Math.floor(least * 20) / 20
  return last.length < enough || most - least > maxSpread || most >= threshold || offered <= 0 ? undefined : offered
}
