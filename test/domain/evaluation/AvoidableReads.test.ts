import { assert, describe, it } from "@effect/vitest"
import { avoidableReads, linesReadAgain } from "../../../src/domain/evaluation/AvoidableReads.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { compactionOf, measured, ran, replacementOf } from "../../support/compactions.ts"

const read = (path: string, ...lines: ReadonlyArray<string>) =>
  ran("read", { file_path: path }, lines.map((line, n) => `${n + 1}→${line}`).join("\n"))

const before = [...read("/work/project/a.ts", "one line", "two lines", "red"), ...read("b.ts", "bee")]

const rules: ReadonlyArray<
  readonly [rule: string, after: ReturnType<typeof read>, expected: ReadonlyArray<readonly [string, Array<string>]>]
> = [
  ["the same lines", read("a.ts", "one line", "two lines"), [["a.ts", ["one line", "two lines"]]]],
  ["lines that changed are new", read("a.ts", "one line", "2 lines"), [["a.ts", ["one line"]]]],
  ["moved lines are the same", read("a.ts", "new", "one line"), [["a.ts", ["one line"]]]],
  ["another file has lines of its own", read("c.ts", "one line"), []],
  ["each line once", [...read("a.ts", "red"), ...read("a.ts", "red")], [["a.ts", ["red"]]]],
  ["two reads of one file", [...read("a.ts", "red"), ...read("a.ts", "one line")], [["a.ts", ["red", "one line"]]]],
  [
    "two files",
    [...read("b.ts", "bee"), ...read("a.ts", "red")],
    [
      ["b.ts", ["bee"]],
      ["a.ts", ["red"]]
    ]
  ],
  ["a read without an answer is none", read("b.ts", "bee").slice(0, 1), []]
]

describe("avoidable reads", () => {
  it.each(rules)("%s", (_, after, expected) => {
    assert.deepStrictEqual([...runSync(linesReadAgain(compactionOf(before, after)))], expected as typeof expected & [])
  })

  it("counts the tokens of lines that the context does not hold", () => {
    const compaction = compactionOf(before, read("a.ts", "one line", "two lines"))
    const tokens = (context: string) =>
      measured(avoidableReads, compaction, replacementOf(context)).avoidableReadTokens?.part ?? 0
    assert.isAbove(tokens(""), tokens("one line"))
    assert.isAbove(tokens("one line"), 0)
    assert.strictEqual(tokens("1\tone line\n2\ttwo lines"), 0)
  })
})
