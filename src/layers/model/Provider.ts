/** How a provider is configured: its key, its address and its time limits, from options or from the environment. */

import { Config, Effect, Layer, Option, Predicate, Redacted, Result, Schema, type Duration } from "effect"
import { optionCheck } from "../../domain/compression/InvalidOption.ts"
import type { LearnedForm } from "../../domain/wire/LearnedForm.ts"
import { toolDeclarations, toolNames } from "../../domain/wire/ToolDeclarations.ts"
import {
  failingModel,
  InvalidRequestError,
  Model,
  type ModelError,
  type ModelRequest
} from "../../services/model/Model.ts"
import { send, type Send } from "./HttpSend.ts"
import { failed, keyError, type ProviderNames } from "./ProviderErrors.ts"

/** Time limits. A call that takes longer is aborted at the socket and fails with a `TimeoutError`. */
export interface Timeouts {
  /** Without a byte of an answer: since the request, and since the byte before. A comment that keeps the connection open is one. */
  readonly chunk: Duration.Input
  /** For a count of tokens. */
  readonly countTokens: Duration.Input
}

/** The default limits: models that think, and servers that load a model first, send nothing for a while. */
const defaultTimeouts: Timeouts = { chunk: "120 seconds", countTokens: "30 seconds" }

/** Options of a provider. */
export interface ProviderOptions {
  /** The key. Default: none, for servers that need none. */
  readonly apiKey?: Redacted.Redacted<string> | string | undefined
  /** The address. Default: the provider's own. */
  readonly baseUrl?: URL | string | undefined
  /** The model that answers all requests. Default: the model that each request names. */
  readonly model?: string | undefined
  readonly timeouts?: Partial<Timeouts> | undefined
}

/** A configured provider. */
export interface Provider {
  readonly names: ProviderNames
  readonly key: string | undefined
  readonly baseUrl: URL
  readonly model: string | undefined
  readonly timeouts: Timeouts
  /** The headers of every request. */
  readonly headers: (key: string | undefined) => Readonly<Record<string, string>>
  /** Whether every call needs a key. */
  readonly needsKey: boolean
  readonly send: Send
  /** What the server refused in requests, by model. */
  readonly learned: Map<string, LearnedForm>
}

/** Returns the input of a request, and the names of its tools. Fails for tools that are not declared functions. */
export const opened = (
  { baseUrl }: Provider,
  { contents, generation = {}, model, mustCall, systemInstruction, tools }: ModelRequest
) =>
  Effect.fromResult(
    Result.mapBoth(toolDeclarations(tools), {
      onFailure: (detail) => failed(new InvalidRequestError({ detail })),
      onSuccess: (declared) => {
        const basic = { model, server: baseUrl.host, contents, systemInstruction, tools: declared, mustCall }
        return { request: { ...basic, ...generation }, names: toolNames(declared) }
      }
    })
  )

/** Returns the parts of a provider that its options determine. */
export const providerOf = (
  { apiKey, baseUrl, model, timeouts }: ProviderOptions,
  defaultBaseUrl: string,
  send: Send
): Omit<Provider, "headers" | "names" | "needsKey"> => {
  const key = (apiKey === undefined || typeof apiKey === "string" ? (apiKey ?? "") : Redacted.value(apiKey)).trim()
  const url = new URL(baseUrl ?? defaultBaseUrl)
  // A relative path would replace the last folder of a base without a slash.
  if (!url.pathname.endsWith("/")) url.pathname += "/"
  return {
    key: key === "" ? undefined : key,
    baseUrl: url,
    model,
    send,
    learned: new Map(),
    timeouts: { ...defaultTimeouts, ...timeouts }
  }
}

const addressText = "a URL that starts with http"

/** Without its scheme, `localhost:8080` would be a URL of the scheme `localhost`. */
const isWeb = ({ protocol }: URL) => /^https?:$/.test(protocol)

const Endpoint = Schema.Union([
  Schema.Literal(""),
  Schema.URL.check(Schema.makeFilter((url) => isWeb(url) || addressText))
])

/** The first value that is not blank: shells and env files leave blank what is not set. */
const firstFilled = (values: ReadonlyArray<Option.Option<Redacted.Redacted<string>>>) =>
  values.flatMap(Option.toArray).find((value) => Redacted.value(value).trim() !== "")

/** The options in variables: the first key that is set, and the address. A blank value counts as not set. */
export const optionsConfig = (names: ProviderNames): Config.Config<ProviderOptions> =>
  Config.all({
    keys: Config.all(names.keys.map((name) => Config.option(Config.Redacted(name)))),
    endpoint: Config.schema(Endpoint, names.baseUrl).pipe(Config.withDefault(""))
  }).pipe(
    Config.map(({ endpoint, keys }) => ({
      apiKey: firstFilled(keys),
      baseUrl: endpoint === "" ? undefined : endpoint
    }))
  )

const isAddress = (value: unknown) => URL.canParse(String(value)) && isWeb(new URL(String(value)))

/** Says what is wrong with the options of a provider; undefined: nothing. No message shows a key. */
const optionsProblem = ({ apiKey, baseUrl, model }: ProviderOptions): string | undefined =>
  (apiKey === undefined || typeof apiKey === "string" || Redacted.isRedacted(apiKey)
    ? undefined
    : "apiKey is not what it has to be; expected a text, or one that is redacted") ??
  optionCheck(isAddress, addressText)("baseUrl", baseUrl) ??
  optionCheck(Predicate.isString, "the name of a model")("model", model)

/**
 * A layer of a provider, with options of its own or from the environment. Building it connects to nothing; with options that no provider can have, each
 * call fails.
 */
export const modelLayer = <E>(
  options: Effect.Effect<ProviderOptions, E>,
  make: (options: ProviderOptions, send: Send) => Model["Service"]
): Layer.Layer<Model, E> =>
  Layer.effect(
    Model,
    Effect.zipWith(options, send, (given, own) => {
      const detail = optionsProblem(given)
      return detail === undefined ? make(given, own) : failingModel(() => new InvalidRequestError({ detail }))
    })
  )

/** Whether a key can be a header. HTTP clients refuse any other; `fetch` says so with the key in its message. */
const isSendable = (key: string): boolean => /^[\x21-\x7e]+$/.test(key)

/** The key, if a request can be sent with it. */
export const keyOf = ({ key, names, needsKey }: Provider): Effect.Effect<string | undefined, ModelError> => {
  if (key === undefined) return needsKey ? Effect.fail(failed(keyError("MissingKey", names))) : Effect.undefined
  return isSendable(key) ? Effect.succeed(key) : Effect.fail(failed(keyError("InvalidKey", names)))
}
