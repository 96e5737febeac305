/** The report of `eval`, and its sums. */

import { Schema } from "effect"
import { type Figure, Figures, noRatio, Ratio, sumRatios, valueOf } from "./Measure.ts"
import { PlantedSum } from "./PlantedGrades.ts"
import { seededRandom } from "./SeededRandom.ts"

// Confidence intervals by bootstrap. The same seed gives the same interval.

const resamples = 1_000

/** An estimate with its 95 % interval. */
interface Estimate {
  readonly value: number
  /** Absent for fewer than two sessions: one session says nothing about others. */
  readonly interval: readonly [low: number, high: number] | undefined
}

/**
 * Returns the value over all sessions, with the interval of a percentile bootstrap: sessions are drawn with replacement,
 * because compactions of one session resemble each other. Undefined when nothing was measured.
 */
export const estimate = (sessions: ReadonlyArray<Ratio>, seed: number): Estimate | undefined => {
  const measured = sessions.filter(({ whole }) => whole > 0)
  const value = valueOf(sumRatios(measured))
  if (value === undefined) return undefined
  if (measured.length < 2) return { value, interval: undefined }
  const next = seededRandom(seed)
  const values: Array<number> = []
  for (let round = 0; round < resamples; round += 1) {
    const drawn = measured.map(() => measured[Math.floor(next() * measured.length)] ?? { part: 0, whole: 0 })
    values.push(valueOf(sumRatios(drawn)) ?? value)
  }
  values.sort((a, b) => a - b)
  const at = (share: number) => values[Math.round(share * (resamples - 1))] ?? value
  return { value, interval: [at(0.025), at(0.975)] }
}

/** One text that replaced a conversation, and what it gave the agent. */
export const MeasuredRow = Schema.Struct({
  /** The strategy that wrote it, or `recorded`: the summary of the recording. */
  writer: Schema.String,
  /** The share of the conversation's end that was kept; null for a recorded summary. */
  preserve: Schema.NullOr(Schema.Finite),
  /** The limit of the snapshot, in tokens. */
  budget: Schema.Natural,
  /** Where the budget comes from: `recorded` (the size of the recorded summary), `2 recorded` (twice that), or its tokens. */
  size: Schema.String,
  /** The status of the compression (`statusOf`); `RECORDED` for a recorded summary. */
  status: Schema.String,
  /** False when the strategy changed nothing: then there is nothing to measure. */
  isMeasured: Schema.Boolean,
  /** Tokens of the snapshot, and of the whole context. */
  snapshotTokens: Schema.Natural,
  contextTokens: Schema.Natural,
  figures: Figures
})
export type MeasuredRow = typeof MeasuredRow.Type

/** One point of a recording. */
export const MeasuredPoint = Schema.Struct({
  /** The last entry before the point. */
  after: Schema.String,
  entriesBefore: Schema.Natural,
  entriesAfter: Schema.Natural,
  rows: Schema.Array(MeasuredRow)
})
export type MeasuredPoint = typeof MeasuredPoint.Type

const Sum = Schema.Struct({
  ...Ratio.fields,
  value: Schema.NullOr(Schema.Finite),
  /** The 95 % interval; null for fewer than two files. */
  interval: Schema.NullOr(Schema.Tuple([Schema.Finite, Schema.Finite]))
})

/** The sums over all files for one writer, one share that was kept and one size. */
export const MeasuredSum = Schema.Struct({
  writer: Schema.String,
  preserve: Schema.NullOr(Schema.Finite),
  size: Schema.String,
  points: Schema.Natural,
  snapshotTokens: Schema.Natural,
  contextTokens: Schema.Natural,
  figures: Schema.Record(Schema.String, Sum)
})
export type MeasuredSum = typeof MeasuredSum.Type

/** The whole report. */
export const EvaluationReport = Schema.Struct({
  seed: Schema.Natural,
  files: Schema.Array(Schema.Struct({ file: Schema.String, points: Schema.Array(MeasuredPoint) })),
  sums: Schema.Array(MeasuredSum),
  /** What became of planted facts. Absent when none were planted. */
  planted: Schema.optionalKey(Schema.Array(PlantedSum))
})
export type EvaluationReport = typeof EvaluationReport.Type

/** A file and its points. */
export type MeasuredFile = EvaluationReport["files"][number]

const groupOf = ({ preserve, size, writer }: MeasuredRow): string => `${writer} ${preserve} ${size}`

const mean = (numbers: ReadonlyArray<number>): number =>
  numbers.length === 0 ? 0 : Math.round(numbers.reduce((sum, n) => sum + n, 0) / numbers.length)

/** Returns the sums over all files, one for each kind of row, in the order in which the rows occur. */
export const sumsOf = (
  files: ReadonlyArray<MeasuredFile>,
  figures: ReadonlyArray<Figure>,
  seed: number
): ReadonlyArray<MeasuredSum> => {
  const groups = new Map<string, MeasuredRow>()
  const rowsOf = (file: MeasuredFile): ReadonlyArray<MeasuredRow> =>
    file.points.flatMap(({ rows }) => rows.filter(({ isMeasured }) => isMeasured))
  for (const row of files.flatMap(rowsOf)) if (!groups.has(groupOf(row))) groups.set(groupOf(row), row)
  return [...groups].map(([group, { preserve, size, writer }]) => {
    const byFile = files.map((file) => rowsOf(file).filter((row) => groupOf(row) === group))
    const rows = byFile.flat()
    return {
      writer,
      preserve,
      size,
      points: rows.length,
      snapshotTokens: mean(rows.map(({ snapshotTokens }) => snapshotTokens)),
      contextTokens: mean(rows.map(({ contextTokens }) => contextTokens)),
      figures: Object.fromEntries(
        figures.map(({ key }) => {
          const sessions = byFile.map((own) => sumRatios(own.map((row) => row.figures[key] ?? noRatio)))
          const estimated = estimate(sessions, seed)
          return [
            key,
            {
              ...sumRatios(sessions),
              value: estimated?.value ?? null,
              interval: estimated?.interval ?? null
            }
          ]
        })
      )
    }
  })
}
