/** The settings of a gateway, served alone or within `serve`. */

import { Config, Effect, Option, type Redacted } from "effect"
import { defaultThreshold } from "../../domain/gateway/GatewayLimits.ts"
import type { GatewaySettings } from "../../domain/gateway/GatewaySettings.ts"
import { defaultUpstreams, type Provider } from "../../domain/gateway/Route.ts"
import type { Settings } from "../../domain/settings/Settings.ts"
import { type Prices, pricesWith } from "../../domain/tokens/Prices.ts"
import { keysThatAreSet } from "../../services/model/ModelKeys.ts"

/** How a gateway treats requests. */
export interface GatewaySetup extends Pick<
  GatewaySettings,
  "window" | "windows" | "snapshots" | "recall" | "showRecalls" | "keys" | "tenants" | "budgets"
> {
  readonly upstreams: Readonly<Record<Provider, string>>
  readonly threshold: number
  readonly keepDays: number
  readonly maxBodyBytes: number
  readonly silentSeconds: number
  readonly clientSeconds: number
  readonly prices: Prices
}

/** The operator's keys of the providers. */
export type ProviderKeys = Readonly<Partial<Record<Provider, Redacted.Redacted>>>

/** The keys of the environment, as the models of this program use them. */
export const providerKeys: Effect.Effect<ProviderKeys> = Effect.gen(function* () {
  const keys: Partial<Record<Provider, Redacted.Redacted>> = {}
  for (const [maker, variable] of yield* keysThatAreSet) {
    const provider = maker === "google" ? "gemini" : maker
    const key = yield* Effect.option(Config.Redacted(variable))
    if (keys[provider] === undefined && Option.isSome(key)) keys[provider] = key.value
  }
  return keys
})

const windowsOf = (models: Settings["models"]): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(models).flatMap(([name, { window }]) => (window === undefined ? [] : [[name, window] as const]))
  )

const defaultBodyBytes = 64 * 1024 * 1024
const defaultKeepDays = 30
/** As long as the providers' own clients wait (OpenAI and Anthropic, 2026). */
const defaultSilentSeconds = 600

const clientSeconds = 30

/** Returns the setup that the settings describe, with defaults, and the user's windows and prices of single models. */
export const gatewaySetup = ({
  gateway: { bodyBytes, drainSeconds: _, keepDays, silentSeconds, threshold, upstreams, windows, ...settings },
  models
}: Pick<Settings, "gateway" | "models">): GatewaySetup => ({
  ...settings,
  windows: { ...windowsOf(models), ...windows },
  prices: pricesWith(models),
  upstreams: { ...defaultUpstreams, ...upstreams },
  threshold: threshold ?? defaultThreshold,
  keepDays: keepDays ?? defaultKeepDays,
  maxBodyBytes: bodyBytes ?? defaultBodyBytes,
  silentSeconds: silentSeconds ?? defaultSilentSeconds,
  clientSeconds
})
