import { assert, describe, it } from "@effect/vitest"
import { searchPattern } from "../../../src/domain/tools/SearchPattern.ts"

const invalid = "(?-u:[\\x80-\\xff]{1,3})"

describe("a pattern in ripgrep's dialect", () => {
  const cases: ReadonlyArray<readonly [rule: string, pattern: string, rust: string | undefined]> = [
    ["letters mean those of ASCII", "\\w\\d\\s", "[0-9A-Za-z_][0-9][\\t\\n\\f\\r ]"],
    [
      "what is none of some characters may be a byte of none",
      "\\W[^b].",
      `(?:[^0-9A-Za-z_]|${invalid})(?:[^b]|${invalid})(?:.|${invalid})`
    ],
    ["and so may what stands for one", "M\ufffdller", `M(?:\ufffd|${invalid})ller`],
    ["a line may end with a carriage return", "^one$|\\$[$]", "^one(?:\\r?$)|\\$[$]"],
    ["words end as they do in ASCII", "\\bone\\B", "(?-u:\\b)one(?-u:\\B)"],
    ["and behind a class none", "[a]&~[b]~{c}", "[a]&~[b]~\\{c}"],
    ["a class that begins with its end is none", "[]a]", undefined],
    ["a lone brace is a character", "f {x} a{2} b{2,} c{1,3}", "f \\{x} a{2} b{2,} c{1,3}"],
    ["what needs no escape has none", '\\"\\/\\-\\.', '"/\\-\\.'],
    ["a class may have escapes", "[\\s\\.\\/]+", "[[\\t\\n\\f\\r ]\\./]+"],
    ["groups without names", "(?:x)(y|\\t)", "(?:x)(y|\\t)"],
    ["no operators of classes", "[a&&b]", undefined],
    ["a range that begins with a hyphen is none either", "[+--]", undefined],
    ["but hyphens at the ends of a class", "[-a-z]", "[-a-z]"],
    ["no classes of POSIX", "[[:alpha:]]+", undefined],
    ["no names of groups", "(?<year>y)", undefined],
    ["no numbers of characters", "\\x41", undefined],
    ["no backspace in a class", "[\\b]", undefined],
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
