import { Effect, Redacted } from "effect"
import { hash } from "node:crypto"
import type { IncomingMessage } from "node:http"
import type { Provider } from "../../domain/gateway/Dialect.ts"
import { accountOf, type GatewayAccess } from "../../domain/gateway/GatewayAccess.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { sessionHeader } from "./PassRequest.ts"
import { endToEnd } from "./UpstreamRequests.ts"

/** Authenticates clients of the gateway and chooses the keys that are sent upstream. */

/** Lets tokens of the server replace keys of providers. */
export interface TokenAccess {
  /** The tenant of a token; undefined for one that is not valid. */
  readonly tenantOf: (token: Redacted.Redacted) => Effect.Effect<string | undefined>
  /** The keys that are sent upstream in place of tokens. */
  readonly providerKeys: Readonly<Partial<Record<Provider, Redacted.Redacted>>>
  /** Whether any client may come with its own key in place of a token. */
  readonly ownKeys: boolean
}

/** The access of an admitted client. */
export interface ClientAccess {
  /** Whose conversations the request may see. */
  readonly owner: string
  /** The name that its use is counted under. */
  readonly account: string
  readonly tenant: string | undefined
  /** The headers that go upstream, and the path with its query. */
  readonly headers: ReadonlyArray<string>
  readonly path: string
}

/** Why a request is refused before it goes out. */
export interface Refusal {
  readonly status: 401 | 403 | 429
  readonly message: string
  readonly retryAfter?: number | undefined
}

/** The header of a server's token beside a client's own key. It is not sent on. */
const tokenHeader = "x-palimpsest-token"

const keyHeaders = ["authorization", "x-api-key", "x-goog-api-key"]

const keyHeader = (provider: Provider, key: string): ReadonlyArray<string> => {
  switch (provider) {
    case "anthropic":
      return ["X-Api-Key", key]
    case "gemini":
      return ["X-Goog-Api-Key", key]
    case "openai":
      return ["Authorization", `Bearer ${key}`]
  }
}

/** Returns the key of a client from any of the places where clients put it; empty if there is none. */
const keyOf = ({ headers }: IncomingMessage, url: URL): string => {
  const { authorization, "x-api-key": key, "x-goog-api-key": google } = headers
  const bearer = authorization?.replace(/^Bearer\s+/i, "")
  const present = [key, google, bearer, url.searchParams.get("key")].find(
    (value) => typeof value === "string" && value !== ""
  )
  return String(present ?? "")
}

const sha256 = (text: string): string => hash("sha256", text, "hex")

const withoutKey = (path: string): string => path.replace(/([?&])key=[^&]*&?/, "$1").replace(/[?&]$/, "")

const refuse = (status: Refusal["status"], message: string): Refusal => ({
  status,
  message: `palimpsest gateway: ${message}`
})

/** Decides by the key or token whether a client is admitted, and for which account. */
const admitted = Effect.fnUntraced(function* (
  options: GatewayAccess & { readonly tokens?: TokenAccess | undefined },
  request: IncomingMessage,
  url: URL,
  provider: Provider
): Effect.fn.Return<ClientAccess | Refusal> {
  const { tokens } = options
  const path = request.url ?? "/"
  const headers = endToEnd(request.rawHeaders, ["host", sessionHeader, tokenHeader])
  const key = keyOf(request, url)
  const owner = sha256(key)
  const tokenValue = request.headers[tokenHeader]
  const token = typeof tokenValue === "string" ? tokenValue : key
  const tenant = tokens === undefined || token === "" ? undefined : yield* tokens.tenantOf(Redacted.make(token))
  if (tokens !== undefined && tenant !== undefined) {
    if (token === tokenValue) return { owner, account: tenant, tenant, headers, path }
    const providerKey = tokens.providerKeys[provider]
    if (providerKey === undefined) return refuse(403, `this server has no key for ${provider}`)
    return {
      owner: sha256(`tenant ${tenant}`),
      account: tenant,
      tenant,
      headers: [...endToEnd(headers, keyHeaders), ...keyHeader(provider, Redacted.value(providerKey))],
      path: withoutKey(path)
    }
  }
  const isClosed = tokens?.ownKeys === false && options.keys === undefined && options.tenants === undefined
  const account = isClosed ? undefined : accountOf(options, owner)
  if (account !== undefined && tokenValue === undefined) return { owner, ...account, headers, path }
  return refuse(
    401,
    tokens === undefined ? "this key is not allowed to use the gateway" : "a valid token of this server is required"
  )
})

/** Decides whether a request is admitted: its key or token must be valid and within its budget. */
export const accessOf = Effect.fnUntraced(function* (
  options: GatewayAccess & { readonly tokens?: TokenAccess | undefined },
  request: IncomingMessage,
  url: URL,
  provider: Provider
): Effect.fn.Return<ClientAccess | Refusal, never, TenantLimiter> {
  const limiter = yield* TenantLimiter
  const access = yield* admitted(options, request, url, provider)
  if ("status" in access) return access
  const used = yield* Effect.result(
    Effect.andThen(limiter.request(access.account), limiter.checkTokens(access.account))
  )
  if (used._tag === "Success") return access
  return { ...refuse(429, used.failure.message), retryAfter: used.failure.retryAfter }
})
