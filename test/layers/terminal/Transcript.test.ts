import { stripTerminalSequences } from "@earendil-works/pi-tui"
import { assert, describe, it } from "@effect/vitest"
import { columnsOf } from "../../../src/cli/output/Output.ts"
import * as Highlight from "../../../src/layers/terminal/Highlight.ts"
import * as Theme from "../../../src/layers/terminal/Theme.ts"
import { Transcript } from "../../../src/layers/terminal/Transcript.ts"

const theme = Theme.make(
  false,
  Highlight.make(() => {})
)
const make = () => new Transcript(theme)

const paragraphs = (count: number) =>
  Array.from({ length: count }, (_, at) =>
    at % 7 === 3
      ? `- one of ${at}\n- two\n\n`
      : at % 7 === 5
        ? `\`\`\`ts\n${`const a${at} = 1\n`.repeat(10)}\`\`\`\n\n`
        : `Paragraph ${at} with **bold** and \`code\`, long enough to be wrapped on a narrow screen.\n\n`
  ).join("")

/** The rows of an answer that comes in pieces of a length. */
const rowsOf = (text: string, length: number, width: number) => {
  const transcript = make()
  for (let at = 0; at < text.length; at += length) transcript.answer(text.slice(at, at + length))
  transcript.endAnswer()
  return transcript.render(width)
}

describe("an answer", () => {
  it.each([40, 80, 200])("looks the same in any pieces, and fits %s columns", (width) => {
    const text = paragraphs(60)
    const whole = rowsOf(text, text.length, width)
    for (const length of [7, 100, 3_000]) assert.deepStrictEqual(rowsOf(text, length, width), whole)
    for (const row of whole) assert.isAtMost(columnsOf(row), width)
  })

  it("with a long block of code shows each of its lines once, between its fences", () => {
    const lines = Array.from({ length: 1_500 }, (_, at) => `line ${at}`)
    const rows = rowsOf(`\`\`\`sh\n${lines.join("\n")}\n\`\`\`\n\nafter\n`, 50, 80)
    assert.deepStrictEqual(rows, ["```sh", ...lines, "```", "", "after"])
  })

  it.each([
    ["a numbered list", (at: number) => `${at + 1}. `, ""],
    ["a list numbered with ones", () => "1. ", ""],
    ["a list", () => "- ", ""],
    ["a loose list", () => "* ", "\n"]
  ] as const)("with %s that is long looks the same in any pieces", (_kind, marker, gap) => {
    const text = `${Array.from({ length: 400 }, (_, at) => `${marker(at)}item ${at}\n${gap}`).join("")}\nafter\n`
    const whole = rowsOf(text, text.length, 80)
    for (const length of [11, 1_000]) assert.deepStrictEqual(rowsOf(text, length, 80), whole)
  })

  it("aligns the columns of a table, also in a quote and a list, and leaves a drawn one in code as it is", () => {
    const table = ["| n | mid | left |", "|--:|:-:|---|", "| 1 | a | x |", "| 中文 | **abcde** | yy |"]
    const drawn = [
      "┌──────┬───────┬──────┐",
      "│    n │  mid  │ left │",
      "├──────┼───────┼──────┤",
      "│    1 │   a   │ x    │",
      "├──────┼───────┼──────┤",
      "│ 中文 │ abcde │ yy   │",
      "└──────┴───────┴──────┘"
    ]
    const code = ["```", "┌───┬───┬───┐", "│ a │ b │ c │", "└───┴───┴───┘", "```"]
    const text = [...code, "", ...table, "", ...table.map((row) => `> ${row}`)].join("\n")
    assert.deepStrictEqual(rowsOf(text, 9, 60), [...code, "", ...drawn, "", ...drawn.map((row) => `│ ${row}`)])
    const narrow = rowsOf("| what | sum |\n|---|--:|\n| words that wrap | 1,000 |\n", 5, 20).map(stripTerminalSequences)
    assert.include(narrow, "│ what     │   sum │")
    assert.include(narrow, "│ words    │ 1,000 │")
  })

  it("lays a table out to the width", () => {
    const rows = rowsOf("| name | what |\n|---|---|\n| 中文 | words that are wrapped in their cell |\n", 9, 30)
    for (const row of rows) assert.strictEqual(columnsOf(row), 30)
  })
})

describe("the transcript", () => {
  const card = (id: number) => ({ key: `${id}`, isRunning: false, head: `card ${id}`, body: [], more: ["one", "two"] })

  it("shows a closed card in one row, whatever its width", () => {
    const transcript = make()
    transcript.card({ ...card(1), head: "run a command of many words" })
    assert.deepStrictEqual(transcript.render(27).map(stripTerminalSequences), ["run a command of many wo… ▸"])
  })

  it("opens and closes cards", () => {
    const transcript = make()
    transcript.card(card(1))
    assert.deepStrictEqual(transcript.render(40), ["card 1 ▸"])
    transcript.toggleCards()
    assert.deepStrictEqual(transcript.render(40), ["card 1", "  one", "  two"])
  })

  it("folds a long message of the user", () => {
    const transcript = make()
    transcript.message(Array.from({ length: 50 }, (_, at) => `line ${at}`).join("\n"))
    const rows = transcript.render(40)
    assert.strictEqual(rows.length, 11)
    assert.strictEqual(rows.at(-1), "  … 40 more rows ▸")
  })

  it("forgets what has left the screen and nothing else", () => {
    const transcript = make()
    const all: Array<string> = []
    let gone = 0
    for (let at = 0; at < 500; at += 1) {
      transcript.text(`line ${at}\n`)
      all.push(`line ${at}`)
      gone += transcript.forget(20, 40)
      assert.deepStrictEqual(transcript.render(40), all.slice(gone))
      assert.isAtMost(all.length - gone, 40)
    }
  })
})
