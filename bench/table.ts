/** The figures of one run: what was measured, held against its bound. */

/** One figure. */
export interface Row {
  readonly what: string
  readonly value: string
  /** Absent: told, not judged. */
  readonly bound: string | undefined
  readonly ok: boolean
}

/** The value in the middle. */
export const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** Milliseconds, or microseconds where it is less than one. */
const shown = (ms: number): string => (ms < 1 ? `${(ms * 1_000).toFixed(1)} µs` : `${ms.toFixed(1)} ms`)

/** What was measured as a multiple of something measured in the same run. Both in milliseconds. */
export const ratio = (what: string, measured: number, floor: number, bound: number): Row => ({
  what,
  value: `${(measured / floor).toFixed(2)} × (${shown(measured)} to ${shown(floor)})`,
  bound: `${bound} ×`,
  ok: measured / floor <= bound
})

/** Prints the table; what is over its bound is marked, and the exit status says so. */
export const print = (rows: ReadonlyArray<Row>): void => {
  const width = Math.max(...rows.map((row) => row.what.length))
  for (const row of rows) {
    const verdict = row.bound === undefined ? "told" : row.ok ? "ok  " : "OVER"
    const limit = row.bound === undefined ? "" : `  (at most ${row.bound})`
    console.log(`${verdict}  ${row.what.padEnd(width)}  ${row.value}${limit}`)
  }
  process.exitCode = rows.every((row) => row.ok) ? 0 : 1
}
