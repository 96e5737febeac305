import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { call, outputText, type Part, response, text } from "../../src/domain/Content.ts"
import { defaultLimit, estimateText, partTokens, textTokens, tokenLimit } from "../../src/domain/Tokens.ts"
import * as Work from "../../src/domain/Work.ts"

const ofPart = (part: Part): number => Work.runSync(partTokens(part, outputText(part)))
const ofText = (value: string): number => Work.runSync(textTokens(value))

const bytes = Uint8Array.from({ length: 3_000 }, (_, index) => (index * 7_919 + (index >> 3)) % 256)
const classes: ReadonlyArray<readonly [name: string, sample: string]> = [
  ["English", "The quick brown fox jumps over the lazy dog, and then it goes home. ".repeat(40)],
  ["German", "Die Donaudampfschifffahrtsgesellschaft hat ihre Schiffe überall und für immer verkauft. ".repeat(30)],
  ["Russian", "Съешь же ещё этих мягких французских булок, да выпей чаю. ".repeat(30)],
  ["Arabic", "نص عربي طويل للاختبار هنا لمعرفة عدد الرموز. ".repeat(30)],
  ["Hebrew", "שועל חום מהיר קופץ מעל הכלב העצלן. ".repeat(30)],
  ["Hindi", "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर से कूदती है। ".repeat(20)],
  ["Chinese", "快速的棕色狐狸跳过了懒狗，然后回家了。".repeat(40)],
  ["Japanese", "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。".repeat(30)],
  ["Korean", "빠른 갈색 여우가 게으른 개를 뛰어넘어 집으로 갔습니다. ".repeat(30)],
  ["emoji", "😀🎉🚀🔥👍".repeat(40)],
  ["mathematics", "∀x∈ℝ: ∃y≥x², ∑∞ √2 ≈ 1.414 → ⇒ ".repeat(30)],
  [
    "code",
    'const parse = (text: string): Date | undefined => {\n  return text === "" ? undefined : new Date(text)\n}\n'.repeat(
      20
    )
  ],
  ["camel case", "getElementByIdFromRegistry handleRequestAnimationFrame ".repeat(30)],
  ["capitals", "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG. ".repeat(30)],
  ["JSON", JSON.stringify(Array.from({ length: 50 }, (_, id) => ({ id, name: `item-${id}`, ok: true })))],
  ["a log", "2026-02-09T12:34:56.789Z INFO [worker-3] processed 128 items in 42ms\n".repeat(40)],
  ["Markdown", "- **bold** and `code`\n- [link](https://example.com/a/b)\n\n| a | b |\n|---|---|\n".repeat(30)],
  ["a box of lines", "┌──────┬──────┐\n│ a    │ b    │\n└──────┴──────┘\n".repeat(30)],
  ["digits", "31415926535897932384626433832795028841971693993751".repeat(20)],
  ["hexadecimal", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 ".repeat(20)],
  ["base64", Buffer.from(bytes).toString("base64")],
  ["one long word", "a".repeat(3_000)],
  ["indentation", `${" ".repeat(24)}x\n`.repeat(200)],
  ["blank columns", `${" ".repeat(20_000)}\n`],
  ["blank lines", "\n".repeat(20_000)]
]

describe("the estimate", () => {
  it.each(classes)("%s: between half and twice what a real vocabulary takes", (_, sample) => {
    const real = countTokens(sample)
    const estimate = estimateText(sample)
    assert.isAtLeast(estimate, real / 2)
    assert.isAtMost(estimate, real * 2)
  })

  it("of everything together: within a fifth", () => {
    const everyday = classes.slice(0, 18).map(([, sample]) => sample)
    const real = everyday.reduce((sum, sample) => sum + countTokens(sample), 0)
    const estimate = everyday.reduce((sum, sample) => sum + estimateText(sample), 0)
    assert.isAtLeast(estimate, real * 0.8)
    assert.isAtMost(estimate, real * 1.2)
  })

  it("of nothing is nothing, of something is something", () => {
    assert.strictEqual(estimateText(""), 0)
    for (const one of ["a", "1", ".", "é", "中", "\ud83d\ude00", "\n"]) assert.isAtLeast(estimateText(one), 1, one)
  })

  const Text = Schema.Array(
    Schema.Union([Schema.String, Schema.Literals(["word", " ", "\n", "camelCase", "42", "é", "中文", "😀", "--", "X"])])
  )
  it.prop(
    "two texts take about what they take together: never more, save for one run that is cut",
    [Text, Text],
    ([a, b]) => {
      const [left, right] = [a.join(""), b.join("")]
      const together = estimateText(left + right)
      const apart = estimateText(left) + estimateText(right)
      assert.isAtMost(Math.abs(together - apart), 3)
    },
    { arbitrary: { runs: 1_000, seed: "additive" } }
  )

  it.prop(
    "more text never takes less, but for a run that changes its kind",
    [Text, Text],
    ([a, b]) => {
      assert.isAtLeast(estimateText(a.join("") + b.join("")), estimateText(a.join("")) - 1)
    },
    { arbitrary: { runs: 1_000, seed: "monotone" } }
  )

  it.prop(
    "in slices it is the same as at once",
    [Text],
    ([a]) => assert.strictEqual(ofText(a.join("")), estimateText(a.join(""))),
    {
      arbitrary: { runs: 500, seed: "sliced" }
    }
  )

  it("in slices it is the same as at once, over many slices", () => {
    for (const sample of ["word ", "aB3-", "a", "7", "中é", " ", "😀x"]) {
      const long = sample.repeat(Math.ceil(1_000_000 / sample.length))
      assert.strictEqual(ofText(long), estimateText(long), JSON.stringify(sample))
    }
  })

  it("says how much it did, in slices that are short", () => {
    const long = "word ".repeat(200_000)
    const steps = [...textTokens(long)]
    assert.strictEqual(
      steps.reduce((sum, step) => sum + step, 0),
      long.length
    )
    assert.isTrue(steps.every((step) => step <= 300_000))
  })
})

describe("parts", () => {
  it("a text is its text", () => {
    assert.strictEqual(ofPart(text("Hello there")), estimateText("Hello there"))
    assert.strictEqual(ofPart({ text: "Hello there", thought: true }), estimateText("Hello there"))
  })

  it("a response that is one text counts as that text, not as its JSON", () => {
    const lines = 'a "quoted"\n\tline\n'.repeat(100)
    const frame = ofPart(response("read", { output: "" }))
    assert.strictEqual(ofPart(response("read", { output: lines })) - frame, estimateText(lines))
    assert.isAbove(ofPart(response("read", { output: lines, more: 1 })) - frame, estimateText(lines))
  })

  it("a call counts its name and its arguments", () => {
    const small = ofPart(call("read", { path: "a" }))
    const large = ofPart(call("read", { path: "a".repeat(3_000) }))
    assert.isAbove(small, 0)
    assert.isAbove(large - small, 300)
    assert.isAbove(ofPart(call("a_much_longer_name_of_a_tool", { path: "a" })), small)
    assert.isAbove(ofPart(call("read", undefined)), 0)
  })

  it("parts within a response count", () => {
    const part: Part = {
      functionResponse: { name: "read", response: { output: "x" }, parts: [{ text: "y".repeat(3_000) }] }
    }
    assert.isAbove(ofPart(part), ofPart(response("read", { output: "x" })) + 300)
  })

  it("media count by their kind, not by their bytes", () => {
    const image = (data: string): Part => ({ inlineData: { mimeType: "image/png", data } })
    assert.strictEqual(ofPart(image("A")), ofPart(image("A".repeat(100_000))))
    assert.isAbove(ofPart({ fileData: { mimeType: "application/pdf", fileUri: "gs://a" } }), ofPart(image("A")))
    assert.isAbove(ofPart({ inlineData: { mimeType: "audio/mp3", data: "A".repeat(100_000) } }), 0)
  })

  it("a part that nobody knows counts as its JSON", () => {
    const part: Part = { executableCode: { code: "print(1)".repeat(50) } }
    assert.strictEqual(ofPart(part), estimateText(JSON.stringify(part)))
  })
})

describe("windows", () => {
  it("spec 2: every Gemini model and every unknown one has 1,048,576 tokens", () => {
    assert.strictEqual(defaultLimit, 1_048_576)
    for (const model of [
      "gemini-2.5-pro",
      "gemini-2.5-flash",
      "gemini-3-pro-preview",
      "gemini-1.5-flash",
      "claude-x",
      ""
    ]) {
      assert.strictEqual(tokenLimit(model), 1_048_576)
    }
  })
  it("spec 2: gemma-4 has 256,000, gemini-1.5-pro 2,097,152", () => {
    assert.strictEqual(tokenLimit("gemma-4-31b-it"), 256_000)
    assert.strictEqual(tokenLimit("gemma-4-26b-a4b-it"), 256_000)
    assert.strictEqual(tokenLimit("gemini-1.5-pro"), 2_097_152)
  })
})
