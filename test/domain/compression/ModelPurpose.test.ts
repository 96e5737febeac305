import { assert, describe, it } from "@effect/vitest"
import { modelFor } from "../../../src/domain/compression/ModelPurpose.ts"

describe("the model for a purpose", () => {
  it.each([
    ["gemini-3-pro-preview", "gemini-3-pro-preview"],
    ["gemini-3.1-pro-preview", "gemini-3-pro-preview"],
    ["gemini-3-flash-preview", "gemini-3-flash-preview"],
    ["gemini-2.5-pro", "gemini-2.5-pro"],
    ["gemini-2.5-flash", "gemini-2.5-flash"],
    ["gemini-2.5-flash-lite", "gemini-2.5-flash-lite"],
    ["some-other-model", "gemini-3-pro-preview"],
    ["google/gemini-2.5-pro", "gemini-2.5-pro"],
    ["claude-sonnet-4-5", "claude-sonnet-4-5"],
    ["anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"],
    ["gpt-5", "gpt-5"],
    ["ollama/llama3.1", "ollama/llama3.1"]
  ] as const)("%s is compressed by %s", (family, model) => {
    assert.deepStrictEqual(modelFor("compression", family), { model })
  })

  it("tool summaries, titles and routing have models of their own, whatever the conversation uses", () => {
    assert.deepStrictEqual(modelFor("tool-summary", "gemini-2.5-pro"), {
      model: "gemini-2.5-flash-lite",
      maxOutputTokens: 2_000
    })
    assert.strictEqual(modelFor("title", "gemini-2.5-pro").model, "gemini-2.5-flash-lite")
    assert.strictEqual(modelFor("router", "gemini-2.5-pro").temperature, 0)
    // The key of another provider may be the only one.
    assert.deepStrictEqual(modelFor("title", "openai/gpt-5"), { model: "openai/gpt-5", maxOutputTokens: 64 })
  })

  it("a conversation with another provider than Google has its own model for all of them", () => {
    for (const purpose of ["tool-summary", "title", "router", "edit", "loop", "loop-confirmation"] as const) {
      assert.strictEqual(modelFor(purpose, "claude-sonnet-4-5").model, "claude-sonnet-4-5")
    }
  })
})
