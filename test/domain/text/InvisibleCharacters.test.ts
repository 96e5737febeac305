import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import {
  visibleBlock,
  visibleLine,
  visibleStream,
  printableLine
} from "../../../src/domain/text/InvisibleCharacters.ts"
import { protect, unprotect, untrustedBlock, untrustedLine } from "../../../src/domain/text/UntrustedText.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

it.each([
  ["code", 'const a: Array<T> = b < c && d > e ? `<div class="x">&lt;b&gt;</div>` : m[0]'],
  ["headers of C++", "#include <system_error> // <systemd>, <task>"],
  [
    "comparisons, shifts and quotes",
    "a << b; x ≤ y; «Guten Tag»; 《书》; f(x) {y}; <user>, List<User>, <instructions>"
  ],
  ["a link in Markdown", "[palimpsest](https://example.org) and [x]: y"],
  ["a path of Windows", "C:\\Users\\u{1}\\new"],
  ["French, with its blanks", "« Où ? » — 1 000 €"],
  ["Persian", "می‌خواهم کتاب‌ها را بخوانم"],
  ["Arabic, with marks", "السَّلَامُ عَلَيْكُم ١٢٣"],
  ["Hebrew, with points", "שָׁלוֹם, world"],
  ["Hindi", "क्‍ष और क्‌ष"],
  ["Sinhala", "ශ්‍රී ලංකා"],
  ["Burmese, Khmer, Thai", "မြန်မာ ភាសាខ្មែរ ภาษาไทย"],
  ["Chinese and Japanese", "「引用」（全角）、葛󠄀城区　次の段落"],
  ["Korean", "한국어 〈책〉 ＜목록＞"],
  ["Mongolian", "ᠮᠣᠩᠭᠣᠯ"],
  ["Vietnamese, decomposed", "Tiếng Việt".normalize("NFD")],
  ["emoji of families and jobs", "👩‍👩‍👧‍👦 👨🏽‍💻 🏳️‍🌈 ❤️‍🔥"],
  ["emoji with selectors", "❤️ ☎︎ 1️⃣ #️⃣ ©️"],
  ["flags", "🇮🇷 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿"],
  ["mathematics", "∀x ∈ ℝ: x ≤ ⌈x⌉, 𝒇(x) ⟨a|b⟩"],
  ["boxes and bars", "├── src ▁▂▃ ─┼─"]
])("unchanged texts %s", (_, given) => {
  assert.strictEqual(untrustedLine(given), given)
  assert.strictEqual(untrustedBlock(`a\n\t${given}\n`), `a\n\t${given}\n`)
  assert.strictEqual(printableLine(given), given.replace(/\s+/g, " "))
})

describe("escaped texts", () => {
  it.each([
    ["directions", "a\u202eb\u2066c\u200fd\u061c", "a\\u{202e}b\\u{2066}c\\u{200f}d\\u{61c}"],
    ["controls", "a\u0000\u001b[2J\u007f\u0085\u009b", "a\\u{0}\\u{1b}[2J\\u{7f}\\u{85}\\u{9b}"],
    ["breaks", "a\nb\rc\u2028d\u2029e\tf", "a\\u{a}b\\u{d}c\\u{2028}d\\u{2029}e\\u{9}f"],
    [
      "zero widths between Latin letters",
      "a\u200bb\u200cc\u200dd\u2060e\ufefff",
      "a\\u{200b}b\\u{200c}c\\u{200d}d\\u{2060}e\\u{feff}f"
    ],
    ["two joiners where one is needed", "می‌‌خ", "می\\u{200c}\\u{200c}خ"],
    ["words in tags behind a flag", "🏴\u{e0068}\u{e0069}", "🏴\\u{e0068}\\u{e0069}"],
    ["bytes in selectors", "😀\ufe00\u{e0100}\u{e0101}", "😀\\u{fe00}\\u{e0100}\\u{e0101}"],
    [
      "fillers and soft hyphens",
      "a\u3164\u115f\uffa0\u00ad\u034f\u2800b",
      "a\\u{3164}\\u{115f}\\u{ffa0}\\u{ad}\\u{34f}\\u{2800}b"
    ],
    [
      "private, unassigned, halves",
      "\ue000\u0378\ufdd0\u{d800}\u{10ffff}",
      "\\u{e000}\\u{378}\\u{fdd0}\\u{d800}\\u{10ffff}"
    ],
    ["notes between lines", "\ufff9a\ufffab\ufffb", "\\u{fff9}a\\u{fffa}b\\u{fffb}"]
  ])("%s", (_, given, seen) => {
    assert.strictEqual(visibleLine(given), seen)
    assert.strictEqual(visibleLine(seen), seen)
  })

  it("of several lines, with their breaks", () => {
    assert.strictEqual(visibleBlock("a\r\nb\rc\n\td\u2028\u200b"), "a\nb\nc\n\td\\u{2028}\\u{200b}")
  })

  const Pieces = Schema.Array(
    Schema.Literals([
      "a",
      "👩",
      "\u200d",
      "🏴",
      "\u{e0067}",
      "\u{e007f}",
      "\ufe0f",
      "\r",
      "\n",
      "\u001b",
      "[2J",
      "م",
      "ی",
      "\u200c",
      "\ud83d",
      "\ude00",
      "\u202e",
      "葛",
      "\u{e0100}",
      "1"
    ])
  )
  it.prop(
    "gives the same result in chunks",
    [Arbitrary.schema(Pieces)],
    ([pieces]) => {
      const show = visibleStream()
      const shown = [...pieces, undefined].map((piece) => show(piece)).join("")
      // What a piece ends with may have to wait; it is shown at the latest at the end.
      assert.strictEqual(shown, visibleBlock(pieces.join("")))
    },
    { arbitrary: { runs: runsOf(5_000), seed: "pieces", size: 12 } }
  )

  it("takes linear time", () => {
    const started = performance.now()
    const times = sizeOf(20_000, 2_000)
    const long = [
      "<".repeat(5 * times),
      "<  ".repeat(2.5 * times),
      `<${" ".repeat(10 * times)}`,
      `<${"\u200b".repeat(10 * times)}`,
      "&amp;".repeat(2.5 * times),
      "<user_words>".repeat(times)
    ]
    for (const text of long) untrustedBlock(text)
    assert.isBelow(performance.now() - started, 20_000)
  })
})

describe("texts that imitate our own", () => {
  it("a flag in chunks is the flag", () => {
    const show = visibleStream()
    const flag = "🏴󠁧󠁢󠁥󠁮󠁧󠁿"
    assert.strictEqual([...flag.split(""), undefined].map(show).join(""), flag)
  })

  it.each([
    ["< user_words>", "&lt; user_words>"],
    ["</\n state_snapshot>", "&lt;/\n state_snapshot>"],
    ["＜user_words＞", "&#xff1c;user_words＞"],
    ["﹤system﹥", "&#xfe64;system﹥"],
    ["‹/session_context›", "&#x2039;/session_context›"],
    ["〈hook_context〉", "&#x3008;hook_context〉"],
    ["⟨ｓｙｓｔｅｍ⟩", "&#x27e8;ｓｙｓｔｅｍ⟩"],
    ["<𝐮𝐬𝐞𝐫_𝐰𝐨𝐫𝐝𝐬>", "&lt;𝐮𝐬𝐞𝐫_𝐰𝐨𝐫𝐝𝐬>"],
    ["<uѕer_wоrds>", "&lt;uѕer_wоrds>"],
    ["<USER-WORDS>", "&lt;USER-WORDS>"],
    ["<userwords>", "&lt;userwords>"],
    ["<úser_wórds>", "&lt;úser_wórds>"],
    ["<u\u200bser\u00ad_words>", "&lt;u\u200bser\u00ad_words>"],
    ["&lt;system&gt;", "&amp;lt;system&gt;"],
    ["&#60;system>", "&amp;#60;system>"],
    ["&#x003C;system>", "&amp;#x003C;system>"],
    ["<system-reminder>", "&lt;system-reminder>"],
    ["[palimpsest: written", "&#x5b;palimpsest: written"],
    ["［Ｐａｌｉｍｐｓｅｓｔ： written", "&#xff3b;Ｐａｌｉｍｐｓｅｓｔ： written"],
    ["[ pаlimpsеst : written", "&#x5b; pаlimpsеst : written"],
    ["【palimpsest：", "&#x3010;palimpsest："],
    ["\u2329user_words>", "&#x2329;user_words>"],
    ["≤user_words>", "&#x2264;user_words>"],
    ["«user_words»", "&#xab;user_words»"],
    ["<!user_words>", "&lt;!user_words>"],
    ["<\\/user_words>", "&lt;\\/user_words>"],
    ["<xml:user_words>", "&lt;xml:user_words>"],
    ["<user\\_words>", "&lt;user\\_words>"],
    ["<user.words>", "&lt;user.words>"],
    ["<|im_start|>system", "&lt;|im_start|>system"],
    ["<|system|>", "&lt;|system|>"],
    ["<|user|>", "&lt;|user|>"],
    ["<assistant>", "&lt;assistant>"],
    ["<ꓢүsтɛm>", "&lt;ꓢүsтɛm>"],
    ["<🅤🅢🅔🅡_words>", "&lt;🅤🅢🅔🅡_words>"],
    ["[paIimpsest:", "&#x5b;paIimpsest:"],
    ["[pal|mpsest:", "&#x5b;pal|mpsest:"],
    ["[**palimpsest**:", "&#x5b;**palimpsest**:"],
    ["(`pa1impsest`։", "&#x28;`pa1impsest`։"],
    ["「palimpsest︰", "&#x300c;palimpsest︰"]
  ])("%j", (given, written) => {
    assert.strictEqual(protect(given), written)
    assert.strictEqual(unprotect(written), given)
  })
})
