import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import {
  builtInPrices,
  Cost,
  costOf,
  type ModelPrice,
  parsePrices,
  priceOf,
  PriceTable
} from "../../../src/domain/tokens/Prices.ts"
import type { Usage } from "../../../src/domain/tokens/Tokens.ts"
import { runsOf } from "../../support/runs.ts"

const price = (input: number): ModelPrice => ({ input, output: 0 })
const usage = (counts: Partial<Usage>): Usage => ({ prompt: 0, answer: 0, thoughts: 0, cached: 0, ...counts })
const million = 1_000_000
const encoded = Schema.encodeSync(Schema.fromJsonString(Schema.toCodecJson(Cost)))

describe("the price of a model", () => {
  const table = {
    models: {
      "gpt-5": price(1),
      "gpt-5-mini": price(2),
      "gpt-4": price(3),
      "claude-opus-4-1": price(4),
      "claude-sonnet-4-5": price(5),
      "my/own": price(6),
      Upper: price(7),
      ["__proto__"]: price(8),
      gemini: price(9)
    }
  }
  for (const [name, expected] of [
    ["gpt-5", 1],
    ["gpt-5-2025-08-07", 1],
    ["gpt-5-codex", 1],
    ["gpt-5-mini", 2],
    ["gpt-5-mini-2025-08-07", 2],
    // A number goes on: these are other models.
    ["gpt-5.2", undefined],
    ["gpt-50", undefined],
    ["claude-opus-4-10", undefined],
    ["gpt-4o", 3],
    ["gpt-4.1", undefined],
    ["claude-opus-4-1-20250805", 4],
    ["claude-opus-4", undefined],
    // As others pass them on.
    ["anthropic/claude-sonnet-4.5", 5],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", 5],
    ["anthropic.claude-sonnet-4-5", 5],
    ["claude-sonnet-4-5@20250929", 5],
    ["models/gemini-x", 9],
    ["CLAUDE-SONNET-4-5", 5],
    ["my/own-model", 6],
    ["Upper-1", 7],
    ["gem", undefined],
    ["toString", undefined],
    ["", undefined],
    ["/", undefined],
    ["unknown", undefined]
  ] as const) {
    it(`${name === "" ? "an empty name" : name}: matches the longest key that is a prefix`, () => {
      assert.strictEqual(priceOf(table, name)?.input, expected)
    })
  }

  it("a name of an object's built-in property is found only if the table has it", () => {
    const parsed = Result.getOrThrow(parsePrices('{"models": {"__proto__": {"input": 8, "output": 1}}}'))
    assert.strictEqual(priceOf(parsed, "__proto__-1")?.input, 8)
    assert.isUndefined(priceOf({ models: {} }, "__proto__"))
    assert.isUndefined(priceOf({ models: {} }, "constructor"))
  })

  it("an endless name is looked up as fast", () => {
    assert.strictEqual(priceOf(table, `gpt-5-${"x".repeat(10_000_000)}`)?.input, 1)
  })
})

describe("the built-in table", () => {
  it.each([
    ["gemini-2.0-flash-001", 0.1, 0.4],
    ["gemini-2.5-pro-preview-06-05", 1.25, 10],
    ["gemini-2.5-flash-lite", 0.1, 0.4],
    ["gemini-3-pro-preview", 2, 12],
    ["claude-3-5-sonnet-20241022", 3, 15],
    ["claude-3-5-haiku-latest", 0.8, 4],
    ["claude-3-7-sonnet-20250219", 3, 15],
    ["claude-sonnet-4-20250514", 3, 15],
    ["claude-opus-4-20250514", 15, 75],
    ["claude-opus-4-1-20250805", 15, 75],
    ["claude-opus-4-5-20251101", 5, 25],
    ["claude-haiku-4-5-20251001", 1, 5],
    ["claude-haiku-5-5", 0.1, 0.5],
    ["claude-opus-5-5", 4, 20],
    ["claude-fable-5-2", 8, 40],
    ["gpt-5.4-mini", 0.75, 4.5],
    ["gpt-6-sol", 2, 10],
    ["gpt-6.1-terra-2026-10-26", 1, 5],
    ["gpt-4o-2024-08-06", 2.5, 10],
    ["gpt-4o-mini", 0.15, 0.6],
    ["gpt-4.1-nano", 0.1, 0.4],
    ["gpt-5-codex", 1.25, 10],
    ["gpt-5.1-codex", 1.25, 10]
  ] as const)("has %s", (name, input, output) => {
    const found = priceOf(builtInPrices.table, name)
    assert.deepStrictEqual([found?.input, found?.output], [input, output])
  })

  for (const name of ["gemini-4-pro", "claude-opus-4-9", "gpt-6", "gpt-5.9", "llama-4", "<synthetic>"]) {
    it(`does not guess ${name}`, () => {
      assert.isUndefined(priceOf(builtInPrices.table, name))
    })
  }

  it("is valid, states its date, and has no lower prices for longer prompts", () => {
    assert.isTrue(Schema.is(PriceTable)(builtInPrices.table))
    assert.match(builtInPrices.source, /\b20\d\d\b/)
    for (const { above, cacheRead, input, output } of Object.values(builtInPrices.table.models)) {
      assert.isAbove(output, input)
      assert.isBelow(cacheRead ?? 0, input)
      if (above !== undefined) assert.isTrue(above.input > input && above.output > output)
    }
  })
})

describe("a cost", () => {
  const rates = { input: 10, output: 100, cacheRead: 1, cacheWrite: 20 }
  const above = { tokens: 2 * million, input: 30, output: 300 }
  it.each([
    ["of what was sent", rates, { prompt: million }, 10],
    ["of an answer and its thoughts", rates, { answer: million, thoughts: million }, 200],
    ["of what came from a cache", rates, { prompt: million, cached: million }, 1],
    ["of what went into one", rates, { prompt: million, cacheWrite: million }, 20],
    [
      "of all of it",
      rates,
      { prompt: 4 * million, cached: 2 * million, cacheWrite: million, answer: million },
      10 + 2 + 20 + 100
    ],
    ["of a cache that costs no less", { input: 10, output: 0 }, { prompt: million, cached: million }, 10],
    ["of a cache that costs no more", { input: 10, output: 0 }, { prompt: million, cacheWrite: million }, 10],
    ["of more from a cache than was sent", rates, { prompt: million, cached: 3 * million }, 3],
    ["up to the threshold", { ...rates, above }, { prompt: 2 * million, answer: million }, 120],
    ["above it, of all of the request", { ...rates, above }, { prompt: 2 * million + 1, answer: million }, 360.00003],
    [
      "above it, of a cache that has no price of its own",
      { ...rates, above },
      { prompt: 3 * million, cached: 3 * million },
      90
    ],
    [
      "of what a cache keeps for an hour, and of the rest",
      { ...rates, cacheWriteHour: 40 },
      { prompt: 3 * million, cacheWrite: 3 * million, cacheWriteHour: million },
      40 + 40
    ],
    ["of an hour that costs no more", rates, { prompt: million, cacheWrite: million, cacheWriteHour: million }, 20],
    [
      "of no more than was written",
      { ...rates, cacheWriteHour: 40 },
      { prompt: million, cacheWrite: million, cacheWriteHour: 5 * million },
      40
    ],
    ["that the agent recorded", rates, { prompt: million, cost: 0.25 }, 0.25],
    ["that the agent recorded as none", rates, { prompt: million, cost: 0 }, 0],
    ["of nothing", rates, {}, 0],
    ["for nothing", { input: 0, output: 0 }, { prompt: million, answer: million }, 0]
  ] as const)("%s", (_, model, counts, expected) => {
    const { total } = costOf(
      [{ model: "m", usage: usage(counts) }],
      { source: "", table: { models: { m: model } } },
      false
    )
    assert.strictEqual(total, expected)
  })

  const table = { models: { a: price(1), b: price(100) } }
  const requests = [
    { model: "a", usage: usage({ prompt: million, answer: 1, thoughts: 2, cached: 3, cacheWrite: 4 }) },
    { model: "x", usage: usage({ prompt: 5 }) },
    { model: "b", usage: usage({ prompt: million }) },
    { model: "a", usage: usage({ prompt: 2 * million, answer: 10, thoughts: 20, cached: 30 }) }
  ]

  it("is listed by model, highest first, those without a price last", () => {
    assert.deepStrictEqual(costOf(requests, { source: "s", table }, true), {
      currency: "USD",
      table: "s",
      total: 103,
      models: [
        { model: "b", requests: 1, prompt: million, cached: 0, cacheWrite: 0, answer: 0, thoughts: 0, cost: 100 },
        { model: "a", requests: 2, prompt: 3 * million, cached: 33, cacheWrite: 4, answer: 11, thoughts: 22, cost: 3 },
        { model: "x", requests: 1, prompt: 5, cached: 0, cacheWrite: 0, answer: 0, thoughts: 0, cost: null }
      ],
      estimated: true,
      unpriced: ["x"]
    })
  })

  it.effect.prop(
    "is the sum over its models",
    [
      Schema.Array(
        Schema.Struct({
          model: Schema.Literals(["gpt-5", "gemini-2.5-pro", "claude-opus-4-6", "toString"]),
          prompt: Schema.Natural,
          cached: Schema.Natural,
          cacheWrite: Schema.Natural,
          answer: Schema.Natural,
          thoughts: Schema.Natural
        })
      )
    ],
    ([calls]) =>
      Effect.sync(() => {
        const cost = costOf(
          calls.map(({ model, ...counts }) => ({ model, usage: counts })),
          builtInPrices,
          false
        )
        const known = cost.models.flatMap((one) => one.cost ?? [])
        const total = known.reduce((sum, one) => sum + one, 0)
        if (cost.total !== null) assert.closeTo(cost.total, total, Math.max(1e-6, total * 1e-9))
        assert.strictEqual(cost.models.length - known.length, cost.unpriced.length)
        assert.strictEqual(
          cost.models.reduce((sum, { requests }) => sum + requests, 0),
          calls.length
        )
        encoded(cost)
      }),
    { arbitrary: { runs: runsOf(500), seed: "cost" } }
  )
})

describe("a price file", () => {
  it("accepts every key", () => {
    const rates = { input: 1, output: 2.5, cacheRead: 0, cacheWrite: 1_000_000 }
    const table = {
      models: { "a-model": { ...rates, above: { tokens: 200_000, ...rates } }, b: { input: 0, output: 0 } }
    }
    assert.deepStrictEqual(parsePrices(JSON.stringify(table)), Result.succeed(table))
    assert.deepStrictEqual(parsePrices(`\uFEFF${JSON.stringify(table)}\n`), Result.succeed(table))
  })

  const of = (model: unknown) => JSON.stringify({ models: { m: model } })
  const number = "expected a number from 0 to 1000000 (US dollars for a million tokens)"
  const example = 'expected {"models": {"gemini-2.5-pro": {"input": 1.25, "output": 10}}}'
  it.each([
    ["nothing", "", "not JSON ("],
    ["no JSON", "input: 1", "not JSON ("],
    ["NaN", '{"models": {"m": {"input": NaN, "output": 1}}}', "not JSON ("],
    ["null", "null", example],
    ["a list", "[]", example],
    ["an empty object", "{}", `models: is missing; ${example}`],
    ["a list of models", '{"models": []}', `models: ${example}`],
    ["no models", '{"models": {}}', `models: is empty; ${example}`],
    [
      "another key",
      '{"models": {"m": {"input": 1, "output": 1}}, "currency": "EUR"}',
      "currency: is not a known key; "
    ],
    ["a model without a name", '{"models": {"": {"input": 1, "output": 1}}}', "models: a name is empty; "],
    ["a model that is a number", of(3), "models.m: expected an object with prices"],
    ["a model without prices", of({}), `models.m.input: is missing; ${number}`],
    ["no output", of({ input: 1 }), `models.m.output: is missing; ${number}`],
    ["a negative price", of({ input: -1, output: 1 }), `models.m.input: ${number}`],
    ["a price in words", of({ input: "1.25", output: 1 }), `models.m.input: ${number}`],
    ["a price of null", of({ input: 1, output: null }), `models.m.output: ${number}`],
    ["a price without end", '{"models": {"m": {"input": 1e999, "output": 1}}}', `models.m.input: ${number}`],
    ["a price beyond measure", of({ input: 1, output: 1e7 }), `models.m.output: ${number}`],
    [
      "an unknown key",
      of({ input: 1, output: 1, cache_read: 1 }),
      "models.m.cache_read: is not a known key; expected only input, output, cacheRead, cacheWrite, cacheWriteHour, above"
    ],
    [
      "a threshold that is no object",
      of({ input: 1, output: 1, above: 3 }),
      "models.m.above: expected an object with tokens"
    ],
    [
      "a threshold without tokens",
      of({ input: 1, output: 1, above: { input: 1, output: 1 } }),
      "models.m.above.tokens: is missing; expected a whole number of tokens"
    ],
    [
      "half a token",
      of({ input: 1, output: 1, above: { tokens: 0.5, input: 1, output: 1 } }),
      "models.m.above.tokens: expected a whole number of tokens"
    ],
    [
      "a threshold within a threshold",
      of({ input: 1, output: 1, above: { tokens: 1, input: 1, output: 1, above: {} } }),
      "models.m.above.above: is not a known key; expected only input, output, cacheRead, cacheWrite, cacheWriteHour, tokens"
    ]
  ] as const)("rejects %s", (_, text, expected) => {
    const table = parsePrices(text)
    const message = Result.isFailure(table) ? table.failure : "accepted"
    assert.isTrue(message.startsWith(expected), message)
  })
})
