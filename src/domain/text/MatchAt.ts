/** Matches sticky regular expressions at an offset of a text. */

/** Returns the end of a match of a sticky expression that begins at an offset; undefined when there is none. */
export const endOf = (pattern: RegExp, text: string, at: number): number | undefined => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}

/** Returns where the match of a sticky pattern ends that begins at an offset; -1 when it does not match there. */
export const matchAt = (pattern: RegExp, text: string, at: number): number => endOf(pattern, text, at) ?? -1
