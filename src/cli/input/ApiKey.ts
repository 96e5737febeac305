import { Config, Effect, Option } from "effect"
import { keyVariables } from "../../domain/settings/DotEnv.ts"

const isSet = (name: string) =>
  Config.option(Config.String(name)).pipe(
    Effect.map(Option.exists((value) => value.trim() !== "")),
    Effect.orElseSucceed(() => false)
  )

/** The variable that holds the key of the model; undefined when none is set. The key is not validated. */
export const apiKeyVariable: Effect.Effect<string | undefined> = Effect.map(
  Effect.filter(keyVariables, isSet),
  ([first]) => first
)

/** Whether a key for the model is set. */
export const hasApiKey: Effect.Effect<boolean> = Effect.map(apiKeyVariable, (name) => name !== undefined)
