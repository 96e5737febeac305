import { assert, describe, it } from "@effect/vitest"
import { countWaste, indexChars, isListOfNames } from "../../../src/domain/evaluation/Waste.ts"

const wasteCases: ReadonlyArray<readonly [text: string, wasted: number, words: number]> = [
  ["The parser fails on empty lines.", 0, 6],
  ["351 352 353", 3, 3],
  ["1,024 and 2.5", 2, 3],
  ["at 2026-02-11 14:03", 0, 3],
  ["version 4.1.0-beta", 0, 2],
  ["1. first\n2. second", 0, 2],
  ["</div> <li> /span div", 3, 4],
  ["<state_snapshot>", 0, 1],
  ["Enum.map String.trim/1 console.log JSON.parse()", 4, 4],
  ["Spotter.Enum.mapper fs.promises.readFile", 0, 2],
  ["useState, toString, parseLine", 2, 3],
  ["src/a/b/one.ts src/a/b/two.ts src/a/b/six.ts src/a/b/ten.ts", 2, 4],
  ["/h/me/p/x.ts /h/me/p/y.ts /h/me/q/z.ts", 0, 3],
  ["lib/a.ts lib/b.ts lib/c.ts", 0, 3]
]

const lists: ReadonlyArray<readonly [line: string, isList: boolean]> = [
  ["    parse.ts: parseLine skipBlank", true],
  ["- names: parseLine skipBlank src/parse.ts 48f554e one_name", true],
  ["parseLine skipBlank src/parse.ts 48f554e one_name two_names", true],
  ["parseLine skipBlank", false],
  ["one_name two_names three_names four_names five_names", false],
  ["one_name two_names three_names four_names five_names six_names", true],
  ["src/a.ts: one_name", false],
  // Four of five are names, three of four are not enough.
  ["src/a.ts: one_name two_names three_names four_names other", true],
  ["src/a.ts: one_name two_names three_names other", false],
  ["src/a.ts: lib/{one.ts, two.ts}", true],
  ["351 352 353 354 355 356", true],
  ["- fixed parseLine in src/parse.ts, because skipBlank ate the last line", false],
  ["src/parse.ts: modified (2 changes: +parseLine, skipBlank; e12 h_abcdefghij)", false]
]

describe("waste", () => {
  it.each(wasteCases)("of %j: %d of %d words", (text, wasted, words) => {
    assert.deepStrictEqual(countWaste(text), { words, wasted })
  })

  it.each(lists)("%j is a list of names: %s", (line, isList) => {
    assert.strictEqual(isListOfNames(line), isList)
  })

  it("counts the characters of lists with their line ends", () => {
    const list = "a.ts: parseLine skipBlank"
    assert.strictEqual(indexChars(`Some words.\n${list}\nMore words.`), list.length + 1)
  })
})
