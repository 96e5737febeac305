import { type Config, Effect, type Layer, Stream } from "effect"
import { keyVariables } from "../../domain/model/ModelRoute.ts"
import { chatAnswerReader } from "../../domain/wire/chat/Answer.ts"
import { chatBody } from "../../domain/wire/chat/Request.ts"
import { type LearnedForm, learnedFrom, nothingLearned, withLearned } from "../../domain/wire/OpenAiRequest.ts"
import { responsesAnswerReader } from "../../domain/wire/responses/Answer.ts"
import { responsesBody } from "../../domain/wire/responses/Request.ts"
import { type Model, type ModelChunk, type ModelError, type ModelRequest } from "../../services/model/Model.ts"
import { streamSpan } from "../../services/model/ModelSpans.ts"
import { estimateContents } from "../../services/tokens/Calibrations.ts"
import { chunks, modelOf } from "./AnswerChunks.ts"
import type { Send } from "./HttpSend.ts"
import { modelLayer, opened, optionsConfig, type Provider, type ProviderOptions, providerOf } from "./Provider.ts"
import type { ProviderNames } from "./ProviderErrors.ts"
import { events } from "./ProviderExchange.ts"

/** OpenAI's models through the Responses API, and those of any server that speaks Chat Completions: OpenRouter, Ollama, vLLM, llama.cpp, LM Studio. */

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
  /** What it refused in requests, by model. */
  readonly learned: Map<string, LearnedForm>
}

const stream = (server: Server, request: ModelRequest) =>
  Effect.map(opened(server, request), ({ names: tools, request }) => {
    const reading = { tools, target: { dialect: server.api, server: request.server, model: request.model } }
    const { learned } = server
    const isChat = server.api === "chat"
    const path = isChat ? "chat/completions" : "responses"
    const makeReader = () => (isChat ? chatAnswerReader(reading) : responsesAnswerReader(reading))
    const ask = (known: LearnedForm, isNew: boolean): Stream.Stream<ModelChunk, ModelError> => {
      const own = isChat
        ? chatBody(request, tools, server.isOpenAi, known.needsReasoning)
        : responsesBody(request, tools)
      const body = withLearned(own, known)
      let isAccepted = false
      return chunks(server, events(server, path, body), makeReader).pipe(
        // A refusal may quote anything: what it told is known once a request of this form was accepted.
        Stream.onFirst(() =>
          Effect.sync(() => {
            isAccepted = true
            if (isNew) learned.set(request.model, known)
          })
        ),
        Stream.catch((error) => {
          const { reason } = error
          const isForm = !isAccepted && reason._tag === "InvalidRequestError" && reason.refused === undefined
          const more = isForm ? learnedFrom(known, reason.detail, body) : undefined
          return more === undefined ? Stream.fail(error) : ask(more, true)
        })
      )
    }
    return Stream.suspend(() => ask(learned.get(request.model) ?? nothingLearned, false))
  }).pipe(Stream.unwrap, streamSpan("openai", request))

const make = (options: Options, send: Send): Model["Service"] => {
  const provider = providerOf(options, defaultBaseUrl, send)
  const isOpenAi = provider.baseUrl.host === new URL(defaultBaseUrl).host
  const server: Server = {
    ...provider,
    names,
    isOpenAi,
    learned: new Map(),
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
