import { Effect } from "effect"
import { type Ratio, valueOf } from "../../domain/evaluation/Measure.ts"
import { replayVerdict } from "../../domain/evaluation/ReplayVerdict.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { number, plural, share } from "../output/Output.ts"
import { isChange, type Report, type Result } from "../output/ReplayReport.ts"
import { costNote, figureRows, triggersText } from "../output/ReplayTable.ts"
import type { Chart } from "./Charts.ts"
import { renderDocument } from "./Document.ts"
import { type Html, markup, none } from "./Markup.ts"
import { thinned } from "./PageCharts.ts"
import { type Drawn, figure, section, table, verdict } from "./Sections.ts"

/** The page of `replay`: strategies side by side. */

/** Compressions of one strategy that the page lists. */
const maxRows = 50

/** The class of a strategy's line: the colours repeat after four. */
const series = (index: number): string => `series-${index % 4}`

const chartOf = ({ strategies }: Report): Chart => ({
  label: "Tokens of each request",
  description: strategies
    .map((one) => `${one.strategy}: at most ${number(one.largest)}, ${plural(one.compressions.length, "compression")}`)
    .join("; "),
  axis: "request",
  messages: strategies.reduce((max, { requests }) => Math.max(max, requests), 0),
  lines: strategies.map(({ compressions, sizes, strategy }, index) => ({
    name: series(index),
    points: thinned(sizes.map(({ tokens }, at) => ({ message: at + 1, tokens }))),
    filled: false,
    stepped: false,
    dots: compressions.filter(isChange).map(({ after, before, request, turn }) => ({
      message: request + 1,
      tokens: sizes[request]?.tokens ?? after,
      href: undefined,
      title: `${strategy}, turn ${number(turn)}: ${number(before)} → ${number(after)} tokens`
    }))
  })),
  marks: [],
  cuts: []
})

const caption = ({ strategies }: Report): Html => markup`${strategies.map(
  ({ strategy }, index) => markup`<span class="keyed"><i class="key ${series(index)}"></i>${strategy}</span>
`
)}
Each circle is the first request after a compression.`

const lead = ({ strategies, window }: Report): Html => {
  const played = strategies.map(({ compressions, refused, ...one }) => ({
    ...one,
    refused: refused.length,
    compressions: compressions.filter(isChange).length
  }))
  return verdict(replayVerdict(played, { window, turns: strategies[0]?.turns ?? 0 }), (entry) => markup`${entry}`)
}

const comparison = ({ strategies }: Report): Html =>
  table(
    "Figures by strategy",
    [{ head: "figure" }, ...strategies.map(({ strategy }) => ({ head: strategy, form: "n" as const }))],
    figureRows(strategies).map(({ isPart, name, values }) => [
      markup`<span class="${isPart ? "any within" : "any"}">${name}</span>`,
      ...values
    ])
  )

const percent = (ratio: Ratio | undefined): string =>
  ratio === undefined || valueOf(ratio) === undefined ? "–" : share(ratio.part, ratio.whole)

const listed = ({ compressions, strategy }: Result): Html =>
  compressions.length === 0
    ? none
    : table(
        compressions.length > maxRows
          ? `${strategy}: the first ${maxRows} of ${number(compressions.length)} compressions`
          : strategy,
        [
          { head: "turn" },
          { head: "before", form: "n" },
          { head: "after", form: "n" },
          { head: "actions", form: "n" },
          { head: "with one recall", form: "n extra" },
          { head: "facts", form: "n" },
          { head: "status", form: "extra" }
        ],
        compressions
          .slice(0, maxRows)
          .map(({ after, before, figures, status, trigger, turn }) => [
            number(turn),
            number(before),
            number(after),
            percent(figures?.["actionsGrounded"]),
            percent(figures?.["actionsReachable"]),
            percent(figures?.["factsKept"]),
            trigger === "guard" ? `${status}, forced by the guard` : status
          ])
      )

/** Renders one self-contained HTML page about a replay. The same report always gives the same page. */
export const renderReplayPage = Effect.fn("ReplayPage.renderReplayPage")(function* (
  report: Report
): Effect.fn.Return<string> {
  const charts = yield* Effect.promise(() => import("./Charts.ts"))
  const chart = chartOf(report)
  const wide = charts.draw(chart, "wide")
  yield* Effect.yieldNow
  const drawn: Drawn = { wide, narrow: charts.draw(chart, "narrow") }
  const last = printableLine(report.file.split(/[\\/]/).at(-1) ?? "")
  const name = report.file === "-" ? "standard input" : last || "conversation"
  const note = costNote(report)
  const lists = report.strategies.map(listed)
  const hasLists = lists.some((list) => list !== none)
  return yield* renderDocument({
    title: `${name}: strategies side by side`,
    header: markup`<p class="over">Palimpsest · replay</p>
<h1>${name}</h1>
${lead(report)}
<p class="note">${report.format}, ${plural(report.messages, "message")}; compressed at ${triggersText(report.strategies)} tokens.</p>`,
    contents: [
      ["requests", "Requests"],
      ["figures", "Figures"],
      ...(hasLists ? [["compressions", "Compressions"] as const] : [])
    ],
    main: [
      section("requests", "Tokens of each request", figure(drawn, caption(report))),
      section(
        "figures",
        "Figures",
        markup`${comparison(report)}${note === undefined ? none : markup`<p class="note">${note}.</p>`}`
      ),
      hasLists
        ? section(
            "compressions",
            "Compressions",
            markup`<p class="note">Actions: the percentage of the agent's next tool calls whose names are in the context. Facts: the same for all that the agent wrote.</p>${lists}`
          )
        : none
    ],
    footer: markup`The recording supplied the answers, whatever the request. Code wrote the snapshots.
Tokens are estimates of palimpsest.`
  })
})
