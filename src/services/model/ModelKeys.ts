/** Determines which providers have a key. Keys are not validated. */

import { Config, Effect, Record } from "effect"
import { keyVariables } from "../../domain/model/ModelRoute.ts"

const all = Record.toEntries(keyVariables).flatMap(([provider, names]) =>
  names.map((name) => [provider, name] as const)
)

/** The variables that hold a key, with their providers. */
export const keysThatAreSet: Effect.Effect<
  ReadonlyArray<readonly [provider: keyof typeof keyVariables, variable: string]>
> = Effect.filter(all, ([, name]) =>
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
