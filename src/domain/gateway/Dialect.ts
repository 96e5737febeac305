/** Which dialect a request speaks, by its method and path. */

/** The dialects that the gateway reads: Anthropic's Messages, Gemini, OpenAI's Chat Completions and Responses. */
export const dialects = ["anthropic", "gemini", "chat", "responses"] as const
export type Dialect = (typeof dialects)[number]

/** The servers behind the gateway. Both dialects of OpenAI are of one. */
export const providers = ["anthropic", "gemini", "openai"] as const
export type Provider = (typeof providers)[number]

/** The addresses of the real servers. */
export const defaultUpstreams: Readonly<Record<Provider, string>> = {
  anthropic: "https://api.anthropic.com",
  gemini: "https://generativelanguage.googleapis.com",
  openai: "https://api.openai.com"
}

/** A request of a dialect. */
export interface Route {
  readonly dialect: Dialect
  /** What is asked for: an answer, or a number of tokens. */
  readonly asks: "answer" | "count"
  /** The model, where the path names it. */
  readonly model: string | undefined
  /** Whether the path asks for a stream; the body does so in other dialects. */
  readonly isStream: boolean
  /** Whether the stream is an array of JSON, as Gemini sends it where no events are asked for. It is passed on unread. */
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

/** What counts of the address of a request. */
export interface RequestAddress {
  readonly pathname: string
  readonly searchParams: { readonly get: (name: string) => string | null }
}

/** Returns what a request asks for; undefined for all requests that are only passed on. */
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

/** The server of a dialect. */
export const providerOf = (dialect: Dialect): Provider =>
  dialect === "chat" || dialect === "responses" ? "openai" : dialect

/** The server that a request belongs to, which is of no dialect, by its path and the names of its headers. */
export const providerOfOther = (pathname: string, hasHeader: (name: string) => boolean): Provider => {
  if (/^\/(?:v1(?:beta|alpha)|upload|download)(?:\/|$)/.test(pathname) || hasHeader("x-goog-api-key")) return "gemini"
  if (hasHeader("anthropic-version") || hasHeader("x-api-key") || pathname.startsWith("/v1/messages"))
    return "anthropic"
  return "openai"
}
