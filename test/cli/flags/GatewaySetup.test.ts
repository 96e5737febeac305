import { ConfigProvider, Effect, Redacted } from "effect"
import { gatewaySetup, providerKeys } from "../../../src/cli/flags/GatewaySetup.ts"
import { requestLimit } from "../../../src/domain/gateway/GatewayLimits.ts"
import { priceOf } from "../../../src/domain/tokens/Prices.ts"
import { assert, it } from "../../support/vitest.ts"

const price = { input: 1, output: 2 }

it("the setup of a gateway has the user's windows and prices of models, below those of its own settings", () => {
  const setup = gatewaySetup({
    gateway: { window: 9_000, windows: { both: 5_000 } },
    models: { mine: { window: 7_000, price }, both: { window: 6_000 }, priced: { price } }
  })
  const limits = ["mine", "both", "priced", "other"].map((model) => requestLimit(setup, model, undefined))
  assert.deepStrictEqual(limits, [7_000, 5_000, 9_000, 9_000])
  assert.deepStrictEqual(priceOf(setup.prices.table, "mine"), price)
  assert.isUndefined(priceOf(setup.prices.table, "both"))
})

it.effect.each([
  [
    { GEMINI_API_KEY: " ", GOOGLE_API_KEY: "g", ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "" },
    { gemini: "g", anthropic: "a" }
  ],
  [{ GEMINI_API_KEY: "first", GOOGLE_API_KEY: "second" }, { gemini: "first" }]
])("the keys of providers are the first that are not blank, as for models", function* ([env, expected]) {
  const keys = yield* Effect.provideService(
    providerKeys,
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown(env)
  )
  const shown = Object.entries(keys).map(([provider, key]) => [provider, Redacted.value(key)])
  assert.deepStrictEqual<unknown>(Object.fromEntries(shown), expected)
})
