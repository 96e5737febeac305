import { assert, describe, it } from "@effect/vitest"
import { htmlText as pageText } from "../../../src/domain/text/HtmlText.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { corpus } from "../../support/corpus.ts"
import { sizeOf } from "../../support/runs.ts"

const htmlText = (html: string, at: string, most?: number) => runSync(pageText(html, at, most))

const base = "https://site.example/dir/page"

describe("the text of a page", () => {
  const cases = corpus<readonly [rule: string, html: string, text: string]>("html-texts")
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
      const html = piece.repeat(Math.floor(sizeOf(200_000, 100_000) / piece.length))
      let pauses = 0
      for (const _ of pageText(html, base)) pauses += 1
      assert.isAtLeast(pauses, sizeOf(6, 3), piece)
      assert.isAtMost(htmlText(html, base, 1_000).length, 1_000 + 40_000, piece)
    }
  })

  it("takes linear time for any markup", () => {
    for (const piece of ["<", "<a ", '<a href="', "<!--", "<div hidden>", "&#", "</", "<script>", "<a href=x>", '"']) {
      assert.isBelow(htmlText(piece.repeat(sizeOf(100_000, 20_000)), base).length, 10_000_000)
    }
  })
})
