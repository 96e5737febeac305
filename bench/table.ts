import { appendFileSync } from "node:fs"

/** The figures of one run, compared with their bounds. */

/** One figure. */
export interface Row {
  readonly what: string
  readonly value: string
  /** Absent: reported without a bound. */
  readonly bound: string | undefined
  readonly ok: boolean
}

/** The median. */
export const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** Formats milliseconds, as microseconds below one. */
const shown = (ms: number): string => (ms < 1 ? `${(ms * 1_000).toFixed(1)} µs` : `${ms.toFixed(1)} ms`)

/** A measurement as a multiple of a baseline in the same run, both in milliseconds; without a bound, it is only reported. */
export const ratio = (what: string, measured: number, floor: number, bound?: number): Row => ({
  what,
  value: `${(measured / floor).toFixed(2)} × (${shown(measured)} to ${shown(floor)})`,
  bound: bound === undefined ? undefined : `${bound} ×`,
  ok: bound === undefined || measured / floor <= bound
})

/**
 * Prints the table and marks the figures over their bound; the exit status is 1 if there is one. With `BENCH_ROWS`, the rows are
 * appended to that file instead, one a line.
 */
export const print = (rows: ReadonlyArray<Row>): void => {
  const { BENCH_ROWS: file } = process.env
  if (file !== undefined) return appendFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""))
  const width = Math.max(...rows.map((row) => row.what.length))
  for (const row of rows) {
    const verdict = row.bound === undefined ? "told" : row.ok ? "ok  " : "OVER"
    const limit = row.bound === undefined ? "" : `  (at most ${row.bound})`
    console.log(`${verdict}  ${row.what.padEnd(width)}  ${row.value}${limit}`)
  }
  process.exitCode = rows.every((row) => row.ok) ? 0 : 1
}
