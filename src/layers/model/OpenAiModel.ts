/** OpenAI's models through the Responses API, and those of any server that speaks Chat Completions: OpenRouter, Ollama, vLLM, llama.cpp, LM Studio. */

import { type Config, Effect, type Layer, Stream } from "effect"
import { answerLength, modelLimits } from "../../domain/model/ModelLimits.ts"
import { keyVariables } from "../../domain/model/ModelRoute.ts"
import { chatAnswerReader } from "../../domain/wire/chat/Answer.ts"
import { chatBody } from "../../domain/wire/chat/Request.ts"
import { responsesAnswerReader } from "../../domain/wire/responses/Answer.ts"
import { responsesBody } from "../../domain/wire/responses/Request.ts"
import { type Model, type ModelRequest } from "../../services/model/Model.ts"
import { estimateContents } from "../../services/tokens/Calibrations.ts"
import { chunks, learning, modelOf } from "./AnswerChunks.ts"
import type { Send } from "./HttpSend.ts"
import { modelLayer, opened, optionsConfig, type Provider, type ProviderOptions, providerOf } from "./Provider.ts"
import type { ProviderNames } from "./ProviderErrors.ts"
import { events } from "./ProviderExchange.ts"

/** Options for OpenAI or a compatible server. */
export interface Options extends ProviderOptions {
  /** The dialect. Default: `responses` at OpenAI's own address, `chat` at any other. */
  readonly api?: "chat" | "responses" | undefined
}

const names: ProviderNames = { keys: keyVariables.openai, baseUrl: "OPENAI_BASE_URL", api: "OpenAI" }
const defaultBaseUrl = "https://api.openai.com/v1"

/** A server and its dialect. */
interface Server extends Provider {
  readonly api: "chat" | "responses"
  readonly isOpenAi: boolean
}

/** Servers whose answers end after some hundred tokens where a request names no length: Kimi's and Cloudflare's. */
const answersBriefly = /(?:^|\.)(?:moonshot\.(?:ai|cn)|kimi\.com|api\.cloudflare\.com)$/

/** The length of an answer, in tokens, that these servers are asked for where the window of the model is not known: their smallest has 8,000 tokens. */
const briefLength = 2_048

const stream = (server: Server, request: ModelRequest) =>
  Effect.map(opened(server, request), ({ names: tools, request: asked }) => {
    const longest = modelLimits(asked.model) === undefined ? briefLength : answerLength(asked.model)
    const length = answersBriefly.test(asked.server) ? longest : undefined
    const request = { ...asked, maxOutputTokens: asked.maxOutputTokens ?? length }
    const reading = { tools, target: { dialect: server.api, server: request.server, model: request.model } }
    const isChat = server.api === "chat"
    const path = isChat ? "chat/completions" : "responses"
    const makeReader = () => (isChat ? chatAnswerReader(reading) : responsesAnswerReader(reading))
    return learning(
      server.learned,
      request,
      (own, { needs }) => (isChat ? chatBody(own, tools, server.isOpenAi, needs) : responsesBody(own, tools)),
      (body) => chunks(server, events(server, path, body), makeReader)
    )
  }).pipe(Stream.unwrap)

const make = (options: Options, send: Send): Model["Service"] => {
  const provider = providerOf(options, defaultBaseUrl, send)
  const isOpenAi = provider.baseUrl.host === new URL(defaultBaseUrl).host
  const server: Server = {
    ...provider,
    names,
    isOpenAi,
    api: options.api ?? (isOpenAi ? "responses" : "chat"),
    // A local server may need no key.
    needsKey: isOpenAi,
    headers: (key): Readonly<Record<string, string>> => (key === undefined ? {} : { authorization: `Bearer ${key}` })
  }
  return modelOf(provider, "openai", { stream: (request) => stream(server, request), countTokens: estimateContents })
}

/**
 * OpenAI's models or those of a compatible server, with your own options. Building the layer connects to nothing; without a key every call to
 * OpenAI fails with `AuthenticationError`. Tokens are estimated, because these servers count none. The key appears in no error, log or span.
 */
export const layer = (options: Options): Layer.Layer<Model> => modelLayer(Effect.succeed(options), make)

/** OpenAI's models. The key is OPENAI_API_KEY; OPENAI_BASE_URL names another endpoint, with its `/v1`. */
export const layerConfig: Layer.Layer<Model, Config.ConfigError> = modelLayer(optionsConfig(names), make)
