import { assert, it } from "@effect/vitest"
import { outputsBeyond } from "../../../../../src/domain/compression/strategies/palimpsest/Shortening.ts"
import { WorkEnd, workEnds } from "../../../../../src/domain/compression/strategies/palimpsest/WorkEnds.ts"
import { call, type Content, model, response, text, user } from "../../../../../src/domain/content/Content.ts"
import { indexedView } from "../../../../../src/domain/conversation/IndexedView.ts"
import { runSync } from "../../../../../src/domain/text/SlicedWork.ts"
import { conversationOf, entriesOf } from "../../../../support/entries.ts"

const viewOf = (contents: ReadonlyArray<Content>) =>
  runSync(indexedView(conversationOf(entriesOf(contents, 1_000)).view))
const read = (id: string) => [
  model(call("read_file", { path: `${id}.ts` }, id)),
  user(response("read_file", { output: "x ".repeat(2_000) }, id))
]

it("outputs that fill the budget to its last token stay, and from any message on those beyond it are known", () => {
  const view = viewOf([user(text("go")), ...["a", "b", "c", "d"].flatMap(read)])
  const itemsFrom = (budget: number, index: number) =>
    outputsBeyond(view, budget)
      .from(index)
      .map(({ item }) => item)
  assert.deepStrictEqual(itemsFrom(4_000, 0), [])
  assert.deepStrictEqual(itemsFrom(3_999, 0), [2])
  for (const [index, expected] of [
    [0, [8, 6, 4, 2]],
    [2, [8, 6, 4, 2]],
    [3, [8, 6, 4]],
    [8, [8]],
    [9, []]
  ] as const) {
    assert.deepStrictEqual(itemsFrom(0, index), [...expected])
  }
  const { size, total } = outputsBeyond(view, 0)
  const sum = Array.from({ length: view.length }, (_, index) => size(index)).reduce((a, b) => a + b, 0)
  assert.strictEqual(total(0), sum)
})

it("of two calls of one tool, each did what its own result says", () => {
  const [listed, committed] = [call("Bash", { command: "ls" }, "1"), call("Bash", { command: "git commit -m x" }, "2")]
  const endAfter = (...results: ReadonlyArray<ReturnType<typeof response>>) => {
    const view = viewOf([user(text("go")), model(listed, committed), user(...results), model(text("So."))])
    return workEnds(view)(3)
  }
  const ok = (id: string) => response("Bash", { output: "ok" }, id)
  const failed = (id: string) => response("Bash", { error: "Exit code 1\nno" }, id)
  assert.strictEqual(endAfter(ok("1"), ok("2")), WorkEnd.step)
  assert.strictEqual(endAfter(ok("1"), failed("2")), WorkEnd.none)
  assert.strictEqual(endAfter(failed("1"), ok("2")), WorkEnd.step)
})
