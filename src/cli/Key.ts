import { Config, Effect, Option } from "effect"
import { keyVariables } from "../domain/DotEnv.ts"

const filled = (name: string) =>
  Config.option(Config.String(name)).pipe(
    Effect.map(Option.exists((value) => value.trim() !== "")),
    Effect.orElseSucceed(() => false)
  )

/** The variable that the key for the model stands in; undefined: there is none. The key is not looked at. */
export const keyVariable: Effect.Effect<string | undefined> = Effect.map(
  Effect.filter(keyVariables, filled),
  ([first]) => first
)

/** Whether there is a key for the model. */
export const hasKey: Effect.Effect<boolean> = Effect.map(keyVariable, (name) => name !== undefined)
