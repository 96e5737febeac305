/** What `cost` says: the document of `--json`, and the sections of the report. */

import { Record, Schema } from "effect"
import { EntryId } from "../../domain/conversation/Conversation.ts"
import {
  blocksOf,
  type Cell,
  column,
  figures,
  name,
  type Section,
  sentence,
  table
} from "../../domain/evaluation/Report.ts"
import { Spent } from "../../domain/evaluation/SessionCost.ts"
import { Rating } from "../../domain/session/Rating.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { dollars } from "../../domain/text/NumberText.ts"
import type { Account, Accounts, SessionBreak } from "../../services/transcripts/SessionAccounts.ts"
import { type KeptEnd, truncate } from "./Columns.ts"
import { ratingsTable } from "./InspectSections.ts"
import { orNull, Time } from "./JsonFields.ts"
import * as Output from "./Output.ts"
import { reportText, type TextLimits } from "./ReportText.ts"
import { iso } from "./TimeText.ts"

const Sums = Schema.Struct({
  /** The folder, day, model or agent; for a session the path of its file. */
  name: Schema.String,
  /** The title of a session. */
  title: Schema.optionalKey(Schema.String),
  /** The id of a session. */
  id: Schema.optionalKey(Schema.String),
  ...Spent.fields,
  breaks: Schema.Natural,
  /** US dollars that cache breaks cost. */
  breakCost: Schema.Finite
})
type Sums = typeof Sums.Type

const Break = Schema.Struct({
  agent: Schema.String,
  path: Schema.String,
  at: Time,
  request: Schema.String,
  model: Schema.String,
  cause: Schema.String,
  detail: Schema.String,
  avoid: Schema.String,
  /** Tokens that the cache could have served, and those that it did. */
  expected: Schema.Natural,
  served: Schema.Natural,
  cost: orNull(Schema.Finite)
})

/** A file that was read more than once. */
export const Reread = Schema.Struct({
  path: Schema.String,
  reads: Schema.Natural,
  /** Tokens of the repeats. */
  repeated: Schema.Natural,
  /** US dollars for sending them once; null without a price. */
  cost: orNull(Schema.Finite)
})
export type Reread = typeof Reread.Type

/** The report. */
export const CostReport = Schema.Struct({
  currency: Schema.Literal("USD"),
  /** The source of the prices. */
  prices: Schema.String,
  sessions: Schema.Natural,
  total: Sums,
  session: Schema.Array(Sums),
  folder: Schema.Array(Sums),
  day: Schema.Array(Sums),
  model: Schema.Array(Sums),
  agent: Schema.Array(Sums),
  breaks: Schema.Array(Break),
  /** For one session; null for several. */
  reads: Schema.NullOr(Schema.Array(Reread)),
  /** The user's ratings of compressions in force, oldest first, each after an entry. For one session; null for several. */
  ratings: Schema.NullOr(Schema.Array(Schema.Struct({ after: Schema.NullOr(EntryId), rating: Rating }))),
  /** Requests that several files record, counted once. */
  repeated: Schema.Natural,
  problems: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
})
export type CostReport = typeof CostReport.Type

const dollarsExactly = (cost: number): number => Math.round(cost * 1e6) / 1e6

const sumsOf = ({ session, ...account }: Account): Sums => ({
  ...account,
  ...(session === undefined ? {} : { id: session.id }),
  ...(session?.title === undefined ? {} : { title: session.title }),
  cost: dollarsExactly(account.cost),
  breakCost: dollarsExactly(account.breakCost)
})

const breakOf = ({ cost, session, ...rest }: SessionBreak): typeof Break.Type => ({
  ...rest,
  agent: session.agent,
  path: session.path,
  ...(cost === undefined ? {} : { cost: dollarsExactly(cost) })
})

/** Makes a report of accounts. */
export const reportOf = (
  { breaks, by, repeated, sessions, total }: Accounts,
  about: Pick<CostReport, "prices" | "ratings" | "reads" | "problems">
): CostReport => ({
  currency: "USD",
  sessions,
  ...about,
  total: sumsOf(total),
  ...Record.map(by, (accounts) => accounts.map(sumsOf)),
  breaks: breaks.map(breakOf),
  repeated
})

export type Dimension = "session" | "folder" | "day" | "model" | "agent"

const maxNameChars = 80

/** The end of a name that stays when it is cut: of a path the last one. */
const keptEnd = (text: string): KeptEnd => (/[/\\]/.test(text) ? "end" : "start")

/** Cuts the name of a session, a folder or a model. */
export const shortName = (text: string, columns: number): string =>
  truncate(printableLine(text), columns, keptEnd(text))

/** The beginning of an id: those of opencode all begin with the same word. */
const idStart = /^(?:[a-z]+_)?.{0,8}/

/** The name of a row: a session by the beginning of its id and its title. */
const rowName = ({ id = "", name: full, title }: Sums): Cell =>
  title === undefined
    ? name(shortName(full, maxNameChars), keptEnd(full))
    : name(`${idStart.exec(printableLine(id))?.[0] ?? ""} ${truncate(printableLine(title), maxNameChars)}`)

const costOf = ({ cost, requests, unpriced }: Sums): string =>
  unpriced === requests ? "no price" : `${dollars(cost)}${unpriced > 0 ? " +" : ""}`

const sumsSection = (by: Dimension, rows: ReadonlyArray<Sums>): Section => ({
  id: by,
  title: `By ${by}`,
  blocks: [
    table(
      `By ${by}`,
      rows,
      [
        column(by, rowName),
        figures("requests", ({ requests }) => requests, { isExtra: true }),
        figures("sent", ({ sent }) => Output.tokensText(sent)),
        figures("cached", ({ cached, sent }) => Output.share(cached, sent), { isExtra: true }),
        figures("answered", ({ answered }) => Output.tokensText(answered), { isExtra: true }),
        figures("cost", costOf),
        figures("by cache breaks", ({ breakCost, breaks }) => (breaks === 0 ? "" : dollars(breakCost)))
      ],
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

const priceText = (cost: number | undefined): string => (cost === undefined ? "?" : dollars(cost))

/** Of several sessions only the causes are shown. */
const breaksSection = ({ breaks, reads }: CostReport): Section => {
  const sum = breaks.reduce((total, { cost }) => total + (cost ?? 0), 0)
  const blocks = blocksOf(
    breaks.length === 0
      ? undefined
      : sentence(`It broke ${Output.plural(breaks.length, "time")}, for ${dollars(sum)}.`),
    table("By cause", causesOf(breaks), [
      column("cause", ({ cause }) => cause),
      figures("times", ({ count }) => count),
      figures("cost", ({ cost }) => dollars(cost)),
      column("what avoids it", ({ avoid }) => avoid, { form: "prose", isExtra: true })
    ]),
    table(
      "Most expensive first",
      reads === null ? [] : breaks,
      [
        column("when", ({ at }) => iso(at).slice(0, 16).replace("T", " ")),
        figures("from the cache", ({ served }) => Output.tokensText(served)),
        figures("expected", ({ expected }) => Output.tokensText(expected)),
        figures("cost", ({ cost }) => priceText(cost)),
        column("what changed before", ({ detail }) => detail, { form: "prose" })
      ],
      200
    )
  )
  return { id: "breaks", title: "Where the prompt cache broke", short: "Cache breaks", blocks }
}

const readsSection = ({ reads }: CostReport): Section => {
  const files = table(
    "Files by tokens in repeated reads",
    reads ?? [],
    [
      column("file", ({ path }) => name(shortName(path, maxNameChars), "end")),
      figures("reads", (read) => read.reads),
      figures("tokens again", ({ repeated }) => repeated),
      figures("cost", ({ cost }) => priceText(cost))
    ],
    200
  )
  return { id: "reads", title: "Files read more than once", short: "Files read again", blocks: blocksOf(files) }
}

const ratingsSection = ({ ratings }: CostReport): Section => ({
  id: "ratings",
  title: "Rated compressions",
  short: "Ratings",
  blocks: blocksOf(ratingsTable(ratings ?? []))
})

/** Returns the sections of a report: only the sums by `by`, or those by each of `all`, and what is known of the inside of sessions. */
export const costSections = (
  report: CostReport,
  by: Dimension | undefined,
  all: ReadonlyArray<Dimension>
): ReadonlyArray<Section> =>
  by !== undefined
    ? [sumsSection(by, report[by])]
    : [
        ...all.flatMap((one) => (report[one].length > 1 || one === "model" ? [sumsSection(one, report[one])] : [])),
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
export const costText = (
  report: CostReport,
  by: Dimension | undefined,
  style: Output.Style,
  limits: TextLimits
): string => {
  const rows = by === undefined ? textRows.several : textRows.one
  const sections = reportText(costSections(report, by, ["agent", "model", "session"]), style, { ...limits, rows })
  if (by !== undefined) return sections
  const { recorded, unpriced } = report.total
  return [
    style.bold(costHeading(report)) +
      (unpriced > 0 ? `\n${Output.plural(unpriced, "request")} without a price; add it with --prices` : ""),
    sections,
    style.dim(
      `Prices: ${report.prices}${recorded > 0 ? `; ${Output.plural(recorded, "request")} as the agent recorded` : ""}`
    )
  ].join("\n\n")
}
