import { assert, describe, it } from "@effect/vitest"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { ignoreRules, maxRules, verdict } from "../../../src/domain/workspace/IgnoreFile.ts"

const parsed = (text: string) => runSync(ignoreRules(text))

const cases: ReadonlyArray<
  readonly [rule: string, file: string, path: string, isFolder: boolean, said: boolean | undefined]
> = [
  ["a name counts at every depth", "a.log", "x/y/a.log", false, true],
  ["a name is a whole name", "a.log", "x/aa.log", false, undefined],
  ["a star stays in a name", "*.log", "x/y.log", false, true],
  ["a slash at the end means folders", "build/", "build", false, undefined],
  ["a slash at the end means folders", "build/", "x/build", true, true],
  ["a slash at the beginning means here", "/build", "x/build", true, undefined],
  ["a slash at the beginning means here", "/build", "build", false, true],
  ["a slash within means from here", "a/b", "a/b", false, true],
  ["a slash within means from here", "a/b", "x/a/b", false, undefined],
  ["two stars are any folders", "**/a/b", "x/y/a/b", false, true],
  ["two stars are any folders", "a/**/b", "a/b", false, true],
  ["two stars are any folders", "a/**/b", "a/x/y/b", false, true],
  ["two stars at the end are what is inside", "a/**", "a", true, undefined],
  ["two stars at the end are what is inside", "a/**", "a/x", false, true],
  ["two stars in a name are one", "a**c", "abbc", false, true],
  ["the last line that matches decides", "*.log\n!a.log", "a.log", false, false],
  ["the last line that matches decides", "!a.log\n*.log", "a.log", false, true],
  ["nothing is said of the rest", "*.log", "a.txt", false, undefined],
  ["empty lines and remarks count for nothing", "\n# a\n\n", "# a", false, undefined],
  ["an escaped # begins a name", "\\#a", "#a", false, true],
  ["an escaped ! begins a name", "\\!a", "!a", false, true],
  ["spaces at the end count for nothing", "a   ", "a", false, true],
  ["an escaped space does", "a\\ ", "a ", false, true],
  ["braces are no alternatives", "{a,b}", "a", false, undefined],
  ["braces are no alternatives", "{a,b}", "{a,b}", false, true],
  ["a class is one of its characters", "a[0-9].txt", "a7.txt", false, true],
  ["a question mark is one character", "a?c", "abc", false, true],
  ["a question mark is no slash", "x/a?c", "x/a/c", false, undefined],
  ["hidden files are files", "*", ".hidden", false, true],
  ["line breaks of Windows are line breaks", "a\r\nb\r\n", "a", false, true],
  ["a mark at the beginning is no text", "\uFEFFa", "a", false, true]
]

describe("a line of an ignore file", () => {
  for (const [rule, file, path, isFolder, said] of cases) {
    it(`${rule}: ${JSON.stringify(file)} of ${path}`, () => {
      assert.strictEqual(verdict(parsed(file), path, isFolder), said)
    })
  }
})

describe("a machine-written ignore file", () => {
  it("applies its first 5,000 rules", () => {
    const rules = parsed(
      Array.from({ length: 20_000 }, (_, i) => `# ${i}\n*a${String(i).padStart(5, "0")}*b\n`).join("")
    )
    assert.strictEqual(rules.length, maxRules)
    assert.strictEqual(verdict(rules, "a04999xb", false), true)
    assert.isUndefined(verdict(rules, "a05000xb", false))
  })

  it("drops only lines that are too long or have too many stars", () => {
    const rules = parsed(`${"a*".repeat(17)}\n${"b".repeat(1_025)}*\n${"c*".repeat(16)}\nd`)
    assert.deepStrictEqual(
      ["a".repeat(17), "b".repeat(1_025), "c".repeat(16), "d"].map((name) => verdict(rules, name, false)),
      [undefined, undefined, true, true]
    )
  })
})
