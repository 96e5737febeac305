import { assert, describe, it } from "@effect/vitest"
import { wrap, wrapStream } from "../../../src/domain/text/Wrap.ts"

const cases: ReadonlyArray<readonly [rule: string, text: string, columns: number, lines: ReadonlyArray<string>]> = [
  ["what fits is one line", "one two", 7, ["one two"]],
  ["lines break at spaces", "one two three", 7, ["one two", "three"]],
  ["a word that is too wide is not split", "see https://a.example now", 6, ["see", "https://a.example", "now"]],
  ["nothing is one empty line", "", 10, [""]],
  ["without a limit nothing breaks", "one two three", Infinity, ["one two three"]]
]

describe("wrapping", () => {
  for (const [rule, text, columns, lines] of cases) it(rule, () => assert.deepStrictEqual(wrap(text, columns), lines))
})

describe("wrapping of text that comes in pieces", () => {
  /** As terminals do, but for emoji. */
  const widthOf = (text: string) => [...text].reduce((sum, one) => sum + (one === "文" ? 2 : one === "\t" ? 0 : 1), 0)
  const inPieces = (text: string, columns: number, size: number): string => {
    const write = wrapStream(columns, widthOf)
    const pieces = text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []
    return [...pieces.map(write), write(undefined)].join("")
  }
  const wrapped: ReadonlyArray<readonly [rule: string, text: string, columns: number, shown: string]> = [
    ["breaks lines at spaces, and keeps the text's own", "one two three\n\nfour\n", 7, "one two\nthree\n\nfour\n"],
    ["keeps what a line begins with", "  one two\n  x", 9, "  one two\n  x"],
    ["does not split a word that is too wide", "see https://a.example now", 6, "see\nhttps://a.example\nnow"],
    [
      "goes on behind a word of many lines where it ends",
      `${"語".repeat(85)} one two`,
      10,
      `${"語".repeat(85)} one\ntwo`
    ],
    ["does not begin a line with the space behind a full one", `${"x".repeat(40)} one`, 10, `${"x".repeat(40)}\none`],
    [
      "knows that a wide character does not begin in the last column",
      `a${"文".repeat(17)} four`,
      10,
      `a${"文".repeat(17)}\nfour`
    ],
    ["counts the columns up to a tab stop", "\tone two\tthree\n\t\tfour five", 20, "\tone two\nthree\n\t\tfour\nfive"],
    ["leaves a text without a limit as it is", " a  b \n c ", Infinity, " a  b \n c "]
  ]
  for (const [rule, text, columns, shown] of wrapped) {
    for (const size of [1, 3, 100]) {
      it(`${rule}: ${size}`, () => assert.strictEqual(inPieces(text, columns, size), shown))
    }
  }
  it("does not wait for the end of a text without spaces", () => {
    const write = wrapStream(80)
    assert.deepStrictEqual([write("語".repeat(20)), write("語".repeat(20)), write("文")], ["", "語".repeat(40), "文"])
  })
})
