import { assert, it } from "@effect/vitest"
import { accessOf, askableModel, firstModel, reachOf, routeOf } from "../../../src/domain/model/ModelRoute.ts"

it("a name leads to its provider", () => {
  const cases: ReadonlyArray<readonly [string, string, string]> = [
    ["gemini-2.5-pro", "google", "gemini-2.5-pro"],
    ["models/gemini-2.5-pro", "google", "models/gemini-2.5-pro"],
    ["gemini/gemini-2.5-pro", "google", "gemini-2.5-pro"],
    ["google/gemini-2.5-pro", "google", "gemini-2.5-pro"],
    ["google/claude-sonnet-5", "google", "claude-sonnet-5"],
    ["claude-sonnet-5", "anthropic", "claude-sonnet-5"],
    ["anthropic/claude-sonnet-5", "anthropic", "claude-sonnet-5"],
    ["gpt-5.1", "openai", "gpt-5.1"],
    ["o3", "openai", "o3"],
    ["gpt-oss-20b", "google", "gpt-oss-20b"],
    ["openai/meta/llama", "openai", "meta/llama"],
    ["ollama/qwen3:8b", "ollama", "qwen3:8b"],
    ["meta/llama", "google", "meta/llama"],
    ["openai/", "google", "openai/"]
  ]
  for (const [name, provider, model] of cases) assert.deepStrictEqual(routeOf(name), { provider, model })
})

it("a model can be asked where its provider has a key, and no provider is guessed", () => {
  const one = new Set(["anthropic"])
  const google = new Set(["google"])
  const cases: ReadonlyArray<readonly [string, ReadonlySet<string>, string]> = [
    ["gemini-2.5-pro", google, "Ready"],
    ["models/gemini-2.5-pro", google, "Ready"],
    ["tunedModels/mine", google, "Ready"],
    ["publishers/google/models/gemini-2.5-pro", google, "Ready"],
    ["projects/p/locations/l/publishers/google/models/gemini-2.5-pro", one, "NoKey GEMINI_API_KEY"],
    ["gemini/gemini-2.5-pro", one, "NoKey GEMINI_API_KEY"],
    ["tiny", one, "NoKey GEMINI_API_KEY"],
    ["claude-sonnet-5", one, "Ready"],
    ["claude-sonnet-5", google, "NoKey ANTHROPIC_API_KEY"],
    ["anthropic/claude-sonnet-5", google, "NoKey ANTHROPIC_API_KEY"],
    ["gpt-5.1", google, "NoKey OPENAI_API_KEY"],
    ["openai/llama", google, "Ready"],
    ["ollama/qwen3:8b", new Set(), "Ready"],
    ["foo/bar", google, "NoModel there is no provider foo (known: anthropic, google, ollama, openai)"],
    [
      "antropic/claude-sonnet-5",
      one,
      "NoModel there is no provider antropic; did you mean anthropic? (known: anthropic, google, ollama, openai)"
    ],
    [
      "Anthropic/claude-sonnet-5",
      one,
      "NoModel there is no provider Anthropic; did you mean anthropic? (known: anthropic, google, ollama, openai)"
    ],
    ["meta/llama", google, "NoModel there is no provider meta (known: anthropic, google, ollama, openai)"],
    ["/x", google, "NoModel there is no provider before the slash (known: anthropic, google, ollama, openai)"],
    ["OpenAI:gpt-5", google, "NoModel write openai/gpt-5, with a slash"],
    ["gemini:gemini-2.5-pro", google, "NoModel write gemini/gemini-2.5-pro, with a slash"],
    ["llama3.1:8b", google, "Ready"],
    ["openai/", google, "NoModel name a model of openai, as in openai/MODEL"],
    ["openai", google, "NoModel name a model of openai, as in openai/MODEL"],
    ["gemini", google, "NoModel name a model of gemini, as in gemini/MODEL"]
  ]
  const shown = (name: string, configured: ReadonlySet<string>) => Object.values(reachOf(name, configured)).join(" ")
  for (const [name, configured, reach] of cases) assert.strictEqual(shown(name, configured), reach, name)
  assert.deepStrictEqual([google, one, new Set(["openai", "anthropic"]), new Set<string>()].map(firstModel), [
    "gemini-2.5-flash",
    "claude-sonnet-5",
    "claude-sonnet-5",
    undefined
  ])
  const usual = "gemini-2.5-flash"
  assert.deepStrictEqual(
    [google, one, new Set<string>()].map((configured) => askableModel(usual, accessOf(configured))),
    [usual, "claude-sonnet-5", usual]
  )
  // Another model is asked only where this one has no key and that one has.
  const access = accessOf(one)
  assert.strictEqual(askableModel("anthropic/claude-opus-5", access), "anthropic/claude-opus-5")
  assert.strictEqual(askableModel(usual, { ...access, first: "gpt-5.1" }), usual)
})
