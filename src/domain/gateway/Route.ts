/** Determines the dialect of a request from its method and path. */

import type { Dialect } from "../wire/Dialect.ts"
import type { RequestTarget } from "./RequestTarget.ts"

/** The providers behind the gateway. OpenAI serves two dialects. */
export const providers = ["anthropic", "gemini", "openai"] as const
export type Provider = (typeof providers)[number]

/** The addresses of the real servers. */
export const defaultUpstreams: Readonly<Record<Provider, string>> = {
  anthropic: "https://api.anthropic.com",
  gemini: "https://generativelanguage.googleapis.com",
  openai: "https://api.openai.com"
}

/** What a request asks for, read from its method and path. */
export interface Route {
  readonly dialect: Dialect
  /** Whether the request asks for an answer or for a token count. */
  readonly asks: "answer" | "count"
  /** The model, if the path names it. */
  readonly model: string | undefined
  /**
   * Whether the stream is a JSON array, which Gemini sends when the request does not ask for events. It is passed on
   * unread.
   */
  readonly isArray: boolean
}

const geminiPath =
  /^\/v1(?:beta|alpha)?\d*\/(?:(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\/google\/)?(?:models|tunedModels)\/([^/:]+):(generateContent|streamGenerateContent|countTokens)$/

/** Paths under which servers offer OpenAI's dialects: its own, those of proxies and of other providers, and Azure's, which name a deployment. */
const openAiPath =
  /^(?:\/v1|\/v1beta\/openai|\/v1(?:beta1)?\/projects\/[^/]+\/locations\/[^/]+\/endpoints\/[^/]+|\/api\/v1|\/api\/(?:coding\/)?paas\/v4|\/compatible-mode\/v1|\/inference(?:\/v1)?|\/openai(?:\/v1|\/deployments\/([^/]+))?)?\/(chat\/completions|responses)$/

const anthropicPath = /^(?:\/api)?(?:\/anthropic)?\/v1\/messages(\/count_tokens)?$/

/** Claude on Vertex AI. */
const vertexClaudePath =
  /^\/v1(?:beta1)?\/projects\/[^/]+\/locations\/[^/]+\/publishers\/anthropic\/models\/([^/:]+):(?:rawPredict|streamRawPredict)$/

const plainRoute = { model: undefined, isArray: false } as const

/** Returns the route of a request. Undefined for requests that the gateway only passes on. */
export const routeOf = (method: string, { path, query }: RequestTarget): Route | undefined => {
  if (method !== "POST") return undefined
  const anthropic = anthropicPath.exec(path)
  if (anthropic !== null) {
    return { ...plainRoute, dialect: "anthropic", asks: anthropic[1] === undefined ? "answer" : "count" }
  }
  const [, claude] = vertexClaudePath.exec(path) ?? []
  if (claude === "count-tokens") return { ...plainRoute, dialect: "anthropic", asks: "count" }
  if (claude !== undefined) return { ...plainRoute, dialect: "anthropic", asks: "answer", model: claude }
  const [, deployment, kind] = openAiPath.exec(path) ?? []
  if (kind !== undefined) {
    return { ...plainRoute, dialect: kind === "responses" ? kind : "chat", asks: "answer", model: deployment }
  }
  const [, model, action] = geminiPath.exec(path) ?? []
  if (model === undefined) return undefined
  return {
    dialect: "gemini",
    asks: action === "countTokens" ? "count" : "answer",
    model,
    isArray: action === "streamGenerateContent" && query.find(({ name }) => name === "alt")?.value !== "sse"
  }
}

/** Returns the provider of a request with a route. Gemini and Vertex AI serve OpenAI's dialect, too. */
export const providerOf = ({ dialect }: Route, { path }: RequestTarget): Provider =>
  dialect === "anthropic"
    ? dialect
    : dialect === "gemini" || /^\/v1(?:beta1?)?\/(?:openai|projects)\//.test(path)
      ? "gemini"
      : "openai"

/** Returns the provider of a request without a known dialect, from its path and the names of its headers. */
export const providerOfOther = ({ path }: RequestTarget, hasHeader: (name: string) => boolean): Provider => {
  if (/\/publishers\/anthropic\//.test(path)) return "anthropic"
  if (
    /^\/(?:v1(?:beta|alpha)|v1(?:beta1)?\/projects|upload|download)(?:\/|$)/.test(path) ||
    hasHeader("x-goog-api-key")
  )
    return "gemini"
  if (hasHeader("anthropic-version") || hasHeader("x-api-key") || path.startsWith("/v1/messages")) return "anthropic"
  return "openai"
}

/** A list of models, or one of it. */
const modelsPath = /^\/v1(?:beta|alpha)?\d*\/models(?:\/[^/:]+)?$/

/**
 * Whether a request only asks a model, counts, or lists models: what any client with an account may do. Other paths reach what belongs
 * to the account itself: files, batches, stored answers, tuned models, its administration.
 */
export const isModelRequest = (method: string, { path }: RequestTarget, route: Route | undefined): boolean =>
  route === undefined
    ? (method === "GET" || method === "HEAD") && modelsPath.test(path)
    : !/\/tunedModels\/|\/endpoints\/(?!openapi\/)/.test(path)
