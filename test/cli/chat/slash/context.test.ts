import { assert, describe, it } from "@effect/vitest"
import { contextTable, type ContextUse } from "../../../../src/cli/chat/slash/context.ts"
import { columnsOf } from "../../../../src/cli/output/Output.ts"
import type { Inspection } from "../../../../src/domain/evaluation/Inspection.ts"
import { PartKind } from "../../../../src/domain/evaluation/PartKind.ts"

const kind = (name: Inspection["kinds"][number]["kind"], view: number): Inspection["kinds"][number] => ({
  kind: name,
  parts: 1,
  tokens: view,
  view
})
const use: ContextUse = {
  kinds: [kind("user", 100), kind("output", 300), kind("model", 0)],
  overhead: 100,
  tokens: 500,
  limit: 1_000,
  threshold: 0.7
}

describe("/context", () => {
  it("shows a block per kind, largest first, the system block before them, and where compression begins", () => {
    assert.strictEqual(
      contextTable(use, 24),
      [
        "  [██▓▓▓▓▓▓▒▒····|·····]",
        "  █  system and tools  100  10 %",
        "  ▓  tool output       300  30 %",
        "  ▒  user text         100  10 %",
        "  ·  free              500  50 %",
        "  500 of 1,000 tokens",
        "  | 70 %: compresses in 200 tokens"
      ].join("\n")
    )
  })

  const ends: ReadonlyArray<readonly [rule: string, change: Partial<ContextUse>, last: string]> = [
    ["past the threshold", { tokens: 800 }, "  | 70 %: compresses before the next message"],
    ["no threshold", { threshold: 1 }, "  compressed only when nothing else fits"]
  ]
  for (const [rule, change, last] of ends) {
    it(`${rule}: ${last.trim()}`, () =>
      assert.strictEqual(
        contextTable({ ...use, ...change }, 80)
          .split("\n")
          .at(-1),
        last
      ))
  }

  it("an overfull window has no free row and keeps its bar", () => {
    const lines = contextTable({ ...use, kinds: [kind("user", 5_000)], overhead: 0, tokens: 5_000 }, 24).split("\n")
    assert.strictEqual(lines[0], `  [${"█".repeat(20)}]`)
    assert.strictEqual(lines[2], "  ·  free           0    0 %")
  })

  it("gives each kind a mark of its own", () => {
    const kinds = PartKind.literals.map((name, at) => kind(name, 50 - at))
    const [bar = "", ...rows] = contextTable({ ...use, kinds, overhead: 60, threshold: 1 }, 64).split("\n")
    const marks = rows.slice(0, kinds.length + 1).map((row) => row.slice(2, 3))
    assert.strictEqual(new Set(marks).size, kinds.length + 1)
    assert.deepStrictEqual([...new Set(bar.replace(/[[\]\s\u00b7]/g, ""))], marks)
  })

  it("no line exceeds forty columns for any window", () => {
    const large = {
      ...use,
      kinds: [kind("call", 900_000)],
      tokens: 1_900_000,
      limit: 2_097_152,
      threshold: 0.95
    }
    for (const line of contextTable(large, 40).split("\n")) assert.isAtMost(columnsOf(line), 40, line)
  })
})
