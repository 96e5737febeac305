import { assert, describe, it } from "@effect/vitest"
import {
  listedLine,
  listing,
  type ShareName,
  shareOf,
  withinBudget,
  shortener
} from "../../../../src/domain/compression/handover/Budget.ts"
import { type SnapshotItem, statement } from "../../../../src/domain/compression/Snapshot.ts"
import { estimateText } from "../../../../src/domain/tokens/Tokens.ts"

const linesOf = (paths: ReadonlyArray<string>, budget: number): ReadonlyArray<string> =>
  listing("files", "files:", paths.map(listedLine), budget).flatMap(({ text }) => text.split("\n").slice(1))

describe("a listing", () => {
  const folders = Array.from({ length: 30 }, (_, n) => `packages/service-${n}/internal/handlers/file${n}.ts`)
  const files = Array.from({ length: 30 }, (_, n) => `packages/service-0/internal/handlers/file${n}.ts`)

  it.each([20, 40, 80, 160, 320])("within %i tokens has more files of one folder than of many", (budget) => {
    const [apart, together] = [linesOf(folders, budget), linesOf(files, budget)]
    assert.isAtLeast(together.length, apart.length)
    if (budget === 80 || budget === 160) assert.isAbove(together.length, 1.5 * apart.length)
    // What stands in full takes what it takes.
    assert.isAtMost(estimateText(apart.join("\n")), budget)
  })

  it("goes on with smaller lines after one that is too long, and puts files of a top folder together", () => {
    const lines = ["src/a.ts", "docs/x.md", `src/${"deep/".repeat(200)}b.ts`, "src/c.ts", "docs/y.md"]
    assert.deepStrictEqual(
      linesOf(lines, 60).map((line) => line.trim()),
      ["src/a.ts", "src/c.ts", "docs/x.md", "docs/y.md"]
    )
    assert.deepStrictEqual(linesOf([], 60), [])
  })
})

/** The least budget in which an item fits. */
const leastBudget = (item: SnapshotItem): number => {
  let budget = 1
  while (withinBudget([item], budget).length === 0) budget += 1
  return budget
}

it("of items, all that fit are taken in order, to the last token", () => {
  const items = ["one thing", "another thing that is longer than the first", "a third"].map((one) =>
    statement(one, one)
  )
  const costs = items.map(leastBudget)
  const total = costs.reduce((sum, one) => sum + one, 0)
  assert.deepStrictEqual(withinBudget(items, total), items)
  assert.deepStrictEqual(withinBudget(items, total - 1), items.slice(0, 2))
  assert.deepStrictEqual(
    withinBudget(items, (costs[0] ?? 0) + (costs[2] ?? 0)),
    items.filter((_, at) => at !== 1)
  )
})

it.each([
  ["/w/app", "cd /w/app && npm test /w/app/a.ts"],
  ["/w/my app", 'cd "/w/my app" && npm test /w/my app/a.ts'],
  ["/w/my app", "cd '/w/my app' && npm test /w/my app/a.ts"]
])("in %s, %s is short", (folder, command) => assert.strictEqual(shortener(folder)(command), "npm test a.ts"))

it.each([
  ["cp /w/app/a.ts /w/app-2/a.ts", "cp a.ts /w/app-2/a.ts"],
  ["ls /w/app /w/app.old", "ls . /w/app.old"],
  ["it is in /w/app.", "it is in .."],
  ["ls /w/app2; ls /w/app;", "ls /w/app2; ls .;"]
])("a folder is no other that begins with its name: %s", (text, short) =>
  assert.strictEqual(shortener("/w/app")(text), short)
)

describe("shares", () => {
  it("grow with the scale, and the least ones stay down to the full scale", () => {
    const at = (name: ShareName, need?: number) => [0.075, 0.15, 1].map((scale) => shareOf(name, 10_000, scale, need))
    assert.deepStrictEqual(at("edits"), [60, 120, 800])
    assert.deepStrictEqual(at("todos"), [500, 1_000, 1_000])
    // The user's messages shrink last.
    assert.deepStrictEqual(at("messages").slice(0, 2), [6_000, 6_000])
    assert.deepStrictEqual(at("todos", 300).slice(1), [300, 600])
    assert.strictEqual(at("latestMessages")[2], 4_100)
  })
})
