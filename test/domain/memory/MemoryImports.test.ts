import { assert, describe, it } from "@effect/vitest"
import {
  beginsWith,
  importTokens,
  isAddress,
  isPath,
  skippedImport,
  importedBlock,
  withoutPunctuation
} from "../../../src/domain/memory/MemoryImports.ts"

const paths = (text: string) => importTokens(text).map(({ path }) => path)

describe("imports of a text", () => {
  const cases: ReadonlyArray<readonly [rule: string, text: string, found: ReadonlyArray<string>]> = [
    [
      "at the beginning, behind a space, a tab, a line break",
      "@a.md x @./b\t@/c\n@../d",
      ["a.md", "./b", "/c", "../d"]
    ],
    ["not behind a letter, a bracket or another @", "me@x.org (@a.md) @@b.md", []],
    ["a path begins with a dot, a slash or a letter", "@1.md @_x @é.md @-x @ a @~/x", []],
    ["a path goes on to the next white space", "@a,b.md. @c`d", ["a,b.md.", "c`d"]],
    ["no text", "", []],
    ["an @ alone", "@", []],
    ["inline code", "`@a.md` @b.md `x @c.md y`", ["b.md"]],
    ["runs of the same length delimit, others do not", "`` @a.md ` @b.md `` @c.md", ["c.md"]],
    ["fenced code", "```\n@a.md\n```\n@b.md\n````md\n```\n@c.md\n````", ["b.md"]],
    ["code fenced with tildes", "~~~sh\n@a.md\n`\n~~~\n@b.md ~~~ @c.md ~~~\n~~~ @d.md\n@e.md", ["b.md", "c.md"]],
    ["a longer fence closes code, a line with words does not", "```\n@a.md\n``` x\n@b.md\n````\n@c.md", ["c.md"]],
    ["a fence in a quote or an item of a list", "- ```js\n  @a.md\n  ```\n> ~~~\n> @b.md\n> ~~~\n@c.md", ["c.md"]],
    ["a fence that nothing closes goes to the end", "@a.md\n```\n@b.md\n\n@c.md", ["a.md"]],
    [
      "a run that nothing closes in its paragraph is text",
      "don`t @a.md\n\nit`s @b.md `` @c.md",
      ["a.md", "b.md", "c.md"]
    ],
    ["a run before a fence does not end in it", "a ` b\n```\n`\n@a.md\n```\n@b.md", ["b.md"]],
    [
      "indented code, but no item of a list",
      "x\n\n    @a.md\n\n\t@b.md\ny\n    @c.md\n- z\n\n    @d.md\n\nx\n\n    @e.md",
      ["c.md", "d.md"]
    ],
    ["comments that end", "<!-- @a.md\n@b.md --> @c.md `<!--` @d.md --> <!-- @e.md", ["c.md", "d.md", "e.md"]],
    ["code that ends before the token, and code behind it", "`x`\n@a.md `y`", ["a.md"]]
  ]
  it.each(cases)("%s", (_, text, found) => assert.deepStrictEqual(paths(text), found))

  it("have their positions", () => {
    const text = "x @a.md y"
    assert.deepStrictEqual(
      importTokens(text).map(({ end, start }) => text.slice(start, end)),
      ["@a.md"]
    )
  })

  it("may end before the punctuation of a sentence", () => {
    const text = "See @a.md). @b, @c.d @e.md。"
    assert.deepStrictEqual(
      importTokens(text).map((token) => {
        const { end, path, start } = withoutPunctuation(token)
        return [path, text.slice(start, end)]
      }),
      [
        ["a.md", "@a.md"],
        ["b", "@b"],
        ["c.d", "@c.d"],
        ["e.md", "@e.md"]
      ]
    )
  })

  it("exclude addresses", () => {
    for (const address of ["file:///etc/passwd", "HTTP://x", "https://x/y.md", "file:x"])
      assert.isTrue(isAddress(address))
    for (const path of ["files/a.md", "./http", "httpd.conf"]) assert.isFalse(isAddress(path))
  })

  it("are paths when they begin with a folder or end with an extension, but not packages or user names", () => {
    for (const path of ["./b", "../b", "/b", "b.md", "a/b.ts", "b.md,", "b.md).", "http://x", "a@2/b.md"])
      assert.isTrue(isPath(path), path)
    for (const path of [
      "scope/pkg",
      "wren",
      "types/node.",
      "vue/cli@3.0.1",
      "a/b@4.0.0-rc1",
      "x.io/y",
      ".github",
      "f()"
    ])
      assert.isFalse(isPath(path), path)
  })

  it("a comment cannot be closed from inside", () => {
    assert.strictEqual(
      importedBlock("a-->b", "c-->d"),
      "<!-- @a--&gt;b is not repeated here: this memory already contains it as c--&gt;d -->"
    )
    assert.strictEqual(skippedImport("a-->b", "no --!> such"), "<!-- @a--&gt;b was not imported: no --!&gt; such -->")
  })
})

describe("a text begins with another", () => {
  it.each([
    ["when they are equal but for the space around them", "\na\n", "a", true],
    ["when the other ends at the end of a line", "a\nb", "a", true],
    ["when only spaces follow on that line", "a \t\r\nb", "a", true],
    ["not when the other ends within a line", "ab", "a", false],
    ["not when the other is longer", "a", "a\nb", false],
    ["when the other is empty", "", " ", true]
  ] as const)("%s", (_, text, other, expected) => assert.strictEqual(beginsWith(text, other), expected))
})
