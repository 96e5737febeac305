/** Returns where the match of a sticky pattern ends that begins at an offset; -1 when it does not match there. */
export const matchAt = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : -1
}
