import { Effect } from "effect"
import type { CostReport } from "../output/CostReport.ts"
import { causesOf, rowName, shortName, tokensText } from "../output/CostTable.ts"
import { dollars, ratingLines } from "../output/InspectReport.ts"
import { number, plural, share } from "../output/Output.ts"
import { renderDocument } from "./Document.ts"
import { type Html, markup, none } from "./Markup.ts"
import { section, table } from "./Sections.ts"

/** The page of `cost`: tables of what sessions cost, and where caches broke. */

const maxRows = 200

const sums = (head: string, rows: ReadonlyArray<CostReport["total"]>): Html =>
  table(
    rows.length > maxRows ? `The first ${maxRows} of ${number(rows.length)}` : `By ${head}`,
    [
      { head },
      { head: "requests", form: "n extra" },
      { head: "sent", form: "n" },
      { head: "cached", form: "n extra" },
      { head: "answered", form: "n extra" },
      { head: "cost", form: "n" },
      { head: "by cache breaks", form: "n" }
    ],
    rows
      .slice(0, maxRows)
      .map((row) => [
        markup`<span class="any">${rowName(row, 80)}</span>`,
        number(row.requests),
        tokensText(row.sent),
        share(row.cached, row.sent),
        tokensText(row.answered),
        row.unpriced === row.requests ? "no price" : dollars(row.cost),
        row.breaks === 0 ? "" : dollars(row.breakCost)
      ])
  )

const causes = ({ breaks }: CostReport): Html =>
  table(
    "By cause",
    [
      { head: "cause" },
      { head: "times", form: "n" },
      { head: "cost", form: "n" },
      { head: "what avoids it", form: "text extra" }
    ],
    causesOf(breaks).map(({ avoid, cause, cost, count }) => [cause, number(count), dollars(cost), avoid])
  )

const list = ({ breaks }: CostReport): Html =>
  table(
    breaks.length > maxRows ? `The ${maxRows} most expensive` : "Most expensive first",
    [
      { head: "when" },
      { head: "served", form: "n" },
      { head: "of", form: "n" },
      { head: "cost", form: "n" },
      { head: "what changed before", form: "text" }
    ],
    breaks
      .slice(0, maxRows)
      .map(({ at, cost, detail, expected, served }) => [
        at.slice(0, 16).replace("T", " "),
        tokensText(served),
        tokensText(expected),
        cost === null ? "" : dollars(cost),
        detail
      ])
  )

const rereads = (reads: NonNullable<CostReport["reads"]>): Html =>
  table(
    "Files read more than once",
    [{ head: "file" }, { head: "reads", form: "n" }, { head: "tokens again", form: "n" }, { head: "cost", form: "n" }],
    reads
      .slice(0, maxRows)
      .map(({ cost, path, reads: times, repeated }) => [
        markup`<span class="any">${shortName(path, 80)}</span>`,
        number(times),
        number(repeated),
        cost === null ? "" : dollars(cost)
      ])
  )

const rated = (ratings: NonNullable<CostReport["ratings"]>): Html =>
  table(
    "Oldest first",
    [{ head: "rating", form: "text" }],
    ratingLines(ratings).map((line) => [line])
  )

/** Renders one self-contained HTML page about costs. The same report always gives the same page. */
export const renderCostPage = Effect.fn("CostPage.renderCostPage")(function* (
  report: CostReport,
  name: string | undefined
): Effect.fn.Return<string> {
  const { breaks, ratings, reads, total } = report
  const title = name === undefined ? "What sessions cost" : `What ${shortName(name, 60)} cost`
  const dims = (["day", "session", "folder", "model", "agent"] as const).filter(
    (by) => report[by].length > 1 || by === "model"
  )
  return yield* renderDocument({
    title,
    header: markup`<p class="over">Palimpsest · cost</p>
<h1>${title}</h1>
<p class="lead">${dollars(total.cost)} for ${plural(total.requests, "request")} in ${plural(report.sessions, "session")}; ${dollars(total.breakCost)} of it because a prompt cache broke.</p>`,
    contents: [
      ...dims.map((by) => [by, `By ${by}`] as const),
      ...(breaks.length > 0 ? [["breaks", "Cache breaks"] as const] : []),
      ...(reads !== null && reads.length > 0 ? [["reads", "Files read again"] as const] : []),
      ...(ratings !== null && ratings.length > 0 ? [["ratings", "Ratings"] as const] : [])
    ],
    main: [
      ...dims.map((by) => section(by, `By ${by}`, sums(by, report[by]))),
      breaks.length > 0
        ? section("breaks", "Where the prompt cache broke", markup`${causes(report)}${list(report)}`)
        : none,
      reads !== null && reads.length > 0 ? section("reads", "Files read more than once", rereads(reads)) : none,
      ratings !== null && ratings.length > 0 ? section("ratings", "Rated compressions", rated(ratings)) : none
    ],
    footer: markup`Prices: ${report.prices}. Usage as the agents recorded it, each answer once.`
  })
})
