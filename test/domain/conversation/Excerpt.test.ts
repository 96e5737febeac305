import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { excerpt, type Selection } from "../../../src/domain/conversation/Excerpt.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import * as Patterns from "../../../src/services/platform/Patterns.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const ten = Array.from({ length: 10 }, (_, index) => `line ${index + 1}`).join("\n")
const part = (text: string, selection: Selection) => Work.runSync(excerpt(text, selection))
const grep = async (text: string, pattern: string, selection: Selection = {}) => {
  const compiled = await Effect.runPromise(Patterns.compile(pattern, { ignoresCase: false }))
  return Work.runSync(excerpt(text, selection, compiled))
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

  it("finds matches in the lines of a range only, also those of nothing", async () => {
    for (let from = 1; from <= 10; from += 1) {
      for (let to = from; to <= 10; to += 1) {
        const { text } = await grep(ten, "^|1", { lines: [from, to] })
        const numbered = ten.split("\n").map((line, at) => `${at + 1}: ${line}`)
        assert.strictEqual(text, numbered.slice(from - 1, to).join("\n"))
      }
    }
  })

  it("ignores lines beyond the ends", () => {
    assert.strictEqual(part(ten, { lines: [0, 1] }).text, "line 1")
    assert.strictEqual(part(ten, { lines: [9, 99] }).text, "line 9\nline 10")
    assert.strictEqual(part(ten, { lines: [11, 99] }).text, "")
    assert.strictEqual(part(ten, { lines: [4, 2] }).text, "")
  })

  it("grep returns the matching lines with their numbers", async () => {
    assert.strictEqual((await grep(ten, "[13]$")).text, "1: line 1\n3: line 3")
    assert.strictEqual((await grep(ten, "nothing")).text, "")
    assert.strictEqual((await grep("a\n\nb\n", "^$")).text, "2: \n4: ")
  })

  it("grep within lines keeps the numbers of the whole text", async () => {
    assert.strictEqual(
      (await grep(ten, "^line .$", { lines: [5, 10] })).text,
      "5: line 5\n6: line 6\n7: line 7\n8: line 8\n9: line 9"
    )
    assert.strictEqual((await grep(ten, "line", { lines: [11, 20] })).text, "")
    assert.strictEqual((await grep(ten, "1", { lines: [2, 9] })).text, "")
  })

  it("grep counts the matching lines that the budget leaves out", async () => {
    assert.deepStrictEqual(await grep(ten, "line", { maxTokens: 12, lines: [2, 9] }), {
      text: "2: line 2\n3: line 3",
      totalLines: 10,
      omittedLines: 6
    })
  })

  it("grep matches also far into a long line", async () => {
    const line = `${"a".repeat(sizeOf(200_000, 4_000))}needle${"b".repeat(20_000)}`
    for (const pattern of ["needle", "^a+needle", "b{9}$", "^a.*needle.*b$"]) {
      assert.isNotEmpty((await grep(line, pattern)).text)
    }
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

  it("is made in short slices, of a text of any length", async () => {
    const length = sizeOf(20_000_000, 2_000_000)
    const pattern = await Effect.runPromise(Patterns.compile("b|x", { ignoresCase: false }))
    for (const text of ["x".repeat(length), "xy\n".repeat(length / 50), "\n".repeat(length / 10)]) {
      for (const selection of [{ maxTokens: 100 }, { lines: [2, length], maxTokens: 100 }] satisfies Array<Selection>) {
        for (const searched of [undefined, pattern]) {
          assert.isAtLeast([...excerpt(text, selection, searched)].length, text.length / 65_536)
        }
      }
    }
  })
})
