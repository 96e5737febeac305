import { assert, it } from "@effect/vitest"
import { readContext } from "../../../src/domain/evaluation/Statements.ts"

it("a statement stands under the lines above it, and not under those of its siblings", () => {
  const lines = ["# Work", "## Done", "- the parser", "  - its tests", "- the page", "## Open", "the chart"]
  const found = readContext(lines.join("\n")).statements.map(({ text, under }) => [text, ...under].join(" < "))
  assert.deepStrictEqual(found, [
    "# Work",
    "## Done < # Work",
    "the parser < ## Done < # Work",
    "its tests < the parser < ## Done < # Work",
    "the page < ## Done < # Work",
    "## Open < # Work",
    "the chart < ## Open < # Work"
  ])
})
