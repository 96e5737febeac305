import { assert, it } from "@effect/vitest"
import { nothingSpent, type Spent, spentOn } from "../../../src/domain/evaluation/SessionCost.ts"
import { pricesWith } from "../../../src/domain/tokens/Prices.ts"
import type { Usage } from "../../../src/domain/tokens/Tokens.ts"

const prices = pricesWith({ priced: { price: { input: 1, output: 10 } } })
const usage = { prompt: 1_000_000, answer: 20_000, thoughts: 80_000, cached: 0 }

it.each<readonly [what: string, model: string, usage: Usage, spent: Partial<Spent>]>([
  ["by the table", "priced", usage, { cost: 2 }],
  ["as the agent recorded it", "priced", { ...usage, cost: 0.5 }, { cost: 0.5, recorded: 1 }],
  ["as the agent recorded it, without a price", "another", { ...usage, cost: 0.5 }, { cost: 0.5, recorded: 1 }],
  ["unknown without a price", "another", usage, { unpriced: 1 }],
  ["with a cache", "another", { ...usage, cached: 7, cacheWrite: 5 }, { cached: 7, written: 5, unpriced: 1 }]
])("what a request cost: %s", (_, model, usage, spent) => {
  const all = { ...nothingSpent, requests: 1, sent: 1_000_000, answered: 100_000, ...spent }
  assert.deepStrictEqual(spentOn([{ id: "a", at: 0, model, usage }], prices), all)
})
