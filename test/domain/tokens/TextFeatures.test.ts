import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { call, type Part, response, text } from "../../../src/domain/content/Content.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import {
  type Features,
  featuresVersion,
  partFeatures,
  sumFeatures,
  type TextClass,
  textClasses,
  textFeatures,
  totalTokens
} from "../../../src/domain/tokens/TextFeatures.ts"
import { beginning, estimatorVersion, partTokens, scan } from "../../../src/domain/tokens/Tokens.ts"

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
      response("read_file", { output: "line 1\r\nline 2\r\n".repeat(40) }, "c1"),
      { functionCall: { name: "f" } },
      { functionResponse: { name: "f", response: { output: "seen" }, parts: [examples.media] } },
      { functionResponse: { name: "f", response: [{ type: "image", source: { type: "base64", data: "AAAA" } }] } }
    ]
    for (const part of parts) assert.closeTo(totalTokens(featuresOf(part)), runSync(partTokens(part)), 1e-6)
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

/** Texts in which each character of the plane stands, and those of each class next to those of each other. */
const mixtures = (): ReadonlyArray<string> => {
  const everyUnit = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code)).join("")
  const words = Object.values(examples).flatMap((part) => (part.text ?? "").match(/.{1,7}/gsu) ?? [])
  const kinds = [
    ...words,
    ..."\t \n\r:_'/aZ9é中の한ع\u200d\ud83d\ude00",
    "\r\n",
    "0123456789abcdef".repeat(3),
    " ".repeat(90)
  ]
  let seed = 1
  const drawn = () => kinds[(seed = (Math.imul(seed, 48_271) >>> 0) % 0x7fff_ffff) % kinds.length] ?? ""
  return [everyUnit, ...Array.from({ length: 60 }, () => Array.from({ length: 120 }, drawn).join(""))]
}

it("what stored calibrations were learned with changes only with its version", () => {
  const [costs, features] = [createHash("sha256"), createHash("sha256")]
  for (const text of mixtures()) {
    let progress = beginning
    for (let at = 0; at < text.length; at += 1) {
      progress = scan(text, at, at + 1, progress)
      costs.update(`${progress.cost} `)
    }
    features.update(JSON.stringify(runSync(textFeatures(text))))
  }
  assert.deepStrictEqual(
    [estimatorVersion, costs.digest("hex").slice(0, 16), featuresVersion, features.digest("hex").slice(0, 16)],
    ["classes-3", "0f46cfda0db65e2b", 4, "4f02cdea9862c030"]
  )
})
