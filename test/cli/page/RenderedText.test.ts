import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parseHTML } from "linkedom"
import { markdown, preformattedDiff } from "../../../src/cli/page/Parts.ts"
import { hostile } from "./pages.ts"

const tags = (html: string) => new Set([...html.matchAll(/<([a-z]+)/g)].map(([, tag]) => tag))
const known = "div p span strong em s code hr table thead tbody tr th td".split(" ")

describe("rendered Markdown", () => {
  it("lays out headings, lists, tables and code, and makes no links", () => {
    const { html } = markdown("# A\n- [x] **b** `c`\n\n|d|e|\n|-|-|\n|1|2|\n\n```\nf\n```\n[g](https://example.com)")
    const { document } = parseHTML(`<body>${html}</body>`)
    const text = (selector: string) => document.querySelector(selector)?.textContent
    assert.deepStrictEqual(["p.title", "p.item", "p.item strong", "th", "tbody td", "div.code"].map(text), [
      "A",
      "• ☑ b c",
      "b",
      "d",
      "1",
      "f"
    ])
    assert.include(html, "[g](https://example.com)")
    assert.isEmpty([...tags(html)].filter((tag) => !known.includes(tag ?? "")))
  })

  it("is nothing for plain text", () => assert.strictEqual(markdown("Plain words.\n\nAnd more.").html, ""))

  const wraps = [
    (text: string) => text,
    (text: string) => `# ${text}`,
    (text: string) => `- **${text}**\n\n> \`${text}\``
  ]
  it.each(Object.entries(hostile))("keeps %s as text", (_name, text) => {
    for (const wrap of wraps) {
      assert.isEmpty([...tags(markdown(wrap(text)).html)].filter((tag) => !known.includes(tag ?? "")))
    }
  })

  it.prop("holds only our own tags, whatever the text", { text: Schema.String }, ({ text }) => {
    const { html } = markdown(`- ${text}\n\n\`\`\`\n${text}\n\`\`\`\n\n|${text}|\n|-|`)
    assert.isEmpty([...tags(html)].filter((tag) => !known.includes(tag ?? "")))
  })
})

describe("a diff", () => {
  const diff = "--- a/x\r\n+++ b/x\n@@ -1 +1 @@\n-<b>old</b>\n+new & \n same\n"
  it("has lines in colour and exactly its text", () => {
    const { document } = parseHTML(`<body>${preformattedDiff(diff)?.html ?? ""}</body>`)
    const shown = [...document.querySelectorAll("span")].map(({ className, textContent }) => [className, textContent])
    assert.deepStrictEqual(shown.slice(2), [
      ["hunk", "@@ -1 +1 @@\n"],
      ["removed", "-<b>old</b>\n"],
      ["added", "+new & \n"]
    ])
  })
  it("is no other text", () => assert.isUndefined(preformattedDiff("- a list\n+ of things\n")))
})
