import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { parseSearch } from "../../../src/domain/tools/SearchPattern.ts"

describe("a pattern in ripgrep's dialect", () => {
  const cases: ReadonlyArray<readonly [rule: string, pattern: string, rust: string | undefined]> = [
    ["letters mean those of ASCII", "\\w\\d\\W\\D", "[0-9A-Za-z_][0-9][^0-9A-Za-z_][^0-9]"],
    ["words end as they do in ASCII", "\\bone\\B", "(?-u:\\b)one(?-u:\\B)"],
    ["what combines classes is a character", "[a&&b~[-]", "[a\\&\\&b\\~\\[-]"],
    ["a class that begins with its end is none", "[]a]", undefined],
    ["a lone brace is a character", "f {x} a{2} b{2,} c{1,3}", "f \\{x} a{2} b{2,} c{1,3}"],
    ["what needs no escape has none", '\\"\\/\\-\\.', '"/\\-\\.'],
    ["names of groups count for nothing", "(?<year>\\d)(?:x)(y)", "([0-9])(?:x)(y)"],
    ["numbers of characters", "\\x41\\u0042\\t\\0", "\\x{41}\\x{0042}\\t\\x00"],
    ["a backspace in a class", "[\\b]", "[\\x08]"],
    ["no lookahead", "a(?=b)", undefined],
    ["no lookbehind", "(?<!a)b", undefined],
    ["no backreferences", "(a)\\1", undefined],
    ["no named backreferences", "(?<a>a)\\k<a>", undefined]
  ]
  for (const [rule, pattern, rust] of cases) {
    it(`${rule}: ${pattern}`, () => {
      const parsed = Result.getOrThrow(parseSearch(pattern, { isCaseSensitive: true, isFixed: false }))
      assert.strictEqual(parsed.rust, rust)
    })
  }

  it("flags at the beginning are accepted", () => {
    const parsed = Result.getOrThrow(parseSearch("(?i)one", { isCaseSensitive: true, isFixed: false }))
    assert.deepStrictEqual(parsed, { source: "one", flags: "isu", rust: "one", isCaseSensitive: false })
  })

  it("a fixed text matches literally", () => {
    const text = "a.b*c[d]{e}(f)|^$\\n/&~-#"
    const { flags, source } = Result.getOrThrow(parseSearch(text, { isCaseSensitive: true, isFixed: true }))
    assert.isTrue(new RegExp(`^${source}$`, flags).test(text))
  })

  it("an invalid pattern fails with a one-line message", () => {
    for (const pattern of ["a(b", "[", "*", "a{2,1}", "(?<a", "\\"]) {
      const parsed = parseSearch(pattern, { isCaseSensitive: true, isFixed: false })
      assert.isTrue(Result.isFailure(parsed), pattern)
      if (Result.isFailure(parsed)) assert.notInclude(parsed.failure.message, "\n")
    }
  })
})
