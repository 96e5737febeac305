/** The page of `cost`: tables of what sessions cost, and where caches broke. */

import { Effect } from "effect"
import { dollars } from "../../domain/text/NumberText.ts"
import { costHeading, type CostReport, costSections, type Dimension, shortName } from "../output/CostReport.ts"
import { renderDocument } from "./Document.ts"
import { markup } from "./Markup.ts"
import { plainLink, reportPage } from "./ReportPage.ts"

const dimensions: ReadonlyArray<Dimension> = ["day", "session", "folder", "model", "agent"]

/** Renders one self-contained HTML page about costs, with the sums by one dimension or by all. The same report always gives the same page. */
export const renderCostPage = Effect.fn("CostPage.renderCostPage")(function* (
  report: CostReport,
  name: string | undefined,
  by: Dimension | undefined
) {
  const title = name === undefined ? "What sessions cost" : `What ${shortName(name, 60)} cost`
  return yield* renderDocument({
    title,
    header: markup`<p class="over">Palimpsest · cost</p>
<h1>${title}</h1>
<p class="lead">${costHeading(report)}; ${dollars(report.total.breakCost)} of it because a prompt cache broke.</p>`,
    ...reportPage(costSections(report, by, dimensions), {
      link: plainLink,
      charts: new Map()
    }),
    footer: markup`Prices: ${report.prices}. Usage as the agents recorded it, each answer once.`
  })
})
