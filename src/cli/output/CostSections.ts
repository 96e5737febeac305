import { type Cell, name, numbers, type Section, sentence, table } from "../../domain/evaluation/Report.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { truncate } from "./Columns.ts"
import type { CostReport } from "./CostReport.ts"
import { dollars } from "./InspectReport.ts"
import { ratingsTable } from "./InspectSections.ts"
import * as Output from "./Output.ts"
import { reportText, textLimits } from "./ReportText.ts"

/** What sessions cost, as sections of a report. */

/** Formats a count of tokens: `950`, `12k`, `3.4M`. */
export const tokensText = (tokens: number): string =>
  tokens < 1_000
    ? String(tokens)
    : tokens < 999_500
      ? `${Math.round(tokens / 1_000)}k`
      : `${(tokens / 1e6).toFixed(tokens < 99.5e6 ? 1 : 0)}M`

type Sums = CostReport["total"]
export type Dimension = "session" | "folder" | "day" | "model" | "agent"

const maxNameChars = 80

/** Shortens a path from its beginning, and any other name from its end. */
export const shortName = (text: string, columns: number): string => {
  const line = printableLine(text)
  return line.length > columns && /[/\\]/.test(line) ? `…${line.slice(1 - columns)}` : truncate(line, columns)
}

/** The name of a row: a session by the beginning of its id and its title. */
const rowName = ({ name: full, title }: Sums): Cell => {
  const [id = ""] = /[^/\\#]+$/.exec(full) ?? []
  return title === undefined
    ? name(shortName(full, maxNameChars), /[/\\]/.test(full) ? "end" : "start")
    : name(`${id.replace(/^[^_]*_(?=.)|\.\w+$/g, "").slice(0, 8)} ${truncate(printableLine(title), maxNameChars)}`)
}

const costOf = ({ cost, requests, unpriced }: Sums): string =>
  unpriced === requests ? "no price" : `${dollars(cost)}${unpriced > 0 ? " +" : ""}`

const sumsSection = (by: Dimension, rows: ReadonlyArray<Sums>): Section => ({
  id: by,
  title: `By ${by}`,
  blocks: [
    table(
      `By ${by}`,
      [
        { head: by },
        numbers("requests", { isExtra: true }),
        numbers("sent"),
        numbers("cached", { isExtra: true }),
        numbers("answered", { isExtra: true }),
        numbers("cost"),
        numbers("by cache breaks")
      ],
      rows.map((sums) => [
        rowName(sums),
        Output.number(sums.requests),
        tokensText(sums.sent),
        Output.share(sums.cached, sums.sent),
        tokensText(sums.answered),
        costOf(sums),
        sums.breaks === 0 ? "" : dollars(sums.breakCost)
      ]),
      200
    )
  ]
})

/** Breaks added up by cause: how many, what they cost, and what would have avoided them. */
const causesOf = (breaks: CostReport["breaks"]) => {
  const causes = new Map<string, { count: number; cost: number; avoid: string }>()
  for (const { avoid, cause, cost } of breaks) {
    const sum = causes.get(cause) ?? { count: 0, cost: 0, avoid }
    causes.set(cause, { count: sum.count + 1, cost: sum.cost + (cost ?? 0), avoid: sum.avoid })
  }
  return [...causes].map(([cause, sums]) => ({ cause, ...sums })).sort((a, b) => b.cost - a.cost)
}

const priceText = (cost: number | null): string => (cost === null ? "?" : dollars(cost))

/** Of several sessions a terminal shows the causes alone. */
const breaksSection = ({ breaks, reads }: CostReport): Section => {
  const sum = breaks.reduce((total, { cost }) => total + (cost ?? 0), 0)
  const list = table(
    "Most expensive first",
    [
      { head: "when" },
      numbers("served"),
      numbers("of"),
      numbers("cost"),
      { head: "what changed before", form: "prose" }
    ],
    breaks.map(({ at, cost, detail, expected, served }) => [
      at.slice(0, 16).replace("T", " "),
      tokensText(served),
      tokensText(expected),
      priceText(cost),
      detail
    ]),
    200
  )
  return {
    id: "breaks",
    title: "Where the prompt cache broke",
    short: "Cache breaks",
    blocks:
      breaks.length === 0
        ? []
        : [
            sentence(`It broke ${Output.plural(breaks.length, "time")}, for ${dollars(sum)}.`),
            table(
              "By cause",
              [
                { head: "cause" },
                numbers("times"),
                numbers("cost"),
                { head: "what avoids it", form: "prose", isExtra: true }
              ],
              causesOf(breaks).map(({ avoid, cause, cost, count }) => [
                cause,
                Output.number(count),
                dollars(cost),
                avoid
              ])
            ),
            ...(reads === null ? [] : [list])
          ]
  }
}

const readsSection = ({ reads }: CostReport): Section => ({
  id: "reads",
  title: "Files read more than once",
  short: "Files read again",
  blocks:
    reads === null || reads.length === 0
      ? []
      : [
          table(
            "Files by tokens in repeated reads",
            [{ head: "file" }, numbers("reads"), numbers("tokens again"), numbers("cost")],
            reads.map(({ cost, path, reads: times, repeated }) => [
              name(shortName(path, maxNameChars), "end"),
              Output.number(times),
              Output.number(repeated),
              priceText(cost)
            ]),
            200
          )
        ]
})

const ratingsSection = ({ ratings }: CostReport): Section => ({
  id: "ratings",
  title: "Rated compressions",
  short: "Ratings",
  blocks: ratings === null || ratings.length === 0 ? [] : [ratingsTable(ratings)]
})

/** Returns the sections of a report: the sums by each of these, and what is known of the inside of sessions. */
export const costSections = (report: CostReport, by: ReadonlyArray<Dimension>): ReadonlyArray<Section> => [
  ...by.flatMap((one) => (report[one].length > 1 || one === "model" ? [sumsSection(one, report[one])] : [])),
  breaksSection(report),
  readsSection(report),
  ratingsSection(report)
]

/** The first line of a report. */
export const costHeading = ({ sessions, total }: CostReport): string =>
  `${total.unpriced === total.requests ? "no price" : dollars(total.cost)} for ${Output.plural(total.requests, "request")} in ${Output.plural(sessions, "session")}`

/** Rows of a table in a text, and of one that was asked for by itself. */
const textRows = { several: 10, one: 100 }

/** The report as text: everything, or only one table. */
export const costText = (report: CostReport, by: Dimension | undefined, style: Output.Style): string => {
  if (by !== undefined) {
    return reportText([sumsSection(by, report[by])], style, { ...textLimits, rows: textRows.one })
  }
  const { recorded, unpriced } = report.total
  return [
    style.bold(costHeading(report)) +
      (unpriced > 0 ? `\n${Output.plural(unpriced, "request")} without a price; add it with --prices` : ""),
    reportText(costSections(report, ["agent", "model", "session"]), style, { ...textLimits, rows: textRows.several }),
    style.dim(
      `Prices: ${report.prices}${recorded > 0 ? `; ${Output.plural(recorded, "request")} as the agent recorded` : ""}`
    )
  ].join("\n\n")
}
