import type { Ratio } from "../../domain/evaluation/Measure.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { plural } from "../../domain/text/NumberText.ts"
import { dollars } from "./InspectReport.ts"
import * as Output from "./Output.ts"
import { isChange, isRescue, type Report, type Result } from "./ReplayReport.ts"

/** The text of `replay`: a timeline of each strategy, then the table of figures. */

const { number, share, table } = Output

type Compression = Result["compressions"][number]

/** Maximum rows of a timeline and ranges of refused turns. `--json` has all of them. */
const rowsShown = 20

/** Groups consecutive compressions that failed in the same way into one row. */
const runsOf = (compressions: ReadonlyArray<Compression>): ReadonlyArray<ReadonlyArray<Compression>> => {
  const runs: Array<Array<Compression>> = []
  for (const one of compressions) {
    const run = runs.at(-1)
    const isAlike = run?.[0]?.status === one.status && run[0].trigger === one.trigger && !isChange(one)
    if (isAlike) run.push(one)
    else runs.push([one])
  }
  return runs
}

const span = (from: number, to: number): string => (from === to ? number(from) : `${number(from)}–${number(to)}`)

const runRow = (run: ReadonlyArray<Compression>, refused: ReadonlyArray<number>): ReadonlyArray<string> => {
  const [first] = run
  const last = run.at(-1)
  if (first === undefined || last === undefined) return []
  const by = isRescue(first, refused) ? "rescued by the guard" : first.trigger === "guard" ? "forced by the guard" : ""
  return [
    `turn ${span(first.turn, last.turn)}`,
    number(first.before),
    isChange(first) ? "→" : run.length > 1 ? "to" : "",
    isChange(first) ? number(first.after) : run.length > 1 ? number(last.before) : "",
    run.length > 1 ? `${first.status}, ${number(run.length)} times` : first.status,
    by
  ]
}

/** Formats turns as ranges, such as `6–24, 30`. */
const spansOf = (turns: ReadonlyArray<number>): string => {
  const spans: Array<{ readonly from: number; to: number }> = []
  for (const turn of turns) {
    const last = spans.at(-1)
    if (last?.to === turn - 1) last.to = turn
    else spans.push({ from: turn, to: turn })
  }
  const shown = spans.slice(0, rowsShown).map(({ from, to }) => span(from, to))
  return shown.join(", ") + (spans.length > rowsShown ? ", …" : "")
}

const timeline = ({ compressions, largest, refused, sizes, strategy }: Result, style: Output.Style): string => {
  const runs = runsOf(compressions)
  const more = Math.max(0, runs.length - rowsShown)
  const lines = [
    Output.sparkline(
      sizes.map(({ tokens }) => tokens),
      80
    ),
    `${plural(sizes.length, "request")}, first to last; the largest has ${plural(largest, "token")}`,
    ...(runs.length === 0
      ? ["no compression was needed"]
      : table(
          runs.slice(0, rowsShown).map((run) => runRow(run, refused)),
          "lrlrll"
        ).split("\n")),
    ...(more > 0 ? [`and ${number(more)} more (--json has them all)`] : []),
    ...(refused.length > 0 ? [style.warn(`refused, too large even after compression: turn ${spansOf(refused)}`)] : [])
  ]
  return [style.bold(strategy), ...lines.map((line) => `  ${line}`)].join("\n")
}

/** A row of the table: the name of a figure, whether it belongs to the one above, and its value for each strategy. */
export interface FigureRow {
  readonly name: string
  readonly isPart: boolean
  readonly values: ReadonlyArray<string>
}

const noRatio: Ratio = { part: 0, whole: 0 }

/**
 * Returns the table of figures: one row per figure, one value per strategy. Some rows are left out when their figure is zero
 * for all strategies.
 */
export const figureRows = (results: ReadonlyArray<Result>): ReadonlyArray<FigureRow> => {
  const row = (name: string, value: (result: Result) => string): FigureRow => ({
    name,
    isPart: false,
    values: results.map(value)
  })
  const part = (name: string, value: (result: Result) => string): FigureRow => ({ ...row(name, value), isPart: true })
  const any = (figure: (result: Result) => number, ...rows: ReadonlyArray<FigureRow>) =>
    results.some((result) => figure(result) > 0) ? rows : []
  const kept = (name: string, located: (facts: Result["facts"]) => number) =>
    part(name, ({ facts }) => (facts.used === 0 ? "–" : share(located(facts), facts.used)))
  const figure = (result: Result, key: string) => result.figures[key] ?? noRatio
  const shareOf = (ratio: Ratio) => (ratio.whole === 0 ? "–" : share(ratio.part, ratio.whole))
  const statuses = [...new Set(results.flatMap((result) => Object.keys(result.statuses)))].sort()
  return [
    row("turns", ({ turns }) => number(turns)),
    row("requests", ({ requests }) => number(requests)),
    part("larger than the window", ({ over }) => number(over)),
    ...any(
      ({ refused }) => refused.length,
      part("refused before sending", ({ refused }) => number(refused.length))
    ),
    row("compressed at", ({ trigger }) => number(trigger)),
    row("largest request", ({ largest }) => number(largest)),
    row("tokens sent in total", ({ sent }) => number(sent)),
    part("a request, on average", ({ requests, sent }) => number(Math.round(sent / Math.max(1, requests)))),
    part("shared with the previous request", ({ prefix, sent }) => share(prefix, sent)),
    row("unchanged between compressions", ({ stable }) => shareOf(stable)),
    part("least of one request", ({ stable: { least, whole } }) => (whole === 0 ? "–" : share(least, 1))),
    row("cost", ({ cost }) => (cost === null ? "–" : dollars(cost))),
    row("compressions", ({ compressions }) => number(compressions.length)),
    ...statuses.map((status) => part(status, (result) => number(result.statuses[status] ?? 0))),
    ...any(
      ({ compressions }) => compressions.length,
      part("rescued by the guard", ({ rescued }) => number(rescued)),
      part("again without progress", ({ inVain }) => number(inVain))
    ),
    ...any(
      (result) => figure(result, "actionsGrounded").whole,
      row("actions that need what was before", (result) => number(figure(result, "actionsGrounded").whole)),
      part("grounded in the context", (result) => shareOf(figure(result, "actionsGrounded"))),
      part("or one recall away", (result) => shareOf(figure(result, "actionsReachable")))
    ),
    ...any(
      ({ facts }) => facts.used,
      row("facts used again after a compression", ({ facts }) => number(facts.used)),
      kept("still in the context", ({ inContext }) => inContext),
      kept("behind a handle", ({ behindHandle }) => behindHandle),
      kept("lost", ({ lost }) => lost)
    )
  ]
}

const figures = (results: ReadonlyArray<Result>, style: Output.Style): string =>
  table(
    [
      ["", ...results.map(({ strategy }) => style.bold(strategy))],
      ...figureRows(results).map(({ isPart, name, values }) => [isPart ? `  ${name}` : name, ...values])
    ],
    `l${"r".repeat(results.length)}`
  )

/** Says at how many tokens the strategies compress: one number when all agree. */
export const triggersText = (results: ReadonlyArray<Result>): string => {
  const triggers = [...new Set(results.map(({ trigger }) => trigger))]
  const namesAt = (tokens: number) => results.flatMap(({ strategy, trigger }) => (trigger === tokens ? strategy : []))
  return triggers.length === 1
    ? triggers.map(number).join("")
    : triggers.map((tokens) => `${number(tokens)} (${namesAt(tokens).join(", ")})`).join(", ")
}

/** Describes how the cost was computed; undefined when there is none. */
export const costNote = ({ model, prices, strategies }: Report): string | undefined =>
  model === null || strategies.every(({ cost }) => cost === null)
    ? undefined
    : `cost: ${printableLine(model)}, ${printableLine(prices)}; a cache serves what a request shares with the one before`

/** The report as text. It omits durations, so that the same file gives the same text. */
export const describe = (report: Report, style: Output.Style = Output.plain): string => {
  const note = costNote(report)
  return [
    `${printableLine(report.file)} (${report.format}, ${number(report.messages)} messages) in a window of ${number(report.window)} tokens, compressed at ${triggersText(report.strategies)}`,
    ...report.strategies.map((result) => timeline(result, style)),
    figures(report.strategies, style),
    ...(note === undefined ? [] : [note])
  ].join("\n\n")
}
