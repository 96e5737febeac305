import { assert, it } from "@effect/vitest"
import { routeOf } from "../../../src/domain/model/ModelRoute.ts"

it("a name leads to its provider", () => {
  const both = new Set(["anthropic", "openai"])
  const cases: ReadonlyArray<readonly [string, ReadonlySet<string>, string, string]> = [
    ["gemini-2.5-pro", both, "google", "gemini-2.5-pro"],
    ["models/gemini-2.5-pro", both, "google", "models/gemini-2.5-pro"],
    ["google/gemini-2.5-pro", both, "google", "gemini-2.5-pro"],
    ["claude-sonnet-5", both, "anthropic", "claude-sonnet-5"],
    ["claude-sonnet-5", new Set(), "google", "claude-sonnet-5"],
    ["anthropic/claude-sonnet-5", new Set(), "anthropic", "claude-sonnet-5"],
    ["gpt-5.1", both, "openai", "gpt-5.1"],
    ["o3", both, "openai", "o3"],
    ["gpt-oss-20b", both, "google", "gpt-oss-20b"],
    ["openai/meta/llama", new Set(), "openai", "meta/llama"],
    ["ollama/qwen3:8b", new Set(), "ollama", "qwen3:8b"],
    ["meta/llama", both, "google", "meta/llama"],
    ["openai/", both, "google", "openai/"]
  ]
  for (const [name, configured, provider, model] of cases)
    assert.deepStrictEqual(routeOf(name, configured), { provider, model })
})
