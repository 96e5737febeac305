import { assert, describe, it } from "@effect/vitest"
import { wrap } from "../../../src/domain/text/Wrap.ts"

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
