/** The page of `replay`: strategies side by side. */

import { Effect } from "effect"
import { replayVerdict } from "../../domain/evaluation/ReplayVerdict.ts"
import { number, plural } from "../output/Output.ts"
import { isChange, replaySections, type Report, triggersText } from "../output/ReplayReport.ts"
import type { Chart } from "./Charts.ts"
import { renderDocument } from "./Document.ts"
import { type Html, markup } from "./Markup.ts"
import { thinned } from "./PageCharts.ts"
import { baseName, figure, plainLink, reportPage, sentence } from "./ReportPage.ts"

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
    dots: compressions.filter(isChange).map(({ after, before, request, turn }) => ({
      message: request + 1,
      tokens: sizes[request]?.tokens ?? after,
      href: undefined,
      title: `${strategy}, request ${number(turn)}: ${number(before)} → ${number(after)} tokens`
    }))
  }))
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
  const verdict = replayVerdict(played, { window, turns: strategies[0]?.turns ?? 0 })
  return markup`${verdict.map((text) => markup`<p class="lead">${sentence(text, plainLink)}</p>`)}`
}

/** Renders one self-contained HTML page about a replay. The same report always gives the same page. */
export const renderReplayPage = Effect.fn("ReplayPage.renderReplayPage")(function* (report: Report) {
  const chart = yield* figure(chartOf(report), caption(report))
  const name = baseName(report.file)
  return yield* renderDocument({
    title: `${name}: strategies side by side`,
    header: markup`<p class="over">Palimpsest · replay</p>
<h1>${name}</h1>
${lead(report)}
<p class="note">${report.format}, ${plural(report.messages, "message")}; compressed at ${triggersText(report.strategies)} tokens.</p>`,
    ...reportPage(replaySections(report), {
      link: plainLink,
      charts: new Map([["requests", chart]])
    }),
    footer: markup`The recording supplied the answers, whatever the request. Code wrote the snapshots.
Tokens are estimates of palimpsest.`
  })
})
