import { Effect, Option, Schema } from "effect"
import { HttpClient } from "effect/http/HttpClient"
import { firstModel, makerKeys, reachOf } from "../../domain/model/ModelRoute.ts"
import { configuredProviders, keysThatAreSet } from "../../services/model/ModelKeys.ts"

/** Which models can be asked with the keys that are set, and what to do without one. */

/** The variables that hold a key. */
export const keyNames: Effect.Effect<ReadonlyArray<string>> = Effect.map(keysThatAreSet, (keys) =>
  keys.map(([, variable]) => variable)
)

/** Whether a key is set, or `named` is a model that needs none. */
export const canAsk = (named: string | undefined): Effect.Effect<boolean> =>
  Effect.map(configuredProviders, (configured) =>
    named === undefined ? configured.size > 0 : reachOf(named, configured)._tag !== "NoKey"
  )

/** How long the local server may take to list its models. */
const ollamaTimeout = "500 millis"
const maxNamedModels = 3

const OllamaTags = Schema.Struct({ models: Schema.Array(Schema.Struct({ name: Schema.String })) })

/** The models of an Ollama on this machine; none where none runs. */
const ollamaModels = Effect.gen(function* () {
  const client = yield* Effect.serviceOption(HttpClient)
  if (Option.isNone(client)) return []
  const response = yield* client.value.get("http://localhost:11434/api/tags")
  const { models } = yield* Effect.flatMap(response.json, Schema.decodeUnknownEffect(OllamaTags))
  return models.map(({ name }) => `ollama/${name}`)
}).pipe(
  Effect.timeout(ollamaTimeout),
  Effect.orElseSucceed((): ReadonlyArray<string> => [])
)

/** What works without a model. */
const withoutModel =
  "without a key, these work: find, cost, inspect, compress, rescue, secrets, recall, replay, and chat --model replay:FILE"

/** What to do when the key of the model `named` is missing, in lines: which model can be asked, or how to get a key, and what works without. */
export const missingKeyLines = Effect.fnUntraced(function* (named: string | undefined) {
  const keys = yield* keysThatAreSet
  const configured = yield* configuredProviders
  const reached = named === undefined ? undefined : reachOf(named, configured)
  const first = firstModel(configured)
  if (named !== undefined && reached?._tag === "NoKey" && first !== undefined) {
    const variable = keys.find(([provider]) => configured.has(provider))?.[1] ?? ""
    return [
      `${named} needs a key: set ${reached.variable}`,
      `${variable} is set: use --model ${first}, or palimpsest config set model ${first}`
    ]
  }
  const local = (yield* ollamaModels).slice(0, maxNamedModels)
  return [
    `no API key: get one at https://aistudio.google.com/apikey and set GEMINI_API_KEY, or set ${Object.values(makerKeys).join(" or ")}`,
    ...(local.length === 0
      ? []
      : [`Ollama runs on this machine and needs no key: ${local.map((name) => `palimpsest -m ${name}`).join(", ")}`]),
    withoutModel
  ]
})
