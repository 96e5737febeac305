import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parseHTML } from "linkedom"
import { escape, markup, preformatted } from "../../../src/cli/page/Markup.ts"
import { clipped } from "../../../src/domain/text/Bytes.ts"
import { everything, hostile } from "./pages.ts"

const parsed = (text: string) => {
  const { document } = parseHTML(`<html><body>${markup`<p title="${text}">${text}</p>`.html}</body></html>`)
  return { document, paragraph: document.querySelector("p") }
}

/** What must not stand in a page as itself, beside the characters that markup is made of. */
const acts = /[<>"'\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]|&(?!(?:amp|lt|gt|quot|#39);)/gu
const allowed = ["\n", "\t", "\u200c", "\u200d", "\u00ad"]

describe("escape", () => {
  const cases: ReadonlyArray<readonly [rule: string, text: string, escaped: string]> = [
    ["leaves plain text", "Größe: 50 % – 語 😀", "Größe: 50 % – 語 😀"],
    ["leaves line breaks and tabs", "a\n\tb", "a\n\tb"],
    ["leaves what joins letters and emoji", "👩‍👩‍👧 می‌خواهم a\u00adb", "👩‍👩‍👧 می‌خواهم a\u00adb"],
    ["escapes what markup is made of", `<a b="c" d='e'>&`, "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;"],
    ["escapes references once", "&lt;", "&amp;lt;"],
    ["shows controls as terminals name them", "\u0000\u001b[0m\u007f\r", "⟨^@⟩⟨^[⟩[0m⟨^?⟩⟨^M⟩"],
    ["names what changes the order", "\u202ea\u2069", "⟨U+202E⟩a⟨U+2069⟩"],
    ["names what cannot be seen", "\u200b\ufeff\u{e0041}", "⟨U+200B⟩⟨U+FEFF⟩⟨U+E0041⟩"],
    ["names the other line ends", "\u0085\u2028\u2029", "⟨U+0085⟩⟨U+2028⟩⟨U+2029⟩"],
    ["names halves of pairs", "\ud83d\ude00\ud83d", "😀⟨U+D83D⟩"],
    ["names bytes that were no text", "\udc80\udcff", "⟨byte 80⟩⟨byte FF⟩"],
    ["names what is no character", "\uffff\u{1fffe}", "⟨U+FFFF⟩⟨U+1FFFE⟩"]
  ]
  for (const [rule, text, escaped] of cases) it(rule, () => assert.strictEqual(escape(text), escaped))

  it.prop("escapes anything that could act", { text: Schema.String }, ({ text }) => {
    for (const each of [text, `${text}${everything}`, [...everything].reverse().join("") + text]) {
      assert.deepStrictEqual(
        (escape(each).match(acts) ?? []).filter((one) => !allowed.includes(one)),
        []
      )
      assert.isTrue(escape(each).isWellFormed())
    }
  })
})

it.each(Object.entries(hostile))("markup keeps %s as text, in texts and in attributes", (_name, text) => {
  const { document, paragraph } = parsed(text)
  assert.deepStrictEqual(
    [...document.querySelectorAll("body *")].map((element) => element.tagName),
    ["P"]
  )
  assert.deepStrictEqual([...(paragraph?.attributes ?? [])].length, 1)
  assert.strictEqual(paragraph?.textContent, paragraph?.getAttribute("title"))
})

describe("preformatted", () => {
  const cases: ReadonlyArray<readonly [rule: string, text: string, html: string]> = [
    ["has a line break that parsers drop", "a", "<pre>\na</pre>"],
    ["keeps a first line break", "\na", "<pre>\n\na</pre>"],
    ["keeps carriage returns at the ends of lines, unseen", "a\r\nb\rc", "<pre>\na&#13;\nb⟨^M⟩c</pre>"],
    ["escapes", "</pre>", "<pre>\n&lt;/pre&gt;</pre>"]
  ]
  for (const [rule, text, html] of cases) it(rule, () => assert.strictEqual(preformatted(text).html, html))
})

describe("clip", () => {
  it("leaves short texts unchanged", () => assert.strictEqual(clipped("abc", 3), "abc"))
  it("marks the omission", () => assert.strictEqual(clipped("abcd", 3), "abc…"))
  it("splits no character", () => assert.strictEqual(clipped("ab😀d", 3), "ab…"))
})
