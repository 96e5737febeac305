import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { truncate } from "./Columns.ts"
import type { CostReport } from "./CostReport.ts"
import { dollars, ratingLines } from "./InspectReport.ts"
import * as Output from "./Output.ts"

/** What sessions cost, as a text for the user. */

/** Formats a count of tokens: `950`, `12k`, `3.4M`. */
export const tokensText = (tokens: number): string =>
  tokens < 1_000
    ? String(tokens)
    : tokens < 999_500
      ? `${Math.round(tokens / 1_000)}k`
      : `${(tokens / 1e6).toFixed(tokens < 99.5e6 ? 1 : 0)}M`

type Sums = CostReport["total"]

/** The width of the name of a row. */
const nameColumns = 44

/** Shortens a path from its beginning, and any other name from its end. */
export const shortName = (name: string, columns: number): string => {
  const line = printableLine(name)
  return line.length > columns && /[/\\]/.test(line) ? `…${line.slice(1 - columns)}` : truncate(line, columns)
}

/** The name of a row: a session by the beginning of its id and its title. */
export const rowName = ({ name, title }: Sums, columns: number): string => {
  const [id = ""] = /[^/\\#]+$/.exec(name) ?? []
  return title === undefined
    ? shortName(name, columns)
    : truncate(`${id.replace(/^[^_]*_(?=.)|\.\w+$/g, "").slice(0, 8)} ${printableLine(title)}`, columns)
}

const costOf = ({ cost, requests, unpriced }: Sums): string =>
  unpriced === requests ? "no price" : `${dollars(cost)}${unpriced > 0 ? " +" : ""}`

const cells = (sums: Sums): ReadonlyArray<string> => [
  rowName(sums, nameColumns),
  Output.number(sums.requests),
  tokensText(sums.sent),
  Output.share(sums.cached, sums.sent),
  tokensText(sums.answered),
  costOf(sums),
  sums.breaks === 0 ? "" : dollars(sums.breakCost)
]

/** A table of sums. */
const sumsTable = (head: string, rows: ReadonlyArray<Sums>, limit: number, style: Output.Style): string => {
  const header = [head, "requests", "sent", "cached", "answered", "cost", "by cache breaks"]
  const more = rows.length - limit
  const [first = "", ...lines] = Output.table([header, ...rows.slice(0, limit).map(cells)], "lrrrrrr").split("\n")
  return [
    style.bold(first),
    ...lines,
    ...(more > 0 ? [`and ${Output.number(more)} more (--json has them all)`] : [])
  ].join("\n")
}

/** Breaks added up by cause: how many, what they cost, and what would have avoided them. */
export const causesOf = (breaks: CostReport["breaks"]) => {
  const causes = new Map<string, { count: number; cost: number; avoid: string }>()
  for (const { avoid, cause, cost } of breaks) {
    const sum = causes.get(cause) ?? { count: 0, cost: 0, avoid }
    causes.set(cause, { count: sum.count + 1, cost: sum.cost + (cost ?? 0), avoid: sum.avoid })
  }
  return [...causes].map(([cause, sums]) => ({ cause, ...sums })).sort((a, b) => b.cost - a.cost)
}

const maxBreaks = 12
const maxReads = 10

const minuteOf = (at: string): string => at.slice(0, 16).replace("T", " ")

const breaksText = ({ breaks, reads }: CostReport, style: Output.Style): ReadonlyArray<string> => {
  if (breaks.length === 0) return []
  const sum = breaks.reduce((total, { cost }) => total + (cost ?? 0), 0)
  const causes = causesOf(breaks).flatMap(({ avoid, cause, cost, count }) => [
    `${cause}: ${Output.plural(count, "time")}, ${dollars(cost)}`,
    style.dim(`  ${avoid}`)
  ])
  const list =
    reads === null
      ? []
      : [
          "",
          ...breaks
            .slice(0, maxBreaks)
            .map(
              (one) =>
                `${minuteOf(one.at)}  ${one.cost === null ? "?" : dollars(one.cost)}  served ${tokensText(one.served)} of ${tokensText(one.expected)}: ${printableLine(one.detail)}`
            ),
          ...(breaks.length > maxBreaks ? [`and ${Output.plural(breaks.length - maxBreaks, "more break")}`] : [])
        ]
  return [
    "",
    style.bold(`Where the prompt cache broke: ${Output.plural(breaks.length, "time")}, ${dollars(sum)}`),
    ...causes,
    ...list
  ]
}

const readsText = ({ reads }: CostReport, style: Output.Style): ReadonlyArray<string> => {
  if (reads === null || reads.length === 0) return []
  const rows = reads
    .slice(0, maxReads)
    .map(({ cost, path, reads: times, repeated }) => [
      shortName(path, nameColumns),
      `${times} times`,
      `${tokensText(repeated)} tokens again`,
      cost === null ? "" : dollars(cost)
    ])
  return ["", style.bold("Files read more than once"), Output.table(rows, "lrrr")]
}

const ratingsText = ({ ratings }: CostReport, style: Output.Style): ReadonlyArray<string> =>
  ratings === null || ratings.length === 0 ? [] : ["", style.bold("Rated compressions"), ...ratingLines(ratings)]

/** The sections of a report: everything, or only one table. */
export const costText = (
  report: CostReport,
  by: "session" | "folder" | "day" | "model" | "agent" | undefined,
  style: Output.Style
): string => {
  if (by !== undefined) return sumsTable(by, report[by], 100, style)
  const { agent, model, session, total } = report
  const heading = `${total.unpriced === total.requests ? "no price" : dollars(total.cost)} for ${Output.plural(total.requests, "request")} in ${Output.plural(report.sessions, "session")}`
  return [
    style.bold(heading),
    ...(total.unpriced > 0
      ? [`${Output.plural(total.unpriced, "request")} without a price; add it with --prices`]
      : []),
    ...(agent.length > 1 ? ["", sumsTable("agent", agent, 10, style)] : []),
    "",
    sumsTable("model", model, 10, style),
    ...(session.length > 1 ? ["", sumsTable("session", session, 10, style)] : []),
    ...breaksText(report, style),
    ...readsText(report, style),
    ...ratingsText(report, style),
    "",
    style.dim(
      `Prices: ${report.prices}${total.recorded > 0 ? `; ${Output.plural(total.recorded, "request")} as the agent recorded` : ""}`
    )
  ].join("\n")
}
