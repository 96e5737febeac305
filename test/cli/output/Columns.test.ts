import { assert, describe, it } from "@effect/vitest"
import { definitions, narrowRow, truncate } from "../../../src/cli/output/Columns.ts"

const cuts: ReadonlyArray<readonly [rule: string, text: string, columns: number, cut: string]> = [
  ["a text that fits is unchanged", "one two", 7, "one two"],
  ["what does not is cut before white space", "one two three", 5, "one…"],
  ["wide characters take two columns", "文字文字", 6, "文字…"]
]

const rows = [
  ["/one", "Says what the first does, at some length"],
  ["/three", "The third"]
] as const

describe("columns", () => {
  it.each(cuts)("%s", (_rule, text, columns, expected) => assert.strictEqual(truncate(text, columns), expected))

  it("puts meanings beside their names where they fit", () => {
    assert.strictEqual(
      definitions(rows, 40),
      ["  /one    Says what the first does, at", "          some length", "  /three  The third"].join("\n")
    )
  })

  it("puts them below where they do not", () => {
    assert.strictEqual(
      definitions(rows, 30),
      ["  /one", "    Says what the first does,", "    at some length", "  /three", "    The third"].join("\n")
    )
  })

  it("also when a single word is too long", () => {
    const id = "0".repeat(36)
    assert.strictEqual(definitions([["session", id]], 42), `  session\n    ${id}`)
  })
})

describe("a row of a table that is wider than the terminal", () => {
  it("has its figures below its name, each beside its title unless it is longer than a line", () => {
    const row = ["a long name of a model", "95 %", "", "words that fill more than a line"]
    assert.deepStrictEqual(narrowRow(row, ["read", "cost", "begins"], 20, 2), [
      "a long name of a mo…",
      "  read 95 %  begins",
      "  words that fill",
      "  more than a line"
    ])
  })
})
