import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { serialize } from "node:v8"
import { RepeatedText, type RepetitionLimits } from "../../../src/domain/agent/RepeatedText.ts"
import { runsOf } from "../../support/runs.ts"

/** The number of characters after which a repetition is told of, the text cut by `sizes` in turn; 0: never. */
const foundAt = (text: string, sizes: ReadonlyArray<number> = [1], given: Partial<RepetitionLimits> = {}): number => {
  const detector = new RepeatedText(given)
  for (let at = 0, n = 0; at < text.length; n += 1) {
    const size = Math.max(1, sizes[n % sizes.length] ?? 1)
    const repetition = detector.push(text.slice(at, at + size))
    if (repetition !== undefined) return at + repetition.end
    at += size
  }
  return 0
}

const found = (text: string, size = 7): boolean => foundAt(text, [size]) > 0

const table = /^\s*[|│┃║]$/
const anew = /^\s*(?:>|#+\s|\d+[.)]\s|[-*+•‣◦]\s)$/
const divider = /^\s*[-*+_=|\u2500-\u257f.·…][-*+_=|\u2500-\u257f.·…\s]*$/
const open = /^\s*(?:#*|\d+[.)]?|[•‣◦])$/

/** The same rules with a substring at each place: slow, and as plain as can be. */
const naive = (
  text: string,
  { chunk: size = 50, history = 5_000, times = 10 }: Partial<RepetitionLimits> = {}
): number => {
  let tracked = ""
  let line = ""
  let kind: "open" | "plain" | "table" = "open"
  let ticks = 0
  let inCode = false
  const repeats = (): boolean => {
    if (tracked.length < size) return false
    const chunk = tracked.slice(-size)
    const places: Array<number> = []
    for (let at = tracked.indexOf(chunk); at >= 0; at = tracked.indexOf(chunk, at + 1)) places.push(at)
    const last = places.slice(-times)
    const first = last[0] ?? 0
    if (last.length < times || ((last.at(-1) ?? 0) - first) / (times - 1) > 5 * size) return false
    const between = last.slice(1).map((to, n) => tracked.slice(last[n], to))
    return new Set(between).size <= Math.floor(times / 2)
  }
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i] ?? ""
    if (character === "`") {
      ticks += 1
      if (ticks % 3 === 0) {
        inCode = !inCode
        tracked = ""
        kind = "plain"
        continue
      }
      if (inCode || kind === "table") continue
      kind = "plain"
    } else {
      ticks = 0
      if (inCode) continue
      if (character === "\n") {
        const isTable = kind === "table"
        line = ""
        kind = "open"
        if (isTable) continue
      } else if (kind === "table") {
        continue
      } else if (kind === "open") {
        line += character
        if (table.test(line) || anew.test(line)) {
          kind = table.test(line) ? "table" : "plain"
          tracked = ""
          continue
        }
        if (divider.test(line)) {
          const count = line.replace(/\s/g, "").length
          if (count === 3 && character.trim() !== "" && !/[.·…]/.test(character)) tracked = ""
          if (count >= 3) continue
        } else if (!open.test(line)) {
          kind = "plain"
        }
      }
    }
    tracked = `${tracked}${character}`.slice(-Math.max(history, times * size))
    if (repeats()) return i + 1
  }
  return 0
}

const sentence = "I will now look at the file again to see what is in it. "
const fifty = "This is the very text that has just fifty letters."

describe("repeated content", () => {
  /** Characters that do not repeat themselves, the first and the last of them others for each number. */
  const filler = (n: number, length: number) => {
    const letter = String.fromCharCode(97 + n)
    return `${letter}${Array.from({ length }, (_, at) => at * (n + 7))
      .join(" ")
      .slice(0, length - 2)}${letter}`
  }
  /** Lines that differ, with a chunk in common at their beginning. */
  const lines = (count: number, kinds: number, between: number) =>
    Array.from({ length: count }, (_, n) => `${fifty}${filler(n % kinds, between)}`).join("")

  const cases: ReadonlyArray<readonly [rule: string, text: string, expected: boolean]> = [
    ["ten times the same 50 characters are a loop", fifty.repeat(10), true],
    ["nine times are none", fifty.repeat(9), false],
    ["ten times on average 250 characters apart are a loop", lines(10, 1, 200), true],
    ["farther apart they are none", lines(10, 1, 201), false],
    ["five different texts between them are a loop", lines(30, 5, 40), true],
    ["more than five are a list with a common beginning", lines(60, 6, 40), false],
    ["one sentence over and over is a loop", sentence.repeat(20), true],
    ["a paragraph over and over is a loop", `${sentence}But first I think about it. Then I see.\n`.repeat(12), true],
    ["one character over and over is a loop", "a".repeat(100), true],
    ["emoji over and over are a loop", "👩‍👩‍👧‍👦 and 語 ".repeat(40), true],
    [
      "what repeats within code is none",
      `\`\`\`ts\n${"  doTheSameThing(again, and, again)\n".repeat(30)}\`\`\`\n`,
      false
    ],
    ["what repeats after code counts from there", `\`\`\`ts\nx\n\`\`\`\n${sentence.repeat(12)}`, true],
    ["a code block between begins anew", `${fifty.repeat(6)}\n\`\`\`\nx\n\`\`\`\n${fifty.repeat(6)}`, false],
    ["two fences on one line open and close", `\`\`\`a\`\`\` ${sentence.repeat(12)}`, true],
    ["single backticks are text", `\`loadSettings\` is called and \`loadSettings\` is called again. `.repeat(12), true],
    ["rows of a table are none", `| ${fifty} | ${fifty} |\n`.repeat(40), false],
    ["a fence within a row opens code", `| a \`\`\`\n${sentence.repeat(12)}`, false],
    ["backticks within code are none", `\`\`\`\n${"`a` ".repeat(300)}`, false],
    ["nor are those within a row", `| ${"`a` ".repeat(300)}`, false],
    ["nor is a row of any width", `|${"---|".repeat(400)}\n`, false],
    ...["│", "┃", "║"].map((edge): [string, string, boolean] => [
      `nor a table drawn with lines: ${edge}`,
      `${edge} ${fifty} ${edge} ${fifty} ${edge}\n├────┼────┤\n`.repeat(40),
      false
    ]),
    ["items of a list begin anew", `- ${fifty}\n`.repeat(40), false],
    ["so do those with stars, crosses and dots", `* ${fifty}\n+ ${fifty}\n  • ${fifty}\n`.repeat(20), false],
    ["so do numbered ones", `1. ${fifty}\n2) ${fifty}\n`.repeat(20), false],
    ["so do headings", `## ${fifty}\n`.repeat(40), false],
    ["so do quotes", `> ${fifty}\n`.repeat(40), false],
    [
      "dividers are none, however long",
      `${"-".repeat(400)}\n${"=".repeat(400)}\n${"─".repeat(400)}\n`.repeat(5),
      false
    ],
    // Gemini CLI lets them pass where a piece of the stream holds nothing else.
    ["400 dots in a row are none", ".".repeat(400), false],
    ["nor are rows of progress", `${".".repeat(72)}\n`.repeat(20), false],
    ["a page full of rows of dots is one", `${".".repeat(72)}\n`.repeat(40), true],
    ["nor dots between spaces, and those of another kind", `. · …${" .".repeat(400)}\n`, false],
    ["words between rows of dots count all the same", `...\n${sentence}\n`.repeat(12), true],
    [
      "and so do words that dots lead into",
      `... and so on, and so on, and so on it goes. ${sentence}\n`.repeat(12),
      true
    ],
    ["dividers begin anew", `${fifty}\n---\n`.repeat(40), false],
    ["within one item of a list words count", `- ${sentence.repeat(12)}`, true],
    ["bold words at the beginning of a line make no item", `**Note** ${sentence}\n`.repeat(12), true],
    ["a number at the beginning of a line makes no item", `2026 was a year. ${sentence}\n`.repeat(12), true],
    ["a sharp that is no heading makes none", `#hash ${sentence}\n`.repeat(12), true]
  ]
  it.each(cases)("%s", (_, text, expected) => {
    assert.strictEqual(found(text), expected)
    assert.strictEqual(naive(text) > 0, expected, "as the plain rules say")
  })

  it("names the repeated text", () => {
    const repetition = new RepeatedText().push(fifty.repeat(20))
    assert.deepStrictEqual(repetition, { text: fifty, times: 10, end: 500 })
  })

  it("dropped history no longer counts, and a code block stays open", () => {
    const detector = new RepeatedText()
    detector.push(fifty.repeat(9))
    detector.forget()
    assert.isUndefined(detector.push(fifty.repeat(9)))
    detector.push("\n```\n")
    detector.forget()
    assert.isUndefined(detector.push(fifty.repeat(30)))
    detector.reset()
    assert.isDefined(detector.push(fifty.repeat(30)))
  })

  it("between two texts it holds no memory for them", () => {
    const detector = new RepeatedText()
    const size = () => serialize(detector).byteLength
    detector.push(fifty)
    assert.isAbove(size(), 100_000)
    detector.reset()
    assert.isBelow(size(), 2_000)
  })

  it("the number of repetitions can be set", () => {
    for (const times of [2, 3, 5, 20, 200]) {
      assert.strictEqual(foundAt(fifty.repeat(times - 1), [1], { times }), 0)
      assert.strictEqual(foundAt(fifty.repeat(times), [1], { times }), times * fifty.length)
    }
  })

  it("the chunk length can be set", () => {
    const digits = "0123456789"
    for (const chunk of [1, 2, 7, 10]) {
      assert.strictEqual(foundAt(digits.repeat(10), [1], { chunk }), chunk < 2 ? 0 : 90 + chunk, `${chunk} characters`)
      assert.strictEqual(foundAt("ab".repeat(40), [1], { chunk }), 18 + chunk, `${chunk} characters`)
    }
    for (const chunk of [100, 500]) assert.strictEqual(foundAt(filler(1, chunk).repeat(9), [7], { chunk }), 0)
    for (const chunk of [100, 500]) assert.isAbove(foundAt(filler(1, chunk).repeat(10), [7], { chunk }), 9 * chunk)
  })

  it("a blank behind two marks is a part of what repeats", () => {
    const limits = { chunk: 3, history: 60 }
    const text = ".- a\n".repeat(20)
    assert.strictEqual(foundAt(text, [1], limits), naive(text, limits))
    assert.isAbove(foundAt(text, [1], limits), 0)
  })

  it("the history can be too short for some loops", () => {
    const far = lines(10, 1, 200)
    assert.isTrue(foundAt(far, [7], { history: 2_300 }) > 0)
    assert.strictEqual(foundAt(far, [7], { history: 2_299 }), 0)
    assert.isTrue(foundAt(fifty.repeat(10), [7], { history: 2_299 }) > 0)
  })

  it("a history too short for any loop is lengthened", () => {
    for (const history of [1, 49, 50, 499]) {
      assert.strictEqual(foundAt(fifty.repeat(10), [1], { history }), 500, `${history} characters`)
      assert.strictEqual(foundAt(`${fifty}x`.repeat(10), [7], { history }), 0, `${history} characters`)
    }
  })

  it("excessive settings are limited", () => {
    const huge = { times: 1e9, chunk: 1e9, history: 1e9 }
    assert.strictEqual(foundAt("a".repeat(1_198), [1], huge), 0)
    assert.strictEqual(foundAt("a".repeat(1_199), [1], huge), 1_199)
    const none = { times: 0, chunk: 0, history: 0 }
    assert.strictEqual(foundAt("aa", [1], none), 2)
  })
})

describe("texts that users reported as false alarms", () => {
  const many = Array.from({ length: 300 }, (_, n) => n)
  const cases: ReadonlyArray<readonly [what: string, text: string]> = [
    [
      "a table without a left edge",
      many.map((n) => `Part${n}.ts | passed | the same remark for each of all of these files here\n`).join("")
    ],
    [
      "a log",
      many.map((n) => `2026-01-01 12:${n} ERROR the connection to the database was refused, trying again\n`).join("")
    ],
    [
      "files with a long path in common",
      many.map((n) => `/home/someone/work/project/packages/library/source/domain/File${n}.ts is done\n`).join("")
    ],
    [
      "a poem with a refrain",
      many
        .map(
          (n) =>
            `Verse ${n} of it goes like this and that ${"la ".repeat(n % 17)}\nAnd so we sing the very same refrain of fifty characters again\n`
        )
        .join("")
    ],
    ["a divider after each of many lines", many.map(() => `${fifty}\n${"=".repeat(80)}\n`).join("")]
  ]
  it.each(cases)("%s", (_, text) => assert.strictEqual(foundAt(text, [13]), 0))
})

const fragments = [
  fifty,
  sentence,
  "a",
  "b",
  "ab ",
  " ",
  "\t",
  "\n",
  "`",
  "```",
  "- ",
  "* ",
  "1. ",
  "12",
  "| a ",
  "---",
  "=",
  "> ",
  "# ",
  "•",
  "x1 ",
  "y2 ",
  `${fifty}\n`,
  `${fifty}x`,
  `${fifty}${"q".repeat(190)}`,
  "The quick brown fox jumps over the lazy dog, and then it"
]
const texts = Schema.Array(
  Schema.Struct({
    which: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: fragments.length - 1 })),
    other: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: fragments.length - 1 })),
    times: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 13 }))
  })
)
const numbers = Schema.Struct({
  times: Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 14 })),
  chunk: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 120 })),
  // A history holds at least one chunk.
  history: Schema.Int.check(Schema.isBetween({ minimum: 120, maximum: 3_000 }))
})
const sizes = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 70 })))
const built = (parts: typeof texts.Type): string =>
  parts.map(({ other, times, which }) => `${fragments[which]}${fragments[other]}`.repeat(times)).join("")

describe("repeated content in any text", () => {
  it.effect.prop(
    "is detected at the same character as by the plain rules",
    [texts],
    ([parts]) =>
      Effect.sync(() => {
        const text = built(parts).slice(0, 6_000)
        assert.strictEqual(foundAt(text), naive(text))
      }),
    { arbitrary: { runs: runsOf(300) } }
  )

  it.effect.prop(
    "is detected there with other settings, too",
    [texts, numbers],
    ([parts, given]) =>
      Effect.sync(() => {
        const text = built(parts).slice(0, 4_000)
        assert.strictEqual(foundAt(text, [1], given), naive(text, given))
      }),
    { arbitrary: { runs: runsOf(300) } }
  )

  it.effect.prop(
    "is detected regardless of how the stream is cut",
    [texts, sizes],
    ([parts, cuts]) =>
      Effect.sync(() => {
        const text = built(parts)
        assert.strictEqual(foundAt(text, cuts), new RepeatedText().push(text)?.end ?? 0)
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )
})
