import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Handle } from "../../../src/domain/content/Handle.ts"
import {
  noteOnlySize,
  OutputForm,
  type OutputSize,
  defaultSize,
  mask,
  shorten
} from "../../../src/domain/conversation/ToolOutputShortening.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { runsOf } from "../../support/runs.ts"

const handle = Handle.make("h_abcdefghij")
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}`).join("\n")
const size = (rest: Partial<OutputSize>): OutputSize => ({ ...defaultSize, ...rest })
const split = (shortened: string) => {
  const [note = "", ...lines] = shortened.split("\n")
  return { note, lines }
}

it("default limits 30 lines of 1,000 characters, 4,000 of a single line, 40,000 characters, 1,000 lines", () => {
  assert.deepStrictEqual(defaultSize, {
    lastLines: 30,
    lineWidth: 1_000,
    singleLine: 4_000,
    chars: 40_000,
    lines: 1_000
  })
})

describe.each(OutputForm.literals)("%s", (form) => {
  const long = Array.from({ length: 3_000 }, (_, index) => `${index} ${"x".repeat(40)}`).join("\n")
  it("begins with a note marked as the runtime's and ends with the handle", () => {
    const { note } = split(shorten(long, handle, form))
    assert.isTrue(note.startsWith(runtimeMark))
    assert.isTrue(note.endsWith(`recall ${handle}`))
  })
  it("shows the end of the output", () => {
    assert.isTrue(shorten(long, handle, form).endsWith(long.slice(-1_000)))
  })
  it("is only the note when there is no room", () => {
    const shortened = shorten(long, handle, form, noteOnlySize)
    assert.notInclude(shortened, "\n")
    assert.include(shortened, `3000 lines, ${long.length} characters`)
    assert.isTrue(shortened.endsWith(handle))
  })
})

describe("the extent that a note states", () => {
  it.each([
    [
      "head-tail-chars",
      { chars: 101 },
      /first (\d+) and last (\d+) of (\d+) characters[^]*?\n(.*)\n\n.*\[(\d+) .*\n\n(.*)$/
    ],
    ["last-lines", { singleLine: 100 }, /last (\d+) of (\d+) characters of one line.*\n\.\.\.\n(.*)$/]
  ] as const)("is what %s shows, where characters of two units are not split", (form, given, pattern) => {
    for (const text of ["😀".repeat(300), `x${"😀".repeat(300)}`, "y".repeat(601)]) {
      const found = (pattern.exec(shorten(text, handle, form, size(given))) ?? []).slice(1)
      assert.deepStrictEqual(
        found,
        found.length === 3
          ? [String(found[2]?.length), String(text.length), found[2]]
          : [
              String(found[3]?.length),
              String(found[5]?.length),
              String(text.length),
              found[3],
              String(text.length - (found[3]?.length ?? 0) - (found[5]?.length ?? 0)),
              found[5]
            ]
      )
      assert.isNotEmpty(found)
    }
  })
})

describe("last-lines", () => {
  it("cuts no line of exactly 1,000 characters", () => {
    const lines = Array.from({ length: 31 }, () => "x".repeat(1_000))
    const { lines: shown, note } = split(shorten(lines.join("\n"), handle, "last-lines"))
    assert.notInclude(note, "each cut")
    assert.deepStrictEqual(shown.slice(-30), lines.slice(1))
  })

  it("cuts wide lines at 1,000 characters with a mark and a note", () => {
    const wide = `${"w".repeat(1_001)}\n${"v".repeat(1_000)}`
    const { lines, note } = split(shorten(wide, handle, "last-lines"))
    assert.deepStrictEqual(lines, ["...", `${"w".repeat(1_000)}... [LINE WIDTH TRUNCATED]`, "v".repeat(1_000)])
    assert.include(note, "each cut at 1000 characters")
  })

  const Line = Schema.Literals(["", "a", "bb", " ", "c".repeat(12)])
  it.prop(
    "shows exactly the last lines",
    [Schema.Array(Line), Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 }))],
    ([lines, count]) => {
      if (lines.length < 2) return
      const shortened = shorten(lines.join("\n"), handle, "last-lines", size({ lastLines: count, lineWidth: 8 }))
      assert.deepStrictEqual(split(shortened).lines, [
        "...",
        ...lines.slice(-count).map((line) => (line.length > 8 ? `${line.slice(0, 8)}... [LINE WIDTH TRUNCATED]` : line))
      ])
    },
    { arbitrary: { runs: runsOf(1_000), seed: "lines" } }
  )
})

describe("head-tail-chars", () => {
  it("shows the first 10 and last 40 of 100 characters with room for 50, and counts 50 omitted", () => {
    const text = Array.from({ length: 100 }, (_, index) => String.fromCharCode(65 + (index % 26))).join("")
    const shortened = shorten(text, handle, "head-tail-chars", size({ chars: 50 }))
    const body = shortened.slice(shortened.indexOf("\n") + 1)
    assert.strictEqual(body, `${text.slice(0, 10)}\n\n... [50 characters omitted] ...\n\n${text.slice(-40)}`)
    assert.include(split(shortened).note, "The first 10 and last 40 of 100 characters")
  })

  it("keeps a text that fits unchanged", () => {
    const text = "x".repeat(40_000)
    assert.strictEqual(shorten(text, handle, "head-tail-chars"), text)
    assert.notStrictEqual(shorten(`${text}x`, handle, "head-tail-chars"), `${text}x`)
  })
})

describe("head-tail-lines", () => {
  it("shows a fifth from the beginning and the rest from the end, with a mark between", () => {
    const { lines, note } = split(shorten(numbered(100), handle, "head-tail-lines", size({ lines: 12 })))
    const all = numbered(100).split("\n")
    assert.deepStrictEqual(lines, [...all.slice(0, 2), "... [CONTENT TRUNCATED] ...", ...all.slice(-10)])
    assert.include(note, "The first 2 and last 10 of 100 lines")
  })

  it("shows 200 and 800 of the default 1,000 lines", () => {
    assert.include(shorten(numbered(1_001), handle, "head-tail-lines"), "The first 200 and last 800 of 1001 lines")
    assert.strictEqual(shorten(numbered(1_000), handle, "head-tail-lines"), numbered(1_000))
  })

  it("shortens an output of few but wide lines too", () => {
    const wide = `${"w".repeat(5_000_000)}\n${"v".repeat(10)}`
    assert.isBelow(shorten(wide, handle, "head-tail-lines").length, wide.length)
    assert.deepStrictEqual(
      split(shorten(`\n${numbered(100)}`, handle, "head-tail-lines", size({ lines: 12 }))).lines.slice(0, 3),
      ["", "line 1", "... [CONTENT TRUNCATED] ..."]
    )
    // A blank line stays one.
    const spaced = shorten(`${"w".repeat(5_000_000)}\n\nend`, handle, "head-tail-lines")
    assert.isTrue(spaced.endsWith("\n\nend"))
  })
})

it.each(OutputForm.literals)("the shown text %s: splits no character", (form) => {
  for (const shift of ["", "x"]) {
    const text = `${shift}${"😀".repeat(3_000)}\n${shift}${"😀".repeat(3_000)}`
    for (const one of [text, text.replaceAll("\n", "")]) {
      const shortened = shorten(one, handle, form, size({ chars: 4_999, lineWidth: 999, singleLine: 3_999 }))
      assert.isTrue(shortened.isWellFormed())
    }
  }
})

describe("an old output of a command that is masked", () => {
  it("shows ten lines of each end, and 500 characters of both ends of those where they are wide", () => {
    const narrow = mask(numbered(40), handle, true).split("\n")
    assert.deepStrictEqual(narrow.slice(1, 11), numbered(10).split("\n"))
    assert.strictEqual(narrow[11], "... [20 lines] ...")
    assert.deepStrictEqual(narrow.slice(12), numbered(40).split("\n").slice(30))
    const wide = Array.from({ length: 40 }, (_, at) => `${at} `.padEnd(200, "abcd")).join("\n")
    const [head = "", tail = ""] = mask(wide, handle, true).split("\n... [20 lines] ...\n")
    assert.isTrue(head.includes(wide.slice(0, 500)) && tail.endsWith(wide.slice(-500)))
    assert.isBelow(tail.length, 1_100)
    assert.isAbove(tail.length, 1_000)
  })

  it("shows 250 characters of each end where it is no command's or has few lines", () => {
    const text = "x".repeat(300) + "y".repeat(300)
    for (const isCommand of [true, false]) {
      const masked = mask(text, handle, isCommand).split("\n")
      assert.deepStrictEqual(masked.slice(1), ["x".repeat(250), "... [100 characters] ...", "y".repeat(250)])
    }
    assert.strictEqual(mask("x".repeat(500), handle, false), "x".repeat(500))
  })
})
