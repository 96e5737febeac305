import { assert, it } from "@effect/vitest"
import { wrapLines } from "../../../src/domain/text/Wrap.ts"

it("wraps lines that are too wide at their spaces, indents what goes on, and counts no colours", () => {
  const bold = "\u001b[1mone\u001b[0m"
  const cases: ReadonlyArray<readonly [text: string, columns: number, expected: string]> = [
    ["short\nlines\n", 10, "short\nlines\n"],
    ["one two three four", 10, "one two\n  three\n  four"],
    ["  - one two three", 12, "  - one two\n    three"],
    [`${bold} two three`, 7, `${bold} two\n  three`],
    ["\u001b[2m  /a/path/that/is/longer\u001b[0m", 10, "\u001b[2m  /a/path/that/is/longer\u001b[0m"],
    ["\u001b[2m  one two three\u001b[0m", 10, "\u001b[2m  one two\n    three\u001b[0m"],
    ["/a/path/that/is/longer", 10, "/a/path/that/is/longer"],
    ["see /a/path/that/is/longer now", 10, "see\n  /a/path/that/is/longer\n  now"]
  ]
  for (const [text, columns, expected] of cases) assert.strictEqual(wrapLines(text, columns), expected)
})
