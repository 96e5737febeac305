import { assert, describe, it } from "@effect/vitest"
import { call, outputText, type Part, response, text } from "../../../src/domain/content/Content.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import {
  type Features,
  partFeatures,
  sumFeatures,
  type TextClass,
  textClasses,
  totalTokens
} from "../../../src/domain/tokens/TextFeatures.ts"
import { partTokens } from "../../../src/domain/tokens/Tokens.ts"

/** A part that consists of one class of text. */
const examples: Readonly<Record<TextClass, Part>> = {
  prose: text("The old bridge is kept open while the builders mend the road beside it. ".repeat(8)),
  code: text("if (a[i] !== b[j]) { return { ...c, [d]: (e) => e.f() }; }\n".repeat(8)),
  figures: text("2026-01-02 03:04:05 17.25 4711 88 9021 3.14159\n".repeat(8)),
  hexadecimal: text("9f3c2ab47d1e0f5a6b8c9d0e1f2a3b4c5d6e7f80".repeat(4)),
  base64: text("aG9sZEtoZUJyaWRnZTlXeFo3cTJMbTVUdjBZdTFJbzRQcDZB".repeat(4)),
  latin: text("Die Straße über den Fluß wäre für müde Füße schöner, größer, kühler. ".repeat(8)),
  script: text("Старый мост остаётся открытым, пока строители чинят дорогу. ".repeat(8)),
  cjk: text("古い橋は道が直るまで開けておく。".repeat(8)),
  symbols: text("→←↑↓≤≥≠∞∑√".repeat(20)),
  emoji: text("😀👩🚀🎉".repeat(20)),
  media: { inlineData: { mimeType: "image/png", data: "AAAA" } },
  frame: call("f", {})
}
const featuresOf = (part: Part): Features => runSync(partFeatures(part))

describe("the features of a part", () => {
  it.each(textClasses)("of %s are counted as such", (name) => {
    const features = featuresOf(examples[name])
    const largest = textClasses.reduce((most, each) => (features[each] > features[most] ? each : most))
    assert.strictEqual(largest, name)
  })

  it("add up to the estimate of the part", () => {
    const parts = [
      ...Object.values(examples),
      response("read_file", { output: "line 1\r\nline 2\r\n".repeat(40) }, "c1")
    ]
    for (const part of parts)
      assert.closeTo(totalTokens(featuresOf(part)), runSync(partTokens(part, outputText(part))), 1e-6)
  })
})

it("a sum has each class of all its features, and of those before them", () => {
  const all = textClasses.map((name) => featuresOf(examples[name]))
  const before = featuresOf(examples.code)
  const [sum, more] = [sumFeatures(all), sumFeatures(all, before)]
  for (const name of textClasses) {
    const expected = all.reduce((total, features) => total + features[name], 0)
    assert.isAbove(expected, 0)
    assert.closeTo(sum[name], expected, 1e-9, name)
    assert.closeTo(more[name], expected + before[name], 1e-9, name)
  }
})
