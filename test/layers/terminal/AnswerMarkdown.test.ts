import { assert, describe, it } from "@effect/vitest"
import { aligned, settled } from "../../../src/layers/terminal/AnswerMarkdown.ts"

const list = (from: number, to: number, marker: (at: number) => string, gap = "") =>
  Array.from({ length: to - from }, (_, at) => `${marker(from + at)}item ${from + at}\n${gap}`).join("")
const bullet = () => "- "
const numbered = (at: number) => `${at + 1}. `
const code = (lines: number) => `\`\`\`ts\n${"a\n".repeat(lines)}`

describe("settled", () => {
  const cases: ReadonlyArray<readonly [rule: string, text: string, split: ReturnType<typeof settled>]> = [
    ["a single paragraph can change", "one\ntwo", undefined],
    [
      "what is before the last block does not change",
      "one\n\ntwo\n\nthr",
      { done: "one\n\ntwo\n\n", rest: "thr", openBlock: undefined }
    ],
    ["a short list can change", list(0, 99, bullet), undefined],
    [
      "a long list is split before its last items",
      list(0, 100, bullet),
      { done: list(0, 90, bullet), rest: list(90, 100, bullet), openBlock: "list" }
    ],
    [
      "a loose list keeps its blank rows",
      list(0, 100, bullet, "\n").trimEnd(),
      { done: list(0, 90, bullet, "\n"), rest: list(90, 100, bullet, "\n").trimEnd(), openBlock: undefined }
    ],
    [
      "a numbered list goes on counting",
      list(0, 100, () => "1. "),
      {
        done: list(0, 90, () => "1. "),
        rest: `91. item 90\n${list(91, 100, () => "1. ")}`,
        openBlock: "list"
      }
    ],
    ["a numbered list of 99 items can change", list(0, 99, numbered), undefined],
    ["a short block of code can change", code(300), undefined],
    [
      "a long block of code is split, and opened again",
      code(400),
      { done: `\`\`\`ts\n${"a\n".repeat(199)}\`\`\`\n`, rest: `\`\`\`ts\n${"a\n".repeat(201)}`, openBlock: "code" }
    ]
  ]
  for (const [rule, text, split] of cases) it(rule, () => assert.deepStrictEqual(settled(text), split))
})

describe("aligned", () => {
  const drawn = ["┌──────┬──────┐", "│ name │ size │", "├──────┼──────┤", "│ a    │ 1    │", "└──────┴──────┘"]
  const table = (delimiters: string) => `| name | size |\n|${delimiters}|\n| a | 1 |\n`

  it.each([
    ["leaves columns without alignment as they are", "------|------", "│ a    │ 1    │"],
    ["puts a column to the right", "------|-----:", "│ a    │    1 │"],
    ["centres a column", ":----:|------", "│  a   │ 1    │"]
  ] as const)("%s", (_rule, delimiters, row) => assert.strictEqual(aligned(drawn, table(delimiters))[3], row))

  it("keeps every heading bold", () => {
    const bold = (text: string) => `\u001b[1m${text}\u001b[22m`
    const rows = drawn.with(1, `│ ${bold("name")} │ ${bold("size")} │`)
    const [, heads = ""] = aligned(rows, table("-----:|-----:"))
    for (const name of ["name", "size"]) assert.include(heads, `${bold(name)} │`)
  })

  it("leaves a table that is drawn in a block of code as it is", () => {
    const rows = ["```", ...drawn, "```"]
    assert.deepStrictEqual(aligned(rows, table("------|-----:")), rows)
  })
})
