/** The figures of two conversations beside each other. */

import { PartKind } from "../../domain/evaluation/PartKind.ts"
import { column, figures, type Section, table } from "../../domain/evaluation/Report.ts"
import { dollars } from "../../domain/text/NumberText.ts"
import { inputName } from "../../services/transcripts/TranscriptError.ts"
import { kindNames, type Report } from "./InspectReport.ts"
import { number, share } from "./Output.ts"

/** A row: what is counted, the figure of each, and the change from the first to the second. */
type ComparisonRow = readonly [what: string, one: string, other: string, change: string]

const compared: ReadonlyArray<
  readonly [what: string, figure: (report: Report) => number | null, form?: (value: number) => string]
> = [
  ["tokens in all", ({ tokens }) => tokens.all],
  ["tokens in view", ({ tokens }) => tokens.view],
  ["messages", ({ messages }) => messages],
  ["prompts", ({ turns }) => turns],
  ["tool calls", ({ tools }) => tools.reduce((sum, { calls }) => sum + calls, 0)],
  ["compactions", ({ compactions }) => compactions.length],
  ["tokens by rereading files", ({ reads }) => reads.reduce((sum, { repeated }) => sum + repeated, 0)],
  ["sent, as recorded", ({ usage }) => usage?.recorded.prompt ?? null],
  ["of which from a cache", ({ usage }) => usage?.recorded.cached ?? null],
  ["cost", ({ cost }) => cost.total, dollars]
]

/** The rows. A figure that one of them lacks is a dash; kinds that neither has are left out. */
const comparisonRows = (one: Report, other: Report): ReadonlyArray<ComparisonRow> => {
  const kinds = PartKind.literals.filter((kind) =>
    [one, other].some((report) => report.kinds.some((each) => each.kind === kind && each.tokens > 0))
  )
  const all = [
    ...compared,
    ...kinds.map(
      (kind) =>
        [kindNames[kind], ({ kinds }: Report) => kinds.find((each) => each.kind === kind)?.tokens ?? 0, number] as const
    )
  ]
  return all.map(([what, figure, form = number]) => {
    const [a, b] = [figure(one), figure(other)]
    const change =
      a === null || b === null || a === 0 || a === b
        ? ""
        : b >= 3 * a
          ? `× ${(b / a).toFixed(1)}`
          : `${b < a ? "−" : "+"}${share(Math.abs(b - a), a)}`
    return [what, a === null ? "–" : form(a), b === null ? "–" : form(b), change]
  })
}

/** The names of two files, with as many of their folders as distinguish them. */
export const namesOf = (one: Report, other: Report): readonly [string, string] => {
  const parts = [one, other].map(({ file }) => inputName(file).split(/[\\/]/))
  const [a = [], b = []] = parts
  let kept = 1
  while (kept < Math.max(a.length, b.length) && a.slice(-kept).join("/") === b.slice(-kept).join("/")) kept += 1
  return [a.slice(-kept).join("/"), b.slice(-kept).join("/")]
}

/** Returns the figures of two conversations beside each other. */
export const comparisonSection = (one: Report, other: Report): Section => ({
  id: "beside",
  title: "Side by side",
  blocks: [
    { _tag: "Chart", id: "beside", values: [], caption: "" },
    table("Figures of both", comparisonRows(one, other), [
      column("figure", ([what]) => what),
      ...namesOf(one, other).map((head, at) =>
        figures<ComparisonRow>(head, (row) => row[at + 1] ?? "", { isName: true })
      ),
      figures("change", ([, , , change]) => change, { isExtra: true })
    ])
  ]
})
