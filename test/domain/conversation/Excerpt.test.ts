import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { excerpt, type Selection } from "../../../src/domain/conversation/Excerpt.ts"
import { parsePattern, patternProblemText } from "../../../src/domain/conversation/RecallQuery.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const ten = Array.from({ length: 10 }, (_, index) => `line ${index + 1}`).join("\n")
const part = (text: string, selection: Selection) => {
  const pattern = selection.grep === undefined ? undefined : Result.getOrThrow(parsePattern(selection.grep))
  return Work.runSync(excerpt(text, selection, pattern))
}

describe("excerpt", () => {
  it("without a selection is the whole text", () => {
    for (const text of ["", "a", "a\r\nb\n", "\uDC80\n\n", ten]) {
      assert.strictEqual(part(text, {}).text, text)
      assert.strictEqual(part(text, {}).omittedLines, 0)
    }
    assert.strictEqual(part(ten, {}).totalLines, 10)
  })

  it("counts lines from 1, both ends included", () => {
    assert.deepStrictEqual(part(ten, { lines: [2, 4] }), {
      text: "line 2\nline 3\nline 4",
      totalLines: 10,
      omittedLines: 0
    })
    assert.strictEqual(part(ten, { lines: [10, 10] }).text, "line 10")
  })

  it("ignores lines beyond the ends", () => {
    assert.strictEqual(part(ten, { lines: [0, 1] }).text, "line 1")
    assert.strictEqual(part(ten, { lines: [9, 99] }).text, "line 9\nline 10")
    assert.strictEqual(part(ten, { lines: [11, 99] }).text, "")
    assert.strictEqual(part(ten, { lines: [4, 2] }).text, "")
  })

  it("grep returns the matching lines with their numbers", () => {
    assert.strictEqual(part(ten, { grep: "[13]$" }).text, "1: line 1\n3: line 3")
    assert.strictEqual(part(ten, { grep: "nothing" }).text, "")
  })

  it("grep within lines keeps the numbers of the whole text", () => {
    assert.strictEqual(
      part(ten, { lines: [5, 10], grep: "^line .$" }).text,
      "5: line 5\n6: line 6\n7: line 7\n8: line 8\n9: line 9"
    )
  })

  it("a budget keeps whole lines from the beginning and counts the others", () => {
    const cut = part(ten, { maxTokens: 12 })
    assert.isTrue(ten.startsWith(`${cut.text}\n`))
    assert.isAtMost(estimateText(cut.text), 12)
    assert.strictEqual(cut.omittedLines, 10 - cut.text.split("\n").length)
  })

  it("cuts a first line that exceeds the budget", () => {
    const long = "word ".repeat(1_000)
    const cut = part(`${long}\nnext`, { maxTokens: 50 })
    assert.isTrue(long.startsWith(cut.text))
    assert.isAbove(cut.text.length, 100)
    assert.isAtMost(estimateText(cut.text), 50)
  })

  it("a budget of zero returns nothing", () => {
    assert.deepStrictEqual(part(ten, { maxTokens: 0 }), { text: "", totalLines: 10, omittedLines: 10 })
  })

  it("splits no character", () => {
    for (const maxTokens of [2, 3, 4, 5, 6, 7, 8, 9]) {
      assert.isTrue(part("😀".repeat(100), { maxTokens }).text.isWellFormed(), `${maxTokens} tokens`)
    }
  })

  it("a partly shown line counts as omitted", () => {
    assert.strictEqual(part("word ".repeat(1_000), { maxTokens: 50 }).omittedLines, 0)
    assert.strictEqual(part(`${"word ".repeat(1_000)}\nb\nc`, { maxTokens: 50 }).omittedLines, 2)
  })

  it.prop(
    "shows lines in order within the budget, and counts the rest",
    [Schema.Array(Schema.String), Schema.Natural, Schema.Natural, Schema.Natural],
    ([lines, a, b, budget]) => {
      const text = lines.join("\n")
      const all = text.split("\n")
      const [from, to] = [1 + (a % 12), 1 + (b % 12)]
      const { omittedLines, text: shown, totalLines } = part(text, { lines: [from, to], maxTokens: budget % 40 })
      const wanted = all.slice(from - 1, Math.max(from - 1, to))
      assert.strictEqual(totalLines, all.length)
      assert.isAtMost(estimateText(shown), budget % 40)
      assert.isTrue(wanted.join("\n").startsWith(shown))
      assert.isAtLeast(omittedLines, 0)
      assert.isAtMost(omittedLines, wanted.length)
    },
    { arbitrary: { runs: runsOf(1_000), seed: "excerpt" } }
  )
})

describe("patterns", () => {
  it("are regular expressions of Unicode", () => {
    assert.isTrue(Result.getOrThrow(parsePattern("^.$")).pattern.test("😀"))
  })
  it("reports an invalid pattern in one line", () => {
    for (const wrong of ["(", "[", "a**", "\\", "(?<n>a)(?<n>b)", "\\p{No}{2"]) {
      const message = patternProblemText(Result.getOrThrow(Result.flip(parsePattern(wrong))))
      assert.isAbove(message.length, 5)
      assert.notInclude(message, "\n")
    }
  })
  it.each(["(a+)+$", "(a|a)*b", "a.*b.*c.*d.*e", "(a)\\1{2,}(\\w+)*$"])(
    "that could take too long are refused: %s",
    (slow) => {
      assert.deepStrictEqual(parsePattern(slow), Result.fail({ _tag: "Slow" }))
    }
  )
  it("match also far into a long line", () => {
    const line = `${"a".repeat(sizeOf(20_000, 4_000))}needle${"b".repeat(20_000)}`
    for (const grep of ["needle", "a+needle", "b{9}$"]) assert.isNotEmpty(part(line, { grep }).text)
  })
  it("keep no state between uses", () => {
    const pattern = Result.getOrThrow(parsePattern("a"))
    assert.strictEqual(Work.runSync(excerpt("a\na\na", {}, pattern)).text, "1: a\n2: a\n3: a")
  })
})
