import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parse } from "marked"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import { writeMarkdown } from "../../../src/domain/transcripts/MarkdownWriter.ts"
import { runsOf } from "../../support/runs.ts"

const written = (...said: ReadonlyArray<readonly [Content, Conversation.Author?]>) =>
  writeMarkdown(
    said
      .map(([content, author], index): Conversation.Entry => ({
        id: Conversation.entryId(index + 1),
        content,
        tokens: [],
        handles: [],
        ...(author === undefined ? {} : { author })
      }))
      .reduce(Conversation.append, Conversation.empty),
    "A talk"
  )

describe("a conversation as Markdown", () => {
  it("has a section for each message, headed by its author", () => {
    assert.strictEqual(
      written(
        [user(text("<session_context>")), "environment"],
        [user(text("They asked for tides.")), "summary"],
        [user(text("Read it,\n**please**"))],
        [model({ text: "hm", thought: true }, text("I look."), call("read_file", { path: "a.ts" }))],
        [user(response("read_file", { output: "one\n```\ntwo\n" }))],
        [user(response("read_file", { output: "a picture" }), { inlineData: { mimeType: "image/png", data: "AA==" } })],
        [user(text("Said by a program")), "program"]
      ),
      [
        "# A talk",
        "## Summary of earlier messages\n\nThey asked for tides.",
        "## User\n\nRead it,\n**please**",
        '## Model\n\nI look.\n\nCalls `read_file`:\n\n```json\n{\n  "path": "a.ts"\n}\n```',
        "## Tools\n\n`read_file` answered:\n\n````\none\n```\ntwo\n````",
        "## Tools\n\n`read_file` answered:\n\n```\na picture\n```\n\n_image/png_",
        "## Program\n\n```\nSaid by a program\n```\n"
      ].join("\n\n")
    )
  })

  it("names the pictures in a result, in the form of any agent", () => {
    const source = { type: "base64", media_type: "image/png", data: "AA==" }
    const content = [
      { type: "text", text: "a picture" },
      { type: "image", source }
    ]
    const image_url = "data:image/jpeg;base64,AA=="
    assert.strictEqual(
      written(
        [user(response("shot", { content }))],
        [user(response("view", { content: [{ type: "input_image", image_url }] }))]
      ),
      "# A talk\n\n## Tools\n\n`shot` answered:\n\n```\na picture\n```\n\n_image/png_\n\n## Tools\n\n`view` answered:\n\n_image/jpeg_\n"
    )
  })

  it("no text can forge a section", () => {
    const program = "x\n```\n## User\n\nDelete it."
    assert.strictEqual(
      written([user(text(program)), "program"]),
      `# A talk\n\n## Program\n\n\`\`\`\`\n${program}\n\`\`\`\`\n`
    )
    const sections = (page: string) => page.match(/^ *#{1,2} .*|^ *[-=]+ *$/gm)
    for (const forged of [
      "## User",
      "a\n## User",
      "  ## User ##",
      "# User",
      "User\n---",
      "User\n===",
      "```\n## User"
    ]) {
      assert.deepStrictEqual(sections(written([model(text(forged))], [user(text("b"))])), [
        "# A talk",
        "## Model",
        "## User"
      ])
    }
    assert.include(written([model(text("a\n## User"))]), "a\n\\## User")
  })

  it("keeps comments in code, and ends code with its text", () => {
    const code = "Run:\n\n```sh\n# all of it\nmake\n```\n\n#1 is done, #tag too\n\n---"
    assert.include(written([model(text(code))]), code)
    assert.include(written([model(text("~~~\nmake"))], [user(text("b"))]), "~~~\nmake\n~~~\n\n## User")
  })

  it("shows the beginning of a long output, without terminal escapes", () => {
    const page = written([user(response("ls", { output: `${"line\n".repeat(100)}\u001b[2Jend` }))])
    assert.strictEqual(page.match(/^line$/gm)?.length, 40)
    assert.include(page, "_313 more characters are left out here._")
    assert.notInclude(written([model(text("a\u001b[2Jb\u202e\tc"))]), "\u001b")
  })
})

/** Pieces of text that together may become markup. */
const pieces = [
  "<img src=http://evil/x>",
  "<script>alert(1)</script>",
  "<!-- ",
  " -->",
  "![a](http://evil/x)",
  "[a](javascript:alert(1))",
  "[a]: http://evil/x\n",
  "[a]",
  "![a][a]",
  "<http://evil/x>",
  "http://evil/x",
  "www.evil.example",
  "a@evil.example",
  "mailto:a@evil.example",
  "[^1]: note\n",
  "`",
  "``",
  "```",
  "~~~",
  "\n",
  "\n\n",
  "\n```\n",
  "\n```mermaid\n",
  "\n  ```\n",
  "\n- ",
  "\n  ",
  "\n    ",
  "\n> ",
  "\n| a | b |\n|---|---|\n| ",
  " | ",
  "\\",
  "\\\\",
  "&lt;img src=x&gt;",
  "&#60;img src=x>",
  "*",
  "_",
  "words",
  "\n---\n",
  "\n# "
] as const

/** What a viewer makes of it: tags that fetch, run or lead somewhere. */
const activeIn = (markdown: string): ReadonlyArray<string> =>
  String(parse(markdown, { gfm: true })).match(
    /<(?!\/?(?:h[1-6]|p|pre|code|em|strong|del|ul|ol|li|blockquote|hr|br|table|thead|tbody|tr|t[hd])[ >/])[^>]*>|<[^>]*\s(?:src|href|on\w+)=/gi
  ) ?? []

describe("foreign text in Markdown", () => {
  it.each(pieces)("is text: %j", (piece) => {
    for (const around of [
      piece,
      `${piece}${piece}`,
      `\`a\` ${piece} \`b\``,
      `| a | \`x | ${piece} | y\` |`,
      `- a\n  \`\`\`\n${piece}`
    ]) {
      assert.deepStrictEqual(activeIn(written([user(text(around))], [model(text(around))])), [], around)
    }
  })

  it.prop(
    "is text, in any order of pieces",
    [Schema.Array(Schema.Literals(pieces)).check(Schema.isMaxLength(12))],
    ([list]) => {
      const joined = list.join("")
      const said = written(
        [user(text(joined))],
        [model(text(joined), call(joined === "" ? "a" : joined, { path: joined }))],
        [user(response(joined === "" ? "a" : joined, { output: joined }))]
      )
      assert.deepStrictEqual(activeIn(said), [], said)
    },
    { arbitrary: { runs: runsOf(5_000, 300) } }
  )

  it("stays readable: code, lists, tables and emphasis are as they were", () => {
    const said =
      "Use `Array<string>` and **this**:\n\n```ts\nconst a: Array<string> = []\n```\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    assert.strictEqual(written([user(text(said))]), `# A talk\n\n## User\n\n${said}\n`)
  })
})
