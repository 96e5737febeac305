import { assert, describe, it } from "@effect/vitest"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { blocksOf, contentOf } from "../../../src/domain/transcripts/ClaudeBlocks.ts"
import type { NativeCall } from "../../../src/domain/transcripts/CompactionLayout.ts"
import { Skipped } from "../../../src/domain/transcripts/Skipped.ts"

const written = (content: Content, calls: Readonly<Record<number, NativeCall>> = {}, named = "claude-sonnet-4-5") => {
  const unheld = new Skipped()
  return { blocks: blocksOf({ content }, named, (part) => calls[part], unheld), unheld: unheld.counts }
}

describe("blocks of the Anthropic API", () => {
  it("have the results of a message first", () => {
    const { blocks } = written(user(text("and this"), response("read", { output: "a" }, "c1")), {
      1: { id: "toolu_1", name: "read" }
    })
    assert.deepStrictEqual(blocks, [
      { type: "tool_result", tool_use_id: "toolu_1", content: "a" },
      { type: "text", text: "and this" }
    ])
  })

  it("leave out and count what the API refuses", () => {
    assert.deepStrictEqual(written(user(text(""), call("a", {}), response("a", {}))), {
      blocks: [],
      unheld: { "calls of the user": 1, "results without a call": 1 }
    })
    const thought: Content = { role: "model", parts: [{ text: "hm", thought: true, thoughtSignature: "s" }] }
    assert.deepStrictEqual(written(thought).blocks, [{ type: "thinking", thinking: "hm", signature: "s" }])
    assert.deepStrictEqual(written(thought, {}, "gpt-5"), { blocks: [], unheld: { thoughts: 1 } })
    assert.deepStrictEqual(written(model({ fileData: { fileUri: "x" } })).unheld, { media: 1 })
  })

  it("give a failure without a text one, which the API wants", () => {
    const { blocks } = written(user(response("a", { error: "" }, "c")), { 0: { id: "c", name: "a" } })
    assert.deepInclude(blocks[0], { content: "(no content)", is_error: true })
  })

  it("are a string where they are one text", () => {
    assert.strictEqual(contentOf([{ type: "text", text: "a" }]), "a")
    assert.strictEqual(contentOf([]), "(no content)")
  })
})
