/** Random numbers that a seed reproduces, for synthetic conversations and tests. */

/** A source of numbers from 0 (included) to 1 (excluded). */
export type Random = () => number

/** Pseudo-random numbers (mulberry32): the same seed gives the same numbers everywhere. */
export const seededRandom = (seed: number): Random => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
