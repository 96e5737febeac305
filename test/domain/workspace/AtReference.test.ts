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
import { runsOf, sizeOf } from "../../support/runs.ts"

/** References as their paths, text as it is. */
const told = (message: string): ReadonlyArray<string | { readonly path: string }> =>
  parse(message).map((each) => (each._tag === "Text" ? each.text : { path: each.path }))

const asWritten = (segments: ReadonlyArray<Segment>): string =>
  segments.map((each) => (each._tag === "Text" ? each.text : each.raw)).join("")

describe("references in a message", () => {
  const cases: ReadonlyArray<
    readonly [rule: string, message: string, pieces: ReadonlyArray<string | { readonly path: string }>]
  > = [
    ["there may be none", "no file here", ["no file here"]],
    ["nothing is nothing", "", []],
    ["one alone", "@src/a.ts", [{ path: "src/a.ts" }]],
    ["among words", "see @src/a.ts please", ["see ", { path: "src/a.ts" }, " please"]],
    ["white space of any kind parts them", "@a\t@b\n@c", [{ path: "a" }, "\t", { path: "b" }, "\n", { path: "c" }]],
    ["a comma ends it", "@a.ts, @b.ts", [{ path: "a.ts" }, ", ", { path: "b.ts" }]],
    ["one may follow a comma closely", "@a.ts,@b.ts", [{ path: "a.ts" }, ",", { path: "b.ts" }]],
    ["a semicolon ends it", "@a;b", [{ path: "a" }, ";b"]],
    ["an exclamation mark ends it", "@a!", [{ path: "a" }, "!"]],
    ["a question mark ends it", "@a?", [{ path: "a" }, "?"]],
    ["round brackets end it", "(@a)", ["(", { path: "a" }, ")"]],
    ["square brackets end it", "[@a]", ["[", { path: "a" }, "]"]],
    ["braces end it", "{@a}", ["{", { path: "a" }, "}"]],
    ["a bracket in it ends it", "@a(b", [{ path: "a" }, "(b"]],
    ["a dot within is part of it", "@a.b.c d", [{ path: "a.b.c" }, " d"]],
    ["a dot at the end ends it", "read @a.ts.", ["read ", { path: "a.ts" }, "."]],
    ["a dot before white space ends it", "@a.ts. Then", [{ path: "a.ts" }, ". Then"]],
    ["dots at the end do", "@a.ts... well", [{ path: "a.ts" }, "... well"]],
    ["a dot before anything else does not", "@a.,b", [{ path: "a." }, ",b"]],
    [
      "a dot at its beginning is part of it",
      "@.gitignore @./a @../b",
      [{ path: ".gitignore" }, " ", { path: "./a" }, " ", { path: "../b" }]
    ],
    ["a colon does not end it", "@a:b", [{ path: "a:b" }]],
    ["stars are part of it", "@src/**/*.ts", [{ path: "src/**/*.ts" }]],
    ["an escaped space is part of it", "@my\\ notes.md now", [{ path: "my notes.md" }, " now"]],
    ["escaped delimiters are part of it", "@app/\\[id\\]/\\(x\\).ts", [{ path: "app/[id]/(x).ts" }]],
    ["an escaped dot at the end is part of it", "@a\\. b", [{ path: "a." }, " b"]],
    ["an escaped backslash is one", "@a\\\\b", [{ path: "a\\b" }]],
    ["a backslash before a letter stands for itself", "@src\\a.ts", [{ path: "src\\a.ts" }]],
    ["a backslash does not take the line break in", "@a\\\nb", [{ path: "a\\" }, "\nb"]],
    ["quotes keep spaces and delimiters", '@"my notes (1).md" now', [{ path: "my notes (1).md" }, " now"]],
    ["a closing quote ends it", '@"a b"c', [{ path: "a b" }, "c"]],
    ["a backslash in quotes stands for itself", '@"a\\b"', [{ path: "a\\b" }]],
    ["quotes that are not closed are signs", '@"a b', [{ path: '"a' }, " b"]],
    ["quotes end with their line", '@"a\nb"', [{ path: '"a' }, '\nb"']],
    ["empty quotes are text", 'say @"" now', ['say @"" now']],
    ["quotes around white space are text", '@" "', ['@" "']],
    ["letters of all scripts are part of it", "@src/größe/日本.ts", [{ path: "src/größe/日本.ts" }]],
    ["signs beyond the first plane are part of it", "@src/😀.ts", [{ path: "src/😀.ts" }]],
    ["it may follow a script without spaces", "请看@src/a.ts", ["请看", { path: "src/a.ts" }]],
    ["it may follow punctuation of such a script", "见（@a.ts", ["见（", { path: "a.ts" }]],
    ["a lone one is text", "meet @ noon @", ["meet @ noon @"]],
    ["dots behind a lone one are text", "@.. @...", ["@.. @..."]],
    ["the folder itself", "@./", [{ path: "./" }]],
    ["the folder itself without a slash", "read @. and @.", ["read ", { path: "." }, " and ", { path: "." }]],
    ["an escaped one is text", "\\@a.ts", ["\\@a.ts"]],
    [
      "an address of mail is text",
      "ask ann@example.com, bob.b+c@example.com",
      ["ask ann@example.com, bob.b+c@example.com"]
    ],
    ["an address with letters of other scripts too", "josé@example.com", ["josé@example.com"]],
    ["a remote of git is text", "git@github.com:a/b.git", ["git@github.com:a/b.git"]],
    ["a name in quotes is text", "import \"@scope/a\" from '@b' and `@c`", ["import \"@scope/a\" from '@b' and `@c`"]],
    ["a scope within a path is text", "node_modules/@scope/a", ["node_modules/@scope/a"]],
    ["a version is part of it", "@scope/a@1.2.3", [{ path: "scope/a@1.2.3" }]],
    ["two in a row are text after the first", "@@a", [{ path: "@a" }]],
    [
      "fenced code is text",
      "look:\n```py\n@property\ndef a(): ...\n```\n@b",
      ["look:\n```py\n@property\ndef a(): ...\n```\n", { path: "b" }]
    ],
    ["fences of tildes too", "~~~\n@a\n~~~", ["~~~\n@a\n~~~"]],
    ["a shorter fence does not close one", "````\n```\n@a\n````\n@b", ["````\n```\n@a\n````\n", { path: "b" }]],
    ["what is not closed is no fence", "```\n@a", ["```\n", { path: "a" }]]
  ]
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
  for (const [rule, message, again] of cases) {
    it(rule, () =>
      assert.strictEqual(
        rebuild(parse(message), ({ path }) => (path === "a" ? "@dir/a" : undefined)),
        again
      )
    )
  }

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
