import { Effect, Layer } from "effect"
import { env } from "node:process"
import { Environment } from "../services/Environment.ts"

/** The environment of this process as it is when it is asked for. */
export const layer: Layer.Layer<Environment> = Layer.succeed(Environment, {
  variables: Effect.sync(() => {
    const variables: Record<string, string> = {}
    for (const [name, value] of Object.entries(env)) if (value !== undefined) variables[name] = value
    return variables
  })
})
