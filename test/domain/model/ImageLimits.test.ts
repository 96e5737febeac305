import { assert, describe, it } from "@effect/vitest"
import type { Part } from "../../../src/domain/content/Content.ts"
import { imageLimitsOf, oversized } from "../../../src/domain/model/ImageLimits.ts"

const mebi = 1024 * 1024

/** A PNG image of this size, whose base64 has at least so many characters. */
const png = (width: number, height: number, chars = 0) => {
  const head = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")
  const size = Buffer.alloc(8)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  const rest = Buffer.alloc(Math.max(6, Math.ceil(chars / 4) * 3 - 24))
  return { inlineData: { mimeType: "image/png", data: Buffer.concat([head, size, rest]).toString("base64") } }
}

const sizeOf = (model: string, part: Part, images = 1) => {
  const found = oversized(part, imageLimitsOf(model), images)
  return found === undefined ? undefined : [found.width, found.height]
}

describe("an image", () => {
  it.each([
    ["claude-sonnet-5", 5],
    ["gpt-5.1", 20],
    ["gemini-2.5-pro", 14],
    ["some-model", 14]
  ])("of more bytes than %s accepts is reduced, by its area", (model, limit) => {
    assert.strictEqual(imageLimitsOf(model).maxChars, limit * mebi)
    assert.isUndefined(sizeOf(model, png(1_000, 500, limit * mebi)))
    assert.deepStrictEqual(sizeOf(model, png(1_000, 500, limit * mebi + 4)), [894, 447])
  })

  it("of more pixels than Claude accepts is reduced to a side that any number of images may have", () => {
    const model = "claude-sonnet-5"
    assert.isUndefined(sizeOf(model, png(8_000, 10), 20))
    assert.deepStrictEqual(sizeOf(model, png(10, 8_001)), [2, 2_000])
    assert.isUndefined(sizeOf(model, png(2_000, 1_000), 21))
    assert.deepStrictEqual(sizeOf(model, png(4_000, 1_000), 21), [2_000, 500])
    assert.deepStrictEqual(sizeOf(model, png(1, 9_000)), [1, 2_000])
    assert.isUndefined(sizeOf("gpt-5.1", png(90_000, 10), 90))
  })

  it("is one that stands in the message itself, and states its size", () => {
    const { data } = png(9_000, 9_000).inlineData
    assert.isUndefined(sizeOf("claude-sonnet-5", { inlineData: { mimeType: "audio/wav", data } }))
    assert.isUndefined(sizeOf("claude-sonnet-5", { inlineData: { mimeType: "image/png", data: "AAAA" } }))
    assert.isUndefined(sizeOf("claude-sonnet-5", { fileData: { mimeType: "image/png", fileUri: "https://a/b" } }))
  })
})
