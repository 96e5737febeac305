/** Determines the dialect of a request from its method and path. */

/** The dialects that the gateway reads: Anthropic's Messages, Gemini, OpenAI's Chat Completions and Responses. */
export const dialects = ["anthropic", "gemini", "chat", "responses"] as const
export type Dialect = (typeof dialects)[number]

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
  /** Whether the path asks for a stream. In other dialects the body does. */
  readonly isStream: boolean
  /**
   * Whether the stream is a JSON array, which Gemini sends when the request does not ask for events. It is passed on
   * unread.
   */
  readonly isArray: boolean
}

const geminiPath =
  /^\/v1(?:beta|alpha)?\d*\/(?:models|tunedModels)\/([^/:]+):(generateContent|streamGenerateContent|countTokens)$/

const fixed: Readonly<Record<string, Pick<Route, "dialect" | "asks">>> = {
  "/v1/messages": { dialect: "anthropic", asks: "answer" },
  "/v1/messages/count_tokens": { dialect: "anthropic", asks: "count" },
  "/v1/chat/completions": { dialect: "chat", asks: "answer" },
  "/v1/responses": { dialect: "responses", asks: "answer" }
}

/** The part of a request's address that determines its route. */
export interface RequestAddress {
  readonly pathname: string
  readonly searchParams: { readonly get: (name: string) => string | null }
}

/** Returns the route of a request. Undefined for requests that the gateway only passes on. */
export const routeOf = (method: string, { pathname, searchParams }: RequestAddress): Route | undefined => {
  if (method !== "POST") return undefined
  const known = Object.hasOwn(fixed, pathname) ? fixed[pathname] : undefined
  if (known !== undefined) return { ...known, model: undefined, isStream: false, isArray: false }
  const [, model, action] = geminiPath.exec(pathname) ?? []
  if (model === undefined) return undefined
  return {
    dialect: "gemini",
    asks: action === "countTokens" ? "count" : "answer",
    model,
    isStream: action === "streamGenerateContent",
    isArray: action === "streamGenerateContent" && searchParams.get("alt") !== "sse"
  }
}

/** Returns the provider of a dialect. */
export const providerOf = (dialect: Dialect): Provider =>
  dialect === "chat" || dialect === "responses" ? "openai" : dialect

/** Returns the provider of a request without a known dialect, from its path and the names of its headers. */
export const providerOfOther = (pathname: string, hasHeader: (name: string) => boolean): Provider => {
  if (/^\/(?:v1(?:beta|alpha)|upload|download)(?:\/|$)/.test(pathname) || hasHeader("x-goog-api-key")) return "gemini"
  if (hasHeader("anthropic-version") || hasHeader("x-api-key") || pathname.startsWith("/v1/messages"))
    return "anthropic"
  return "openai"
}
