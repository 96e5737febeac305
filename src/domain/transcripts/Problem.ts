/** Problems of a record or a file, as data. `problemText` puts them into words. */

/** A problem of a record, or of a file. */
export interface Problem {
  readonly _tag: "Problem"
  /** From 1; 0 when the problem concerns the whole file, or a record whose line its reader adds. */
  readonly line: number
  /** The place in the record, as `message.content[2].text`; empty for the record itself. */
  readonly path: string
  /** What the reader expected there. */
  readonly detail: string
}

/** Makes a problem at a place in a record. */
export const recordProblem = (path: string, detail: string, line = 0): Problem => ({
  _tag: "Problem",
  line,
  path,
  detail
})

/** Makes the decoded form of a record that cannot be used. */
export const broken = (path: string, detail: string) =>
  ({ _tag: "Broken", problem: recordProblem(path, detail) }) as const

/** Moves the problem of a value to the record that holds the value under `prefix`. */
export const problemUnder = (prefix: string, { detail, line, path }: Problem): Problem =>
  recordProblem([prefix, path].filter((one) => one !== "").join("."), detail, line)

/** Whether reading a record or a file ended with a problem. */
export const isProblem = (value: unknown): value is Problem =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === "Problem"

/** Returns a problem in words, without its line. */
export const problemText = ({ detail, path }: Pick<Problem, "detail" | "path">): string =>
  path === "" ? detail : `${path}: ${detail}`
