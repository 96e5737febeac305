import { assert, it } from "@effect/vitest"
import { type CostReport, costText } from "../../../src/cli/output/CostReport.ts"
import * as Output from "../../../src/cli/output/Output.ts"
import { textLimits } from "../../../src/cli/output/ReportText.ts"

/** How `cost` names sessions. */

const sums = {
  requests: 1,
  sent: 1,
  cached: 0,
  written: 0,
  answered: 1,
  cost: 1,
  recorded: 0,
  unpriced: 0,
  breaks: 0,
  breakCost: 0
}

it.each([
  ["01a22519-4ce4-79a2-a3bc-940b1b783607", "01a22519 fix it"],
  // All ids of opencode begin with the same letters.
  ["ses_5f3a2b1c9d8eXyZ", "ses_5f3a2b1c fix it"],
  ["a\u001bb", "a\\u{1b}b fix it"]
])("a session is named by the beginning of its id: %s", (id, shown) => {
  const row = { ...sums, name: "/w/opencode.db#x", id, title: "fix it" }
  const report: CostReport = {
    currency: "USD",
    prices: "",
    sessions: 1,
    total: { ...sums, name: "total" },
    session: [row],
    folder: [],
    day: [],
    model: [],
    agent: [],
    breaks: [],
    reads: null,
    ratings: null,
    repeated: 0,
    problems: []
  }
  assert.include(costText(report, "session", Output.plain, textLimits), `\n  ${shown} `)
})
