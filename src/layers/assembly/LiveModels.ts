/** The layer of all models, which loads each provider at its first request. */

import { type Config, Effect, Layer, Record, Stream } from "effect"
import { modelLimits } from "../../domain/model/ModelLimits.ts"
import { accessOf, type ModelRoute, routeOf } from "../../domain/model/ModelRoute.ts"
import { InvalidRequestError, Model, ModelError, type ModelRequest } from "../../services/model/Model.ts"
import { configuredProviders } from "../../services/model/ModelKeys.ts"
import * as OllamaModels from "../../services/model/OllamaModels.ts"
import * as GoogleModel from "../model/GoogleModel.ts"

const layers: Readonly<
  Record<Exclude<ModelRoute["provider"], "google">, Effect.Effect<Layer.Layer<Model, Config.ConfigError>>>
> = {
  anthropic: Effect.map(
    Effect.promise(() => import("../model/AnthropicModel.ts")),
    ({ layerConfig }) => layerConfig
  ),
  ollama: Effect.map(
    Effect.promise(() => import("../model/OpenAiModel.ts")),
    ({ layer }) => Layer.unwrap(Effect.map(OllamaModels.address, (url) => layer({ baseUrl: `${url}/v1` })))
  ),
  openai: Effect.map(
    Effect.promise(() => import("../model/OpenAiModel.ts")),
    ({ layerConfig }) => layerConfig
  )
}

const invalid = (detail: string) => new ModelError({ reason: new InvalidRequestError({ detail }) })

const make = Effect.gen(function* () {
  const google = yield* Model
  const context = yield* Effect.context()
  const configured = yield* configuredProviders
  const open = (layer: (typeof layers)["openai"]) =>
    Effect.cached(
      layer.pipe(
        Effect.flatMap((layer) => Effect.provide(Model, Layer.fresh(layer))),
        Effect.mapError((error) => invalid(error.message)),
        Effect.provideContext(context)
      )
    )
  const others = yield* Effect.all(Record.map(layers, open))
  const access = accessOf(configured)
  const route = (name: string) => {
    const reached = access.reach(name)
    // Such a name would go to Google, with the prompt.
    return reached._tag === "NoModel" ? Effect.fail(invalid(reached.text)) : Effect.succeed(routeOf(name))
  }
  const routed = Effect.fnUntraced(function* ({ model: name, ...request }: ModelRequest) {
    const { model, provider } = yield* route(name)
    const service = provider === "google" ? google : yield* others[provider]
    return { service, request: { ...request, model } }
  })
  const service: Model["Service"] = {
    access,
    generate: (request) => Effect.flatMap(routed(request), ({ request, service }) => service.generate(request)),
    stream: (request) => Stream.unwrap(Effect.map(routed(request), ({ request, service }) => service.stream(request))),
    countTokens: (request) => Effect.flatMap(routed(request), ({ request, service }) => service.countTokens(request)),
    describe: Effect.fnUntraced(function* (name) {
      const { model, provider } = yield* route(name)
      if (provider === "google" && google.describe !== undefined) return yield* google.describe(model)
      const limits = modelLimits(model)
      // Only the table has their windows: these providers do not report them.
      return limits ?? (yield* invalid(`${provider} does not describe its models`))
    })
  }
  return service
})

/** The models of all providers, routed by their names (`routeOf`). Providers other than Google load at their first request. */
export const layer: Layer.Layer<Model, Config.ConfigError> = Layer.effect(Model, make).pipe(
  Layer.provide(GoogleModel.layerConfig)
)
