/** The table of `eval`: a row for each text that was measured, then the sums over all files. */

import type { EvaluationReport, MeasuredRow, MeasuredSum } from "../../domain/evaluation/EvaluationReport.ts"
import { type Figure, type Ratio, valueOf } from "../../domain/evaluation/Measure.ts"
import { plantedKinds } from "../../domain/evaluation/PlantedFacts.ts"
import type { PlantedSum } from "../../domain/evaluation/PlantedGrades.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { narrowRow } from "./Columns.ts"
import * as Output from "./Output.ts"

const cell = ({ unit }: Figure, value: number | undefined | null): string =>
  value === undefined || value === null ? "–" : unit === "mean" ? Output.number(Math.round(value)) : value.toFixed(2)

const writerOf = ({ preserve, size, writer }: Pick<MeasuredRow, "writer" | "preserve" | "size">): string =>
  preserve === null
    ? "recorded summary"
    : `${writer} ${preserve === 0 ? "alone" : `keep ${preserve}`}${/^\d+$/.test(size) ? ` ${Output.number(Number(size))}` : ""}`

const ratios = (figures: ReadonlyArray<Figure>, of: Readonly<Record<string, Ratio>>): ReadonlyArray<string> =>
  figures.map((figure) => cell(figure, valueOf(of[figure.key] ?? { part: 0, whole: 0 })))

const sumRows = (sum: MeasuredSum, figures: ReadonlyArray<Figure>): ReadonlyArray<ReadonlyArray<string>> => {
  const values = figures.map((figure) => cell(figure, sum.figures[figure.key]?.value))
  const intervals = figures.map((figure) => {
    const interval = sum.figures[figure.key]?.interval
    return interval === undefined || interval === null ? "" : interval.map((end) => cell(figure, end)).join("–")
  })
  const row = [
    `  ${writerOf(sum)} (${sum.points})`,
    Output.number(sum.snapshotTokens),
    Output.number(sum.contextTokens)
  ]
  return intervals.some((text) => text !== "")
    ? [
        [...row, ...values],
        ["", "", "", ...intervals]
      ]
    : [[...row, ...values]]
}

/** Returns the report as text: a table where it fits into the columns of the terminal. */
export const describeEvaluation = (
  report: EvaluationReport,
  figures: ReadonlyArray<Figure>,
  columns: number | undefined
): string => {
  const rows: Array<ReadonlyArray<string>> = [["", "snapshot", "context", ...figures.map(({ title }) => title)]]
  /** Lines wider than a column, by the index of the row below them. */
  const headings = new Map<number, Array<string>>()
  const heading = (line: string) => headings.set(rows.length, [...(headings.get(rows.length) ?? []), line])
  for (const { file, points } of report.files) {
    heading(printableLine(file))
    if (points.length === 0) heading("  no point with four messages before and after it")
    for (const point of points) {
      const counts = [Output.number(point.entriesBefore), Output.number(point.entriesAfter)]
      heading(`  after ${point.after}: ${counts[0]} messages before, ${counts[1]} after`)
      for (const row of point.rows) {
        const sizes = [Output.number(row.snapshotTokens), Output.number(row.contextTokens)]
        const status = row.isMeasured ? "" : ": not compressed"
        rows.push([`    ${writerOf(row)}${status}`, ...sizes, ...ratios(figures, row.figures)])
      }
    }
  }
  if (report.sums.length > 0) heading("all files, with 95 % intervals by file")
  rows.push(...report.sums.flatMap((sum) => sumRows(sum, figures)))
  const lines = Output.table(rows, `l${"r".repeat(figures.length + 2)}`).split("\n")
  const isNarrow = columns !== undefined && lines.some((line) => Output.columnsOf(line) > columns)
  const [, ...titles] = rows[0] ?? []
  const shown = isNarrow
    ? rows.map(([name = "", ...values], index) =>
        index === 0 ? [] : narrowRow([name || "      95 % intervals", ...values], titles, columns, 6)
      )
    : lines.map((line) => [line])
  return [
    ...shown.flatMap((row, index) => [...(headings.get(index) ?? []), ...row]),
    ...(headings.get(rows.length) ?? [])
  ].join("\n")
}

// The table of planted facts: a row for each kind, with its grades after each number of compressions.

/** Returns the sums as text, one table for each writer and share that was kept. */
export const describePlanted = (sums: ReadonlyArray<PlantedSum>): string => {
  const rows: Array<ReadonlyArray<string>> = []
  for (const { budget, compressions, kinds, preserve, writer } of sums) {
    const title = `planted: ${writer} ${preserve === 0 ? "alone" : `keep ${preserve}`} ${Output.number(budget)}`
    const times = Output.plural(compressions, "compression")
    rows.push([`${title}, ${times}`, "planted", "kept", "reachable", "stale", "lost", "invented"])
    for (const kind of plantedKinds) {
      const counts = kinds[kind]
      if (counts === undefined) continue
      const { invented, kept, lost, planted, reachable, stale } = counts
      rows.push([`  ${kind}`, ...[planted, kept, reachable, stale, lost, invented].map(Output.number)])
    }
  }
  return Output.table(rows, "lrrrrrr")
}
