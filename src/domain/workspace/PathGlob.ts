/** Matches paths with a glob from outside, whose size is bounded: matching one path cannot pause. */

import { Glob } from "effect"
import { number } from "../text/NumberText.ts"

/** Most characters of a glob with its braces written out. Each may be compared with each character of a path. */
const maxGlobChars = 5_000

/** Returns in how many ways the braces of a glob can be written out, or more. */
const alternatives = (pattern: string): number => {
  const open: Array<number> = []
  let count = 1
  for (const char of pattern) {
    if (char === "{") open.push(1)
    else if (char === ",") open.push((open.pop() ?? 0) + 1)
    else if (char === "}") count *= Math.max(1, open.pop() ?? 1)
  }
  return count
}

/** Returns in one line why a glob is not used; undefined when it is. */
export const globProblem = (pattern: string): string | undefined =>
  pattern.length * alternatives(pattern) > maxGlobChars
    ? `a glob pattern may have ${number(maxGlobChars)} characters with its braces written out`
    : undefined

/** Matches a glob against paths with forward slashes. Hidden files are treated like others. */
export const pathMatcher = (pattern: string, isCaseSensitive: boolean): ((relative: string) => boolean) => {
  const glob = Glob.make(isCaseSensitive ? pattern : pattern.toLowerCase(), { dot: true })
  return (relative) => Glob.match(glob, isCaseSensitive ? relative : relative.toLowerCase())
}
