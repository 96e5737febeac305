import { assert, describe, it } from "@effect/vitest"
import { searchPattern } from "../../../src/domain/tools/SearchPattern.ts"

describe("a pattern in ripgrep's dialect", () => {
  const cases: ReadonlyArray<readonly [rule: string, pattern: string, rust: string | undefined]> = [
    ["letters mean those of ASCII", "\\w\\d\\W\\D\\s", "[0-9A-Za-z_][0-9][^0-9A-Za-z_][^0-9][\\t\\n\\f\\r ]"],
    ["words end as they do in ASCII", "\\bone\\B", "(?-u:\\b)one(?-u:\\B)"],
    ["what combines classes is a character", "[a&&b~[-]", "[a\\&\\&b\\~\\[-]"],
    ["and behind a class none", "[a]&~[^b]~{c}", "[a]&~[^b]~\\{c}"],
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
  it.each(cases)("%s: %s", (_rule, pattern, rust) => {
    assert.strictEqual(searchPattern(pattern, { isCaseSensitive: true, isFixed: false }).rust, rust)
  })

  it("flags at the beginning are accepted", () => {
    assert.deepStrictEqual(searchPattern("(?i)one", { isCaseSensitive: true, isFixed: false }), {
      source: "one",
      rust: "one",
      isCaseSensitive: false
    })
  })

  it("a fixed text matches literally", () => {
    const { rust, source } = searchPattern("(?i)a.b", { isCaseSensitive: true, isFixed: true })
    assert.deepStrictEqual([source, rust], ["\\(\\?i\\)a\\.b", "\\(\\?i\\)a\\.b"])
  })
})
