import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type MarkdownBlock, markdownBlocks, markdownSpans } from "../../../src/domain/text/MarkdownBlocks.ts"

const paragraph = (text: string, quote = 0): MarkdownBlock => ({ _tag: "Paragraph", quote, text })
const item = (depth: number, marker: string, text: string, done?: boolean): MarkdownBlock => ({
  _tag: "Item",
  quote: 0,
  depth,
  marker,
  done,
  text
})

describe("Markdown", () => {
  const rows: ReadonlyArray<readonly [rule: string, text: string, blocks: ReadonlyArray<MarkdownBlock>]> = [
    ["paragraphs", "one\ntwo\n\nthree", [paragraph("one\ntwo"), paragraph("three")]],
    ["a heading", "## Why? ##\nso", [{ _tag: "Heading", quote: 0, level: 2, text: "Why?" }, paragraph("so")]],
    ["no heading", "#1 is open", [paragraph("#1 is open")]],
    [
      "code, with its marks inside",
      "```ts\n# a\n- b\n\n``\n```\nrest",
      [{ _tag: "Code", quote: 0, language: "ts", text: "# a\n- b\n\n``" }, paragraph("rest")]
    ],
    ["code without an end", "~~~\na", [{ _tag: "Code", quote: 0, language: "", text: "a" }]],
    ["a rule", "a\n\n---", [paragraph("a"), { _tag: "Rule", quote: 0 }]],
    [
      "lists",
      "- a\n  goes on\n  2) b\n- [ ] c\n- [x] d",
      [item(0, "•", "a\ngoes on"), item(1, "2)", "b"), item(0, "•", "c", false), item(0, "•", "d", true)]
    ],
    ["quotes", "> a\n>> b\nc", [paragraph("a", 1), paragraph("b", 2), paragraph("c")]],
    [
      "a table",
      "| a | b\\|c |\n|---|:-:|\n| 1 | 2 |\n\nd",
      [{ _tag: "Table", quote: 0, head: ["a", "b|c"], rows: [["1", "2"]] }, paragraph("d")]
    ],
    ["no table", "a | b\nc | d", [paragraph("a | b\nc | d")]]
  ]
  for (const [rule, text, blocks] of rows) it(rule, () => assert.deepStrictEqual(markdownBlocks(text), blocks))

  const runs: ReadonlyArray<readonly [text: string, spans: ReadonlyArray<string>]> = [
    [
      "a `b` **c** *d* _e_ ~~f~~",
      ["a ", "code b", " ", "strong c", " ", "emphasis d", " ", "emphasis e", " ", "gone f"]
    ],
    ["snake_case_name and 2*3*4", ["snake_case_name and 2*3*4"]],
    ["`` `a` `` **unclosed", ["code `a`", " **unclosed"]],
    ["__init__.py", ["strong init", ".py"]]
  ]
  it.each(runs)("%s", (text, spans) =>
    assert.deepStrictEqual(
      markdownSpans(text).map(({ style, text: run }) => (style === "plain" ? run : `${style} ${run}`)),
      spans
    )
  )

  it.prop(
    "keeps the words of any text",
    { words: Schema.Array(Schema.Literals(["a", "#", "- ", "> ", "`", "**", "|", "\n", "```\n", "  ", "x"])) },
    ({ words }) => {
      const text = words.join("")
      const shown = markdownBlocks(text)
        .map((block) => JSON.stringify(block))
        .join("")
      const letters = (of: string, letter: string) => of.split(letter).length
      // A name behind the marks of a block of code is its language, and extra columns of a table are left out.
      if (!/```|\|/.test(text)) assert.isAtLeast(letters(shown, "x"), letters(text, "x"))
    }
  )
})
