import { Config, Effect } from "effect"
import { makerKeys } from "../../domain/model/ModelRoute.ts"
import { keyVariables } from "../../domain/settings/DotEnv.ts"

/** Determines which providers have a key. Keys are not validated. */

const all = [...keyVariables.map((name) => ["google", name] as const), ...Object.entries(makerKeys)]

/** The variables that hold a key, with their providers. */
export const keysThatAreSet: Effect.Effect<ReadonlyArray<readonly [provider: string, variable: string]>> =
  Effect.filter(all, ([, name]) =>
    Config.String(name).pipe(
      Effect.map((key) => key.trim() !== ""),
      Effect.orElseSucceed(() => false)
    )
  )

/** The providers that have a key. */
export const configuredProviders: Effect.Effect<ReadonlySet<string>> = Effect.map(
  keysThatAreSet,
  (keys) => new Set(keys.map(([provider]) => provider))
)
