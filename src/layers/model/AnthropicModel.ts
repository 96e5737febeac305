/** Anthropic's Messages API. Content that stays the same from request to request is marked for its cache. */

import { type Config, Effect, type Layer, Stream } from "effect"
import { answerLength } from "../../domain/model/ModelLimits.ts"
import { keyVariables } from "../../domain/model/ModelRoute.ts"
import type { Json } from "../../domain/text/JsonObject.ts"
import { naturalAt } from "../../domain/wire/AnswerUsage.ts"
import { anthropicAnswerReader } from "../../domain/wire/anthropic/Answer.ts"
import { betaOf, countBody, requestBody, targetOf } from "../../domain/wire/anthropic/Request.ts"
import type { Model, ModelRequest } from "../../services/model/Model.ts"
import { countSpan } from "../../services/model/ModelSpans.ts"
import { chunks, learning, modelOf } from "./AnswerChunks.ts"
import type { Send } from "./HttpSend.ts"
import { modelLayer, opened, optionsConfig, type Provider, type ProviderOptions, providerOf } from "./Provider.ts"
import { unusable, type ProviderNames } from "./ProviderErrors.ts"
import { call, events } from "./ProviderExchange.ts"

const names: ProviderNames = { keys: keyVariables.anthropic, baseUrl: "ANTHROPIC_BASE_URL", api: "Anthropic" }
const defaultBaseUrl = "https://api.anthropic.com"

const requestOf = (provider: Provider, modelRequest: ModelRequest) =>
  Effect.map(opened(provider, modelRequest), ({ names, request }) => ({
    request: { ...request, maxOutputTokens: request.maxOutputTokens ?? answerLength(request.model) },
    tools: names
  }))

/** Returns the provider with the beta header that a body needs. */
const carrying = (provider: Provider, body: Json): Provider => {
  const beta = betaOf(body)
  return beta === undefined
    ? provider
    : { ...provider, headers: (key) => ({ ...provider.headers(key), "anthropic-beta": beta }) }
}

const stream = (provider: Provider, request: ModelRequest) =>
  Effect.map(requestOf(provider, request), ({ request, tools }) =>
    learning(
      provider.learned,
      request,
      (own, { needs }) => requestBody(own, tools, needs),
      // The API requires a length: another one where that of the request was refused.
      (body) =>
        chunks(provider, events(carrying(provider, body), "v1/messages", { max_tokens: 4_096, ...body }), () =>
          anthropicAnswerReader({ tools, target: targetOf(request) })
        )
    )
  ).pipe(Stream.unwrap)

const countTokens = Effect.fnUntraced(function* (provider: Provider, request: ModelRequest) {
  const { request: bare, tools } = yield* requestOf(provider, {
    model: request.model,
    contents: request.contents
  })
  const body = countBody(bare, tools)
  const answer = yield* call(carrying(provider, body), "v1/messages/count_tokens", body)
  return naturalAt(answer, "input_tokens") ?? (yield* unusable("it contains no token count"))
})

const make = (options: ProviderOptions, send: Send): Model["Service"] => {
  const provider: Provider = {
    ...providerOf(options, defaultBaseUrl, send),
    names,
    needsKey: true,
    headers: (key) => ({ "anthropic-version": "2023-06-01", ...(key === undefined ? {} : { "x-api-key": key }) })
  }
  return modelOf(provider, "anthropic", {
    stream: (request) => stream(provider, request),
    countTokens: (request) => countTokens(provider, request).pipe(countSpan("anthropic", request))
  })
}

/**
 * Anthropic's models, with your own options. Building the layer connects to nothing; without a key every call fails with `AuthenticationError`.
 * The key appears in no error, log or span.
 */
export const layer = (options: ProviderOptions): Layer.Layer<Model> => modelLayer(Effect.succeed(options), make)

/** Anthropic's models. The key is ANTHROPIC_API_KEY; ANTHROPIC_BASE_URL names another endpoint, without `/v1`. */
export const layerConfig: Layer.Layer<Model, Config.ConfigError> = modelLayer(optionsConfig(names), make)
