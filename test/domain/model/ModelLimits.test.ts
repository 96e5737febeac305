import { assert, describe, it } from "@effect/vitest"
import {
  defaultReserve,
  isGoogleModel,
  makerOf,
  modelChoices,
  modelLimits,
  modelTable,
  modelKey,
  suggestModel,
  reserveFor,
  tokenLimit,
  assumedWindow
} from "../../../src/domain/model/ModelLimits.ts"
import { builtInPrices, priceOf } from "../../../src/domain/tokens/Prices.ts"
import { corpus } from "../../support/corpus.ts"

/** A name as providers, gateways and transcripts write it, and the row that is meant. */
const names = corpus<readonly [name: string, key: string]>("model-names")

/** Names that are near a row and are other models, or none. */
const strangers = [
  "",
  "nope",
  "gemini",
  "gemini-2.5-pro-nope",
  "gemini-2.5-flash-image",
  "gemini-4-pro",
  "claude-sonnet-4-9",
  "claude-opus-6",
  "gpt-5.9",
  "gpt-51",
  "o33",
  "replay:session.jsonl",
  "constructor",
  "__proto__",
  "-latest",
  "x".repeat(10_000),
  `gemini-2.5-pro${"-latest".repeat(10_000)}`
]

describe("Models", () => {
  it.each(names)("%s is %s", (name, key) => {
    assert.strictEqual(modelKey(name), key)
    assert.deepStrictEqual(modelLimits(name), modelTable[key])
  })

  it("an unknown model has a small window", () => {
    assert.strictEqual(assumedWindow, 32_768)
    for (const name of strangers) {
      assert.isUndefined(modelLimits(name), name.slice(0, 40))
      assert.strictEqual(tokenLimit(name), assumedWindow)
    }
  })

  it("has the windows of models users overran, and of Gemini", () => {
    assert.strictEqual(tokenLimit("claude-sonnet-4-5-20250929"), 200_000)
    assert.strictEqual(tokenLimit("gpt-5-codex"), 272_000)
    assert.strictEqual(tokenLimit("o3"), 200_000)
    assert.strictEqual(tokenLimit("gpt-4o"), 128_000)
    for (const name of ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-1.5-flash"]) {
      assert.strictEqual(tokenLimit(name), 1_048_576)
    }
    assert.strictEqual(tokenLimit("gemma-4-31b-it"), 256_000)
    assert.strictEqual(tokenLimit("gemma-4-26b-a4b-it"), 256_000)
    assert.strictEqual(tokenLimit("gemini-1.5-pro"), 2_097_152)
  })

  it("each row is found by its own name, and its answer fits a shared window", () => {
    for (const [key, { output, sharesWindow, window }] of Object.entries(modelTable)) {
      assert.strictEqual(modelKey(key), key)
      assert.isTrue(Number.isSafeInteger(window) && window > 0 && Number.isSafeInteger(output) && output > 0, key)
      if (sharesWindow) assert.isAtMost(output, window, key)
    }
  })

  it("no row has a size that its maker gives no model", () => {
    // Window and longest answer; with a plus where they share the window.
    const sizes: Readonly<Record<string, string>> = {
      gemini: "2097152/8192 1048576/8192 1048576/65536",
      gemma: "131072/8192 256000/8192",
      claude: "200000+4096 200000+8192 200000+64000 200000+32000 1000000+64000 1000000+128000",
      openai: `16385+4096 8192+8192 128000+4096 128000+16384 1047576+32768 272000/128000 128000/272000 128000+32000
        922000/128000 200000+100000 128000+65536`,
      open: `131072+32768 131072+65536 1000000+384000 262144+65536 131072+98304 200000+131072 256000+64000 256000+10000
        131072+16384 262144+16384 262144+32768 131072+8192 196608+131072 40960+8192`
    }
    for (const [key, { family, output, sharesWindow, window }] of Object.entries(modelTable)) {
      assert.include((sizes[family] ?? "").split(/\s+/), `${window}${sharesWindow ? "+" : "/"}${output}`, key)
    }
  })

  it("every model with a price has a window", () => {
    for (const key of Object.keys(builtInPrices.table.models)) assert.isDefined(modelLimits(key), key)
  })

  it("names are matched as in the table of prices", () => {
    for (const name of ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic/claude-sonnet-4.5"]) {
      assert.deepStrictEqual(priceOf(builtInPrices.table, name), priceOf(builtInPrices.table, "claude-sonnet-4-5"))
    }
  })

  it("the reserve is the requested output where it shares the window, else zero", () => {
    const claude = modelLimits("claude-sonnet-4-5")
    assert.strictEqual(reserveFor(claude, 200_000, 8_000), 8_000)
    assert.strictEqual(reserveFor(claude, 200_000, undefined), 16_384)
    assert.strictEqual(reserveFor(claude, 20_000, undefined), 5_000)
    assert.strictEqual(reserveFor(claude, 20_000, 64_000), 20_000)
    assert.strictEqual(reserveFor(modelLimits("gemini-2.5-pro"), 1_048_576, 65_536), 0)
    assert.strictEqual(reserveFor(modelLimits("gpt-5"), 272_000, 128_000), 0)
    assert.strictEqual(reserveFor(undefined, assumedWindow, 8_192), 0)
    assert.strictEqual(defaultReserve(1_000_000), 16_384)
  })

  it("a typing error is distinguished from other models", () => {
    assert.strictEqual(suggestModel("gemini-2.5-flsh", isGoogleModel), "gemini-2.5-flash")
    assert.strictEqual(suggestModel("gemni-2.5-pro", isGoogleModel), "gemini-2.5-pro")
    assert.strictEqual(suggestModel("models/gemini-2.5-prp", isGoogleModel), "gemini-2.5-pro")
    assert.isUndefined(suggestModel("claude-sonnet-4-5", isGoogleModel))
    assert.isUndefined(suggestModel("nope", isGoogleModel))
  })

  it("the models to choose from begin with the current one, its maker's and the newest, and can be asked", () => {
    const any = () => true
    const [current, ...others] = modelChoices("anthropic/claude-opus-5-20261101", any)
    assert.strictEqual(current, "anthropic/claude-opus-5-20261101")
    assert.sameMembers(
      [...others],
      Object.keys(modelTable).filter((name) => makerOf(name) !== undefined)
    )
    const claude = others.filter((name) => name.startsWith("claude-"))
    assert.deepStrictEqual(others.slice(0, claude.length), claude)
    assert.isBelow(claude.indexOf("claude-opus-5-5"), claude.indexOf("claude-opus-4"))
    assert.deepStrictEqual(
      modelChoices("gpt-5", any).filter((name) => name === "gpt-5"),
      ["gpt-5"]
    )
    const google = modelChoices("gemini-2.5-flash", (name) => makerOf(name) === "google")
    assert.deepStrictEqual(google.slice(0, 2), ["gemini-2.5-flash", "gemini-flash-lite"])
    assert.isTrue(google.every((name) => makerOf(name) === "google"))
    assert.deepStrictEqual(
      modelChoices("gpt-5", () => false),
      ["gpt-5"]
    )
  })
})
