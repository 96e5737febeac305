import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  parse,
  readings,
  rebuild,
  type Segment,
  unescaped,
  formatReference
} from "../../../src/domain/workspace/AtReference.ts"
import { corpus } from "../../support/corpus.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

/** References as their paths, text as it is. */
const told = (message: string): ReadonlyArray<string | { readonly path: string }> =>
  parse(message).map((each) => (each._tag === "Text" ? each.text : { path: each.path }))

const asWritten = (segments: ReadonlyArray<Segment>): string =>
  segments.map((each) => (each._tag === "Text" ? each.text : each.raw)).join("")

describe("references in a message", () => {
  const cases =
    corpus<readonly [rule: string, message: string, pieces: ReadonlyArray<string | { readonly path: string }>]>(
      "references-in-messages"
    )
  for (const [rule, message, pieces] of cases) {
    it(`${rule}: ${JSON.stringify(message)}`, () => {
      assert.deepStrictEqual(told(message), pieces)
      assert.strictEqual(asWritten(parse(message)), message)
    })
  }

  it.prop(
    "all pieces together are the message",
    [
      Schema.Array(
        Schema.Literals([
          "@",
          "\\",
          '"',
          " ",
          "\n",
          ".",
          ",",
          "(",
          ")",
          "a",
          "b/",
          "é",
          "日",
          "😀",
          "```",
          "~~~",
          ":",
          "*"
        ])
      )
    ],
    ([signs]) => {
      const message = signs.join("")
      assert.strictEqual(asWritten(parse(message)), message)
      assert.strictEqual(
        rebuild(parse(message), () => undefined),
        message
      )
    },
    { arbitrary: { runs: runsOf(3_000) } }
  )

  it("is fast with very many references", () => {
    for (const piece of ["@", '@"', "@a ", "@a.", "\\@", "```\n@a\n", "@a\\"]) {
      const message = piece.repeat(sizeOf(100_000, 10_000))
      assert.strictEqual(asWritten(parse(message)), message)
    }
  })
})

describe("possible meanings of a word", () => {
  /** What may stand behind the path, at the end of a word. */
  const cases: ReadonlyArray<readonly [word: string, ...rests: ReadonlyArray<string>]> = [
    ["a.ts", ""],
    ["a.ts:", "", ":"],
    ["a.ts:12", "", ":12"],
    ["a.ts:12:5", "", ":5", ":12:5"],
    ["a.ts'", "", "'"],
    ["a.ts.", "", "."],
    ["a.ts.:", "", ".:"],
    ["a.ts。谢谢", "", "。谢谢"],
    [":a", ""]
  ]
  for (const [word, ...rests] of cases) {
    it(word, () =>
      assert.deepStrictEqual(
        readings(word).map(({ path, rest }) => [path, rest] as const),
        rests.map((rest) => [word.slice(0, word.length - rest.length), rest] as const)
      )
    )
  }

  it("tries few for a word with many punctuation marks", () =>
    assert.strictEqual(readings("a:".repeat(1_000)).length, 5))
})

describe("writing a path as a reference", () => {
  const cases: ReadonlyArray<readonly [path: string, reference: string | undefined]> = [
    ["src/a.ts", "@src/a.ts"],
    ["my notes.md", '@"my notes.md"'],
    ["app/[id]/x", '@"app/[id]/x"'],
    ["a.", '@"a."'],
    ["a\\b", '@"a\\b"'],
    ['a"b c.', '@a\\"b\\ c\\.'],
    ["a\nb", undefined],
    [" ", undefined]
  ]
  for (const [path, reference] of cases) {
    it(JSON.stringify(path), () => assert.strictEqual(formatReference(path), reference))
  }

  it.prop(
    "means that path",
    [Schema.NonEmptyArray(Schema.Literals(["a", ".", " ", "\\", '"', "(", "[", ",", "/", "é", "😀", "@", "\t", "1"]))],
    ([signs]) => {
      const path = signs.join("")
      const reference = formatReference(path)
      if (reference === undefined) return assert.strictEqual(path.trim(), "")
      assert.deepStrictEqual(parse(`see ${reference} now`), [
        { _tag: "Text", text: "see " },
        { _tag: "Reference", raw: reference, path },
        { _tag: "Text", text: " now" }
      ])
    },
    { arbitrary: { runs: runsOf(2_000) } }
  )
})

describe("a partly typed path", () => {
  const cases: ReadonlyArray<readonly [typed: string, path: string]> = [
    ["my\\ docs/a", "my docs/a"],
    ['it\'s\\ \\"q\\"', 'it\'s "q"'],
    ["src\\a", "src\\a"],
    ["a\\\\b\\", "a\\b\\"]
  ]
  for (const [typed, path] of cases) it(typed, () => assert.strictEqual(unescaped(typed), path))
})

describe("replacing references", () => {
  const cases: ReadonlyArray<readonly [rule: string, message: string, again: string]> = [
    ["references are written anew", "see @a now", "see @dir/a now"],
    ["a space is put before one that lacks it", "见@a,@a", "见 @dir/a, @dir/a"],
    [
      "none where it begins, and none behind white space and brackets",
      "@a\n@a (@a [@a",
      "@dir/a\n@dir/a (@dir/a [@dir/a"
    ],
    ["what is no reference stays as it is", "\\@a a@a `@a`\r\n  @b\t", "\\@a a@a `@a`\r\n  @b\t"]
  ]
  it.each(cases)("%s", (_rule, message, again) =>
    assert.strictEqual(
      rebuild(parse(message), ({ path }) => (path === "a" ? "@dir/a" : undefined)),
      again
    )
  )

  it.prop(
    "keeps every other character, in order",
    [Schema.Array(Schema.Literals(["@a", '@"b c"', " ", "x", ",", "\n", "(", "日", "."]))],
    ([pieces]) => {
      const segments = parse(pieces.join(""))
      // Spaces that were put in stand directly before the mark of a reference.
      const left = rebuild(segments, () => "§").replace(/(?<![\s([{]) §|§/g, "")
      const outside = segments.flatMap((each) => (each._tag === "Text" ? [each.text] : [])).join("")
      assert.strictEqual(left.replaceAll(" ", ""), outside.replaceAll(" ", ""))
    },
    { arbitrary: { runs: runsOf(2_000) } }
  )
})
