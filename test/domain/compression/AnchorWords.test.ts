import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { eachWord } from "../../../src/domain/compression/AnchorWords.ts"
import { thousand } from "../../support/generate.ts"

const wordsOf = (text: string, isOnWindows = false): ReadonlyArray<string> => {
  const words: Array<string> = []
  const visit = (word: string, at: number) => {
    assert.strictEqual(text.slice(at, at + word.length), word)
    words.push(word)
  }
  eachWord(text, visit, isOnWindows)
  return words
}

/** The words as one expression describes them. */
const expression =
  // oxlint-disable-next-line no-control-regex
  /\u001b\[[\d;]*[A-Za-z]|(?<!\\)(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w|,\d)|[A-Za-z0-9_$@~#/.-](?:[\w$@~#/.:%+=?&-]*[\w$/?!])?)/g
const ordinary = /^[A-Z]?[a-z]+$/
const expectedWords = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(expression)]
    .map(([word]) => word)
    .filter((word) => word.length >= 3 && !word.startsWith("\u001b") && !ordinary.test(word))

const Piece = Schema.Literals([
  ..."aB1_$@~#/.-:%+=?&!,\\ \n[;é",
  "\u001b[32m",
  "12,345",
  ",678",
  "word",
  "src/a.ts",
  "https://",
  "\u001b["
])

describe("AnchorWords", () => {
  const texts: ReadonlyArray<readonly [text: string, words: ReadonlyArray<string>]> = [
    ["The word in src/app.ts:12, then.", ["src/app.ts:12"]],
    ["1,234,567 and 1,2345", ["1,234,567", "2345"]],
    ["\u001b[32mAdded_it\u001b[0m", ["Added_it"]],
    ["\\nName_one", ["Name_one"]],
    ["save! and is_valid?", ["save!", "is_valid?"]],
    ["key=value;x", ["key=value"]],
    ["a..b. ...", ["a..b"]],
    ['Test-Driven work.\nprintf("a\\tname\\nvalue.txt")', ["Test-Driven", "value.txt"]],
    ["Add-On one\n'error\\nsrc\\table.ts'", ["Add-On", "able.ts"]],
    ["Set-Cookie: sid=1\n'a\\nb.ts'", ["Set-Cookie", "sid=1", "b.ts"]],
    ["Get-Content src\\new.ts", ["Get-Content", "src\\new.ts"]],
    [".\\new.ts", [".\\new.ts"]],
    ["M src\\able.ts\n D src\\new.ts", ["src\\able.ts", "src\\new.ts"]],
    ["*** Update File: src\\utils\\names.ts\n@@", ["src\\utils\\names.ts"]],
    ["at src\\utils\\names.ts", ["ames.ts"]],
    ["", []]
  ]
  it.each(texts)("splits %j", (text, words) => assert.deepStrictEqual(wordsOf(text), words))

  it.each([
    ["M src\\ledger.ts\nD .\\old.ts\n", ["src\\ledger.ts", ".\\old.ts"]],
    ["M C:\\w\\ledger.ts\nD C:\\w\\old.ts\nE", ["C:\\w\\ledger.ts", "C:\\w\\old.ts"]],
    ["M \\\\host\\share\\a.ts\nD x", ["\\\\host\\share\\a.ts"]]
  ])("ends a path of JSON where an escape begins: %j", (text, paths) => {
    const words: Array<string> = []
    eachWord(JSON.stringify(text), (word) => words.push(word))
    assert.deepStrictEqual(words, paths)
  })

  it("takes a backslash for a separator in a conversation on Windows", () => {
    const text = "edited src\\table.ts, see docs\\notes\\readme.md."
    assert.deepStrictEqual(wordsOf(text, true), ["src\\table.ts", "docs\\notes\\readme.md"])
    assert.deepStrictEqual(wordsOf(text), ["able.ts", "eadme.md"])
  })

  it("tells what may be more than one word, and what the sentence may have added", () => {
    const found: Array<readonly [string, boolean, boolean]> = []
    eachWord("a/b:12 .map plain_name what_is?", (word, _, hasMark, isComposite) => {
      found.push([word, hasMark, isComposite])
    })
    assert.deepStrictEqual(found, [
      ["a/b:12", false, true],
      [".map", true, false],
      ["plain_name", false, false],
      ["what_is?", true, true]
    ])
  })

  it.prop(
    "finds the words of the expression",
    [Schema.Array(Piece)],
    ([pieces]) => {
      const text = pieces.join("")
      assert.deepStrictEqual(wordsOf(text), expectedWords(text))
    },
    { arbitrary: thousand("AnchorWords") }
  )
})
