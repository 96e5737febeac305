import { assert, describe, it } from "@effect/vitest"
import { describeEvaluation } from "../../../src/cli/output/EvaluationTable.ts"
import { type MeasuredRow, sumsOf } from "../../../src/domain/evaluation/EvaluationReport.ts"
import type { Figure, Ratio } from "../../../src/domain/evaluation/Measure.ts"

const figures: ReadonlyArray<Figure> = [
  { key: "actions", title: "actions", unit: "share" },
  { key: "reads", title: "re-reads", unit: "mean" }
]

const row = (writer: string, actions: Ratio, reads: number, isMeasured = true): MeasuredRow => ({
  writer,
  preserve: writer === "recorded" ? null : 0,
  budget: 2_000,
  size: "recorded",
  status: isMeasured ? "COMPRESSED" : "NOOP",
  isMeasured,
  snapshotTokens: 1_900,
  contextTokens: 2_000,
  figures: isMeasured ? { actions, reads: { part: reads, whole: 1 } } : {}
})

const point = (...rows: ReadonlyArray<MeasuredRow>) => ({ after: "e9", entriesBefore: 9, entriesAfter: 1_000, rows })

const tableIn = (columns: number | undefined, ...files: Parameters<typeof sumsOf>[0]) =>
  describeEvaluation({ seed: 1, files, sums: sumsOf(files, figures, 1) }, figures, columns).split("\n")
const table = (...files: Parameters<typeof sumsOf>[0]) => tableIn(undefined, ...files)

describe("the table of eval", () => {
  it("has a row for each writer, and the sums below them", () => {
    const measured = point(
      row("recorded", { part: 1, whole: 4 }, 1_234),
      row("palimpsest", { part: 3, whole: 4 }, 10),
      row("gemini", { part: 0, whole: 0 }, 0, false)
    )
    assert.deepStrictEqual(table({ file: "a.jsonl", points: [measured] }, { file: "short.jsonl", points: [] }), [
      "                                  snapshot  context  actions  re-reads",
      "a.jsonl",
      "  after e9: 9 messages before, 1,000 after",
      "    recorded summary                 1,900    2,000     0.25     1,234",
      "    palimpsest alone                 1,900    2,000     0.75        10",
      "    gemini alone: not compressed     1,900    2,000        –         –",
      "short.jsonl",
      "  no point with four messages before and after it",
      "all files, with 95 % intervals by file",
      "  recorded summary (1)               1,900    2,000     0.25     1,234",
      "  palimpsest alone (1)               1,900    2,000     0.75        10"
    ])
  })

  it("adds up parts and wholes, with an interval below, and leaves out what was not measured", () => {
    const files = [1, 3].map((part) => ({
      file: `${part}.jsonl`,
      points: [
        point(row("palimpsest", { part, whole: 4 }, part * 100)),
        point(row("palimpsest", { part: 0, whole: 0 }, 0))
      ]
    }))
    assert.deepStrictEqual(table(...files).slice(-2), [
      "  palimpsest alone (4)     1,900    2,000       0.50       100",
      "                                           0.25–0.75    50–150"
    ])
  })

  it("says where there is nothing to measure", () => {
    assert.deepStrictEqual(table({ file: "short.jsonl", points: [] }).slice(1), [
      "short.jsonl",
      "  no point with four messages before and after it"
    ])
  })

  it("puts the figures below the names where the terminal is narrower, each beside its title", () => {
    const files = [1, 3].map((part) => ({
      file: `${part}.jsonl`,
      points: [point(row("palimpsest", { part, whole: 4 }, part * 100))]
    }))
    const [first = ""] = table(...files)
    assert.deepStrictEqual(tableIn(first.length, ...files), table(...files))
    const narrow = tableIn(40, ...files)
    assert.deepStrictEqual(narrow.slice(0, 5), [
      "1.jsonl",
      "  after e9: 9 messages before, 1,000 after",
      "    palimpsest alone",
      "      snapshot 1,900  context 2,000",
      "      actions 0.25  re-reads 100"
    ])
    assert.deepStrictEqual(narrow.slice(-6), [
      "  palimpsest alone (2)",
      "      snapshot 1,900  context 2,000",
      "      actions 0.50  re-reads 200",
      "      95 % intervals",
      "      actions 0.25–0.75",
      "      re-reads 100–300"
    ])
  })
})
