import { Config, Effect, Option } from "effect"
import { makerKeys } from "../../domain/model/ModelRoute.ts"
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

/** Whether any model can be called: a provider has a key, or `named` belongs to one that needs none. */
export const canAsk = (named: string | undefined): Effect.Effect<boolean> =>
  /^(?:ollama|openai)\//.test(named ?? "")
    ? Effect.succeed(true)
    : Effect.map(Effect.filter([...keyVariables, ...Object.values(makerKeys)], isSet), (names) => names.length > 0)

/** Whether a key for Google's models is set. */
export const hasApiKey: Effect.Effect<boolean> = Effect.map(apiKeyVariable, (name) => name !== undefined)
