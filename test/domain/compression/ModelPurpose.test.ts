import { assert, describe, it } from "@effect/vitest"
import { modelFor } from "../../../src/domain/compression/ModelPurpose.ts"

describe("the model for a purpose", () => {
  for (const [family, model] of [
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
  ] as const) {
    it(`${family} is compressed by ${model}`, () => {
      assert.deepStrictEqual(modelFor("compression", family), { model })
    })
  }
})
