/** Provides `Environment` from the variables of this process and of `.env` files. */

import { Effect, Layer } from "effect"
import { env } from "node:process"
import { EnvFiles, Environment } from "../../services/platform/Environment.ts"

const variables = Effect.sync(() => {
  const all: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) if (value !== undefined) all[name] = value
  return all
})

/** The environment of this process, read at each access. */
export const layer: Layer.Layer<Environment> = Layer.succeed(Environment, { variables })

/** `layer` with the variables of `.env` files, which the environment overrides. */
export const layerWithFiles: Layer.Layer<Environment, never, EnvFiles> = Layer.effect(
  Environment,
  Effect.map(EnvFiles, ({ folder, hidden, variables: beneath }) => ({
    variables,
    beneath: { variables: beneath, folder, hidden }
  }))
)
