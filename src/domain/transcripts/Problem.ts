/** Problems of a record or a file, as data. `problemText` puts them into words. */

/** A problem of one record. */
export interface RecordProblem {
  readonly _tag: "RecordProblem"
  /** The place in the record, as `message.content[2].text`; empty for the record itself. */
  readonly path: string
  /** What the reader expected there. */
  readonly detail: string
}

/** A problem of a file, with its line. */
export interface Problem extends Omit<RecordProblem, "_tag"> {
  readonly _tag: "Problem"
  /** From 1; 0 when the problem concerns the whole file. */
  readonly line: number
}

/** Makes a problem at a place in a record. */
export const recordProblem = (path: string, detail: string): RecordProblem => ({ _tag: "RecordProblem", path, detail })

/** Makes the decoded form of a record that cannot be used. */
export const broken = (path: string, detail: string) =>
  ({ _tag: "Broken", problem: recordProblem(path, detail) }) as const

/** Moves the problem of a value to the record that holds the value under `prefix`. */
export const problemUnder = (prefix: string, { detail, path }: RecordProblem): RecordProblem =>
  recordProblem(path === "" ? prefix : `${prefix}.${path}`, detail)

/** Makes the problem of the record in this line. */
export const problemAt = (line: number, { detail, path }: Omit<RecordProblem, "_tag">): Problem => ({
  _tag: "Problem",
  line,
  path,
  detail
})

const hasTag = (value: unknown, tag: string): boolean =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === tag

/** Whether reading a record ended with a problem. */
export const isRecordProblem = (value: unknown): value is RecordProblem => hasTag(value, "RecordProblem")

/** Whether reading a file ended with a problem. */
export const isProblem = (value: unknown): value is Problem => hasTag(value, "Problem")

/** Returns a problem in words, without its line. */
export const problemText = ({ detail, path }: Omit<RecordProblem, "_tag">): string =>
  path === "" ? detail : `${path}: ${detail}`
