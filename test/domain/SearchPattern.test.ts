import { assert, describe, it } from "@effect/vitest"
import { parseSearch } from "../../src/domain/SearchPattern.ts"

describe("a pattern in the dialect of ripgrep", () => {
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
    ["looking ahead is not had", "a(?=b)", undefined],
    ["looking behind is not had", "(?<!a)b", undefined],
    ["references back are not had", "(a)\\1", undefined],
    ["names are not referred to", "(?<a>a)\\k<a>", undefined]
  ]
  for (const [rule, pattern, rust] of cases) {
    it(`${rule}: ${pattern}`, () => {
      const found = parseSearch(pattern, { isCaseSensitive: true, isFixed: false })
      assert.isObject(found)
      if (typeof found === "object") assert.strictEqual(found.rust, rust)
    })
  }

  it("flags at the beginning are taken", () => {
    const found = parseSearch("(?i)one", { isCaseSensitive: true, isFixed: false })
    assert.deepStrictEqual(found, { source: "one", flags: "isu", rust: "one", isCaseSensitive: false })
  })

  it("a fixed text means itself", () => {
    const text = "a.b*c[d]{e}(f)|^$\\n/&~-#"
    const found = parseSearch(text, { isCaseSensitive: true, isFixed: true })
    assert.isObject(found)
    if (typeof found === "object") assert.isTrue(new RegExp(`^${found.source}$`, found.flags).test(text))
  })

  it("what is no pattern is told in one line", () => {
    for (const pattern of ["a(b", "[", "*", "a{2,1}", "(?<a", "\\"]) {
      const found = parseSearch(pattern, { isCaseSensitive: true, isFixed: false })
      assert.isString(found, pattern)
      assert.notInclude(found, "\n")
    }
  })
})
