/** Asks the Ollama of this machine, or the one that OLLAMA_HOST names, for its models. */

import { Config, Effect, Option, Schema } from "effect"
import { HttpClient } from "effect/http/HttpClient"
import { ollamaAddress } from "../../domain/model/ModelRoute.ts"

/** The address of Ollama. */
export const address = Config.String("OLLAMA_HOST").pipe(Config.withDefault(""), Config.map(ollamaAddress))

/** How long the local server may take to list its models. */
const ollamaTimeout = "500 millis"

const OllamaTags = Schema.Struct({ models: Schema.Array(Schema.Struct({ name: Schema.String })) })

/** The models of an Ollama on this machine; none where none runs. */
export const ollamaModels = Effect.gen(function* () {
  const client = yield* Effect.serviceOption(HttpClient)
  if (Option.isNone(client)) return []
  const response = yield* client.value.get(`${yield* address}/api/tags`)
  const { models } = yield* Effect.flatMap(response.json, Schema.decodeUnknownEffect(OllamaTags))
  return models.map(({ name }) => `ollama/${name}`)
}).pipe(
  Effect.timeout(ollamaTimeout),
  Effect.orElseSucceed((): ReadonlyArray<string> => [])
)
