/** A memory file that was left out or cut, or something that it imports. */
export interface MemoryProblem {
  /** The problem in one line, with the file as shown to the user. */
  readonly text: string
  /** Files that import one another in a circle, where this is the problem. Absolute, links resolved. */
  readonly circle?: ReadonlyArray<string>
}

/** The problems in words, each once. A circle of imports is reported once, not for every way into it. */
export const distinctProblems = (problems: ReadonlyArray<MemoryProblem>): ReadonlyArray<string> => {
  const texts = new Set<string>()
  const reported = new Set<string>()
  for (const { circle = [], text } of problems) {
    if (circle.some((file) => reported.has(file))) continue
    for (const file of circle) reported.add(file)
    texts.add(text)
  }
  return [...texts]
}
