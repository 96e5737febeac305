import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Markdown from "../../../src/cli/chat/Markdown.ts"
import { columnsOf } from "../../../src/cli/output/Output.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const render = (text: string, columns = 40, look = Markdown.plain) => {
  const renderer = Markdown.make({ columns, look })
  return renderer.push(text) + renderer.end()
}

/** Looks that can be read in a test. */
const marked: Markdown.Look = {
  bold: (text) => `<b>${text}</b>`,
  italic: (text) => `<i>${text}</i>`,
  code: (text) => `<c>${text}</c>`,
  dim: (text) => `<d>${text}</d>`,
  isColoured: true
}

const cases: ReadonlyArray<readonly [rule: string, text: string, plain: string, withLooks?: string]> = [
  ["prose is wrapped between words", "one two three four five", "one two three four\nfive\n"],
  [
    "a word too wide for a line is not cut",
    "see https://example.com/a/long/path now",
    "see\nhttps://example.com/a/long/path\nnow\n"
  ],
  ["line breaks stay", "a  \nb\n", "a\nb\n"],
  ["several blank lines become one, between others", "\n\na\n\n \nb\n\n", "a\n\nb\n"],
  ["blank lines of code stay", "```\n\n\na\n```\n\n\nb", "```\n\n\na\n```\n\nb\n"],
  ["a heading", "## Two *words* #", "## Two words #\n", "<b>Two</b> <b><i>words</i></b> <b>#</b>\n"],
  ["no heading without a space", "#1 is", "#1 is\n"],
  ["bold and italic", "a **b c** _d_ ***e***.", "a b c d e.\n", "a <b>b</b> <b>c</b> <i>d</i> <b><i>e</i></b>.\n"],
  ["within one another", "**a *b* `c`**", "a b `c`\n", "<b>a</b> <b><i>b</i></b> <c>c</c>\n"],
  ["bold that ends with italic", "**a *b***", "a b\n", "<b>a</b> <b><i>b</i></b>\n"],
  ["asterisks between spaces are text", "2 * 3 ** 4", "2 * 3 ** 4\n"],
  ["emphasis without an end is text", "**args and *rest", "**args and *rest\n"],
  ["an underscore within a word is text", "a_b_c __d__ _e", "a_b_c d _e\n"],
  ["more than three marks are text", "**** a ****b****", "**** a ****b****\n"],
  ["code", "`a  *b*` ``c`d``", "`a  *b*` `c`d`\n", "<c>a</c>  <c>*b*</c> <c>c`d</c>\n"],
  ["code without an end is text", "`a *b*", "`a b\n", "`a <i>b</i>\n"],
  ["escapes", "\\*a\\* \\b \\", "*a* \\b \\\n"],
  ["a link", "[a b](http://c)!", "a b (http://c)!\n", "a b <d>(http://c)</d>!\n"],
  ["a link with brackets in its address", "[a](b_(c))", "a (b_(c))\n"],
  ["a link that is its own text", "[http://c](http://c)", "http://c\n"],
  ["brackets that are no link", "[1] [x](y z [a", "[1] [x](y z [a\n"],
  ["lists hang", "- one two three four\n  12. five six seven", "• one two three four\n  12. five six seven\n"],
  ["lists hang when wrapped", "* one two three fours six", "• one two three\n  fours six\n"],
  ["a sign is no list", "-1 +2\n1.5\n- ", "-1 +2\n1.5\n• \n"],
  ["emphasis may begin a line", "*a* b\n**c**\n__d__", "a b\nc\nd\n"],
  ["quotes repeat their mark", "> one two three four five\n>> six\n>\n", "│ one two three four\n│ five\n│ │ six\n│\n"],
  ["a list in a quote", "> - a", "│ • a\n", "<d>│ </d>• a\n"],
  ["rules", "---\n***  \n_____", `${"─".repeat(20)}\n${"─".repeat(20)}\n${"─".repeat(20)}\n`],
  ["no rule", "--- a\n--", "--- a\n--\n"],
  [
    "code blocks are as they are",
    "```ts\n**a**  \t# b c d e f g h i j k l\n\n```\n*c*",
    "```ts\n**a**  \t# b c d e f g h i j k l\n\n```\nc\n"
  ],
  ["code ends at a mark as long as its own", "````\n```\n~~~~\n`````\n*a*", "````\n```\n~~~~\n`````\na\n"],
  [
    "code in a quote ends with it",
    "> ```ts\n> a\n>\n> ```\n> *b*\n\n>> ~~~\n>> *c*\n*d*",
    "│ ```ts\n│ a\n│ \n│ ```\n│ b\n\n│ │ ~~~\n│ │ *c*\nd\n"
  ],
  ["code without an end", "~~~\n*a*", "~~~\n*a*\n"],
  ["code in a list keeps its indentation", "- a\n  ```\n  *b*\n  ```\n*c*", "• a\n  ```\n  *b*\n  ```\nc\n"],
  ["three backticks within a line are no block", "```a``` *b*", "`a` b\n"],
  [
    "tables are as they are",
    "| a | *b* |\n|---|---|\n| one two | three four |",
    "| a | *b* |\n|---|---|\n| one two | three four |\n"
  ],
  ["deep indentation leaves room", `${" ".repeat(30)}- a`, `${" ".repeat(10)}• a\n`],
  [
    "control sequences are seen",
    "a\u001b[31;1mb\u001b]0;c\u0007\u009b2Jd\u202ee\r\nf",
    "a\\u{1b}[31;1mb\\u{1b}]0;c\\u{7}\\u{9b}2Jd\\u{202e}e\nf\n"
  ],
  ["tabs in prose are spaces", "a\tb", "a b\n"],
  ["nothing", "", ""],
  [
    "text without spaces breaks anywhere but before closing marks",
    "日本語のテキストは空白がない。終わり",
    "日本語のテキストは空\n白がない。終わり\n"
  ],
  [
    "emoji and combining marks have their width",
    "👩‍👩‍👧‍👦👩‍👩‍👧‍👦 e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301 12345678 9",
    "👩‍👩‍👧‍👦👩‍👩‍👧‍👦 e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301 12345678\n9\n"
  ]
]

describe("prints", () => {
  for (const [rule, text, plain, withLooks] of cases) {
    it(rule, () => {
      assert.strictEqual(render(text, 20), plain)
      if (withLooks !== undefined) assert.strictEqual(render(text, 20, marked), withLooks)
    })
  }

  it("an unknown width disables wrapping", () =>
    assert.strictEqual(render(`${"word ".repeat(1_000)}\n---`, Number.POSITIVE_INFINITY).split("\n")[0]?.length, 4_999))
})

describe("prints as soon as the meaning is clear", () => {
  const pushed = (...pieces: ReadonlyArray<string>) => {
    const renderer = Markdown.make({ columns: 40, look: Markdown.plain })
    return pieces.map((piece) => renderer.push(piece))
  }
  const moments: ReadonlyArray<readonly [rule: string, pieces: ReadonlyArray<string>, printed: ReadonlyArray<string>]> =
    [
      ["prose by word", ["The ans", "wer is", " 4", "2. "], ["The", " answer", " is", " 42."]],
      ["emphasis when it ends", ["a **b c", "** d "], ["a", " b c d"]],
      ["a list item's mark at once", ["- ", "a "], ["• ", "a"]],
      ["code line by line", ["```\nab", "c\nd"], ["```\n", "abc\n"]],
      ["a table row at the end of its line", ["| a ", "|\n| b"], ["", "| a |\n"]],
      ["text without spaces by letter", ["日本", "語"], ["日", "本"]]
    ]
  for (const [rule, pieces, printed] of moments) {
    it(rule, () => assert.deepStrictEqual(pushed(...pieces), printed))
  }

  it("a discarded text ends its line and the next starts afresh", () => {
    const renderer = Markdown.make({ columns: 40, look: Markdown.plain })
    assert.deepStrictEqual([renderer.push("**a"), renderer.hasPrinted(), renderer.drop()], ["", false, ""])
    renderer.push("```\nabc\n")
    assert.deepStrictEqual([renderer.hasPrinted(), renderer.drop()], [true, ""])
    assert.strictEqual(renderer.push("- *some* text"), "• some")
    assert.deepStrictEqual([renderer.hasPrinted(), renderer.drop(), renderer.hasPrinted()], [true, "\n", false])
    assert.strictEqual(renderer.push("*b* ") + renderer.end(), "b\n")
    assert.strictEqual(renderer.end(), "")
  })
})

const fragments = [
  ..."*_`~#>-+[]()!\\|1.é日。 ",
  ..."a1 \n",
  "**",
  "```",
  "~~~",
  "\n\n",
  "\n- ",
  "\n> ",
  "\n```ts\n",
  "[a](b)",
  "word ",
  "👩‍👩‍👧‍👦",
  "e\u0301",
  "\u001b[31m",
  "\u001b",
  "\t",
  "\r\n",
  "\ud83d"
]
const Text = Schema.Array(Schema.Literals(fragments))
/** Without halves of characters and of control sequences, and without links whose text is their address. */
const CleanText = Schema.Array(Schema.Literals(fragments.filter((each) => !["(", "\u001b", "\ud83d"].includes(each))))
const Cuts = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 200 })))

describe("for any text", () => {
  it.effect.prop(
    "the chunks it arrives in change only when it is printed",
    [Text, Cuts],
    ([parts, cuts]) =>
      Effect.sync(() => {
        const text = parts.join("")
        const renderer = Markdown.make({ columns: 12, look: marked })
        const places = [...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length]
        const pieces = places.map((end, index) => text.slice(places[index - 1] ?? 0, end))
        const printed = pieces.map(renderer.push).join("") + renderer.end()
        assert.strictEqual(printed, render(text, 12, marked))
        const letters = Markdown.make({ columns: 12, look: marked })
        assert.strictEqual(text.split("").map(letters.push).join("") + letters.end(), printed)
      }),
    { arbitrary: { runs: runsOf(2_000) } }
  )

  it.effect.prop(
    "letters keep their order",
    [CleanText],
    ([parts]) =>
      Effect.sync(() => {
        const text = parts.join("")
        const printed = render(text, 12)
        const letters = (from: string) =>
          from
            .replaceAll("\u001b", "\\u{1b}")
            .replaceAll("\ud83d", "\\u{d83d}")
            .replace(/[^a-zé日。👩]/gu, "")
        assert.strictEqual(letters(printed), letters(text))
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it.effect.prop(
    "no terminal escapes are printed",
    [Text],
    ([parts]) =>
      Effect.sync(() => assert.notMatch(render(parts.join(""), 12).replaceAll(/[\n\t]/g, ""), /[\p{Cc}\p{Cs}]/u)),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it.effect.prop(
    "prose fits the columns",
    [Schema.Array(Schema.Literals(["a", "word", "日本", "👩‍👩‍👧‍👦", "e\u0301", "**b c**", "`d`", "\n- ", "\n> ", "\n# "]))],
    ([parts]) =>
      Effect.sync(() => {
        const lines = render(parts.join(" "), 16).split("\n")
        assert.deepStrictEqual(
          lines.filter((line) => columnsOf(line) > 16),
          []
        )
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it("the cost is linear in the length of the text", () => {
    const times = sizeOf(20_000, 2_000)
    for (const piece of ["*a ", "`a ", "[a ", "[a](b ", "**a* ", "\\", "> ", "a", " ", "1", "```", "\n", "日"]) {
      const printed = render(piece.repeat(times))
      assert.isAtMost(printed.length, 60 * times)
    }
  })
})
