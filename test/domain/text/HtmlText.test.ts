import { assert, describe, it } from "@effect/vitest"
import { htmlText as pageText } from "../../../src/domain/text/HtmlText.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { sizeOf } from "../../support/runs.ts"

const htmlText = (html: string, at: string, most?: number) => runSync(pageText(html, at, most))

const base = "https://site.example/dir/page"

describe("the text of a page", () => {
  const cases: ReadonlyArray<readonly [rule: string, html: string, text: string]> = [
    ["nothing is nothing", "", ""],
    ["text without markup is itself", "a  b\nc", "a b c"],
    [
      "title, headings and paragraphs",
      "<html><head><title> The\n title </title><body><h1>Head</h1><p>One.</p><p>Two <b>bold</b>.",
      "The title\n\n# Head\n\nOne.\n\nTwo bold."
    ],
    ["a head that is not closed hides nothing", "<head><title>T</title><meta charset=utf-8><p>x", "T\n\nx"],
    ["items", "<ul><li>one<li>two</ul>", "- one\n- two"],
    ["rows of tables", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</table>", "| a | b\n| c"],
    [
      "links tell where they lead",
      '<a href="/x?a=1&amp;b=2">there</a>, <a href=other>near</a>',
      "there (https://site.example/x?a=1&b=2), near (https://site.example/dir/other)"
    ],
    [
      "links that lead nowhere else do not",
      '<a href="#top">up</a> <a href="javascript:x()">js</a> <a>none</a>',
      "up js none"
    ],
    ["pictures tell what they show", '<img src=x alt="A cat"><img src=y>', "[A cat]"],
    ["lines of code stay lines", "<p>x</p><pre>a\n  b &lt;c&gt;\n</pre><p>y", "x\n\na\n  b <c>\n\n\ny"],
    ["line breaks", "a<br>b<br/>c", "a\nb\nc"],
    [
      "character references",
      "&lt;b&gt; &amp;amp; &#65;&#x42; &nbsp;&euro; &unknown; &#0;&#xD800;",
      "<b> &amp; AB € &unknown; \ufffd\ufffd"
    ],
    [
      "scripts and styles are left out, whatever is in them",
      "a<script>if (x < '</div>') <p>no</p></script>b<style>p{}</style>c",
      "abc"
    ],
    ["comments and declarations are left out", "<!DOCTYPE html>a<!-- no <p> -- > no -->b<?xml x?>c", "abc"],
    [
      "what is hidden is left out",
      '<div hidden>no<div>no</div>no</div><span style="display: none">no</span><i aria-hidden="true">no</i>yes',
      "yes"
    ],
    ["an open-ended item that is hidden hides no others", "<ul><li hidden>a<li>b</ul>c", "- a\n- b\n\nc"],
    ["a sign that begins no tag is text", "1 < 2 and a<3", "1 < 2 and a<3"],
    ["a sign within a value ends no tag", '<a title="a > b" href="/x">x</a>', "x (https://site.example/x)"],
    ["a script without an end is left out", "a<script>no", "a"],
    ["a comment without an end is left out", "a<!-- no", "a"],
    ["a tag without an end is left out", "a<p no", "a"],
    ["ends without beginnings are nothing", "</div></a>a</p></li>", "a"]
  ]
  for (const [rule, html, text] of cases) it(rule, () => assert.strictEqual(htmlText(html, base), text))

  it("is the same in slices, also of texts much longer than one", () => {
    for (const text of ["word ", "x", "&amp;", "a &lt; b&#33; ", "&nosuch; "]) {
      const one = htmlText(`<p>${text}</p>`, base)
      const many = htmlText(`<p>${text.repeat(50_000)}</p>`, base)
      const space = text.endsWith(" ") ? " " : ""
      assert.strictEqual(many, Array.from({ length: 50_000 }, () => one).join(space))
    }
  })

  it("pauses often for any page, and ends soon after the requested characters", () => {
    for (const piece of ["<div>", "<a href=x>y", "<tr><td>1", "&amp;", "word ", "<!-- -->", "<script></script>", "<"]) {
      const html = piece.repeat(Math.floor(200_000 / piece.length))
      let pauses = 0
      for (const _ of pageText(html, base)) pauses += 1
      assert.isAtLeast(pauses, 6, piece)
      assert.isAtMost(htmlText(html, base, 1_000).length, 1_000 + 40_000, piece)
    }
  })

  it("takes linear time for any markup", () => {
    for (const piece of ["<", "<a ", '<a href="', "<!--", "<div hidden>", "&#", "</", "<script>", "<a href=x>", '"']) {
      assert.isBelow(htmlText(piece.repeat(sizeOf(100_000, 20_000)), base).length, 10_000_000)
    }
  })
})
