import { assert, describe, it } from "@effect/vitest"
import { call, response, text } from "../../../src/domain/content/Content.ts"
import { blocksOf, modelBlock, resultContent, userBlock } from "../../../src/domain/transcripts/PiBlocks.ts"
import { Skipped } from "../../../src/domain/transcripts/Skipped.ts"

describe("blocks of Pi's messages", () => {
  it("hold text, calls and images, and count the rest", () => {
    const unheld = new Skipped()
    const image = { inlineData: { mimeType: "image/png", data: "AA==" } }
    const blocks = blocksOf(
      [
        userBlock(text("a")),
        userBlock(image),
        userBlock({ fileData: { fileUri: "x" } }),
        modelBlock(call("read", { path: "a" }), { id: "c1", name: "read" }),
        modelBlock(image, undefined)
      ],
      unheld
    )
    assert.deepStrictEqual(blocks, [
      { type: "text", text: "a" },
      { type: "image", data: "AA==", mimeType: "image/png" },
      { type: "toolCall", id: "c1", name: "read", arguments: { path: "a" } }
    ])
    assert.deepStrictEqual(unheld.counts, { files: 1, media: 1 })
  })

  it("hold results as text, as their list of blocks, or as JSON", () => {
    const shown = (value: Record<string, unknown>) => resultContent(response("a", value, "c"))
    assert.deepStrictEqual(shown({ output: "" }), [])
    assert.deepStrictEqual(shown({ output: "a" }), [{ type: "text", text: "a" }])
    const claude = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } }
    assert.deepStrictEqual(shown({ content: [claude, { type: "text", text: "b" }] }), [
      { type: "image", data: "AA==", mimeType: "image/png" },
      { type: "text", text: "b" }
    ])
    assert.deepStrictEqual(shown({ content: [], more: 1 }), [{ type: "text", text: '{"content":[],"more":1}' }])
  })
})
