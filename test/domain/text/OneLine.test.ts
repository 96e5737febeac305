import { assert, it } from "@effect/vitest"
import { oneLine, shortLine } from "../../../src/domain/text/OneLine.ts"

it.each([
  ["  a \n\r\n\t b ", "a b"],
  ["a\u2028b\u2029c\u0085d", "a b c d"],
  ["\u001b[31mred\u0007\u0000", "[31mred"],
  [" \n ", ""]
])("a text on one line %j", (text, line) => assert.strictEqual(oneLine(text), line))

it.each([
  ["as long as it may be", "abcd", "abcd"],
  ["longer", "abcde", "abcd…"],
  ["no blank before the mark", "abc\n\nde", "abc…"],
  ["no half of a character", "abc\u{1f600}", "abc…"]
])("a line of limited length %s", (_, text, line) => assert.strictEqual(shortLine(text, 4), line))
