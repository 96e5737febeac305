/** Decides who sends a request, who pays for it, whose conversations it may see, and with which key it goes upstream. */

import { Effect, Redacted } from "effect"
import type { IncomingMessage } from "node:http"
import { type Carried, keysOf, withOperatorKey, withOwnKey } from "../../domain/gateway/ClientKeys.ts"
import { accountOf, type GatewayAccess, ownerText } from "../../domain/gateway/GatewayAccess.ts"
import { endToEnd, withoutHeaders } from "../../domain/gateway/HeaderList.ts"
import { hashText } from "../../domain/gateway/MessageChain.ts"
import type { RequestTarget } from "../../domain/gateway/RequestTarget.ts"
import { isModelRequest, type Provider, type Route } from "../../domain/gateway/Route.ts"
import type { TooMany } from "../../services/serve/ServeErrors.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"

/** Lets tokens of the server replace keys of providers. */
export interface TokenAccess {
  /** The tenant of a token; undefined for one that is not valid. */
  readonly tenantOf: (token: Redacted.Redacted) => Effect.Effect<string | undefined>
  /** The keys that are sent upstream in place of tokens. */
  readonly providerKeys: Readonly<Partial<Record<Provider, Redacted.Redacted>>>
  /** Whether any client may come with its own key in place of a token. */
  readonly ownKeys: boolean
}

/** Who may use the gateway, by key or by token. */
export interface AccessOptions extends GatewayAccess {
  /** Tokens of the server that clients may use in place of keys. Absent: keys only. */
  readonly tokens?: TokenAccess | undefined
}

/** The access of an admitted client. */
export interface ClientAccess {
  /** Whose conversations the request may see. */
  readonly owner: string
  /** The name that its use is counted under. */
  readonly account: string
  readonly tenant: string | undefined
  /** Whether the operator's key goes upstream. */
  readonly isOperators: boolean
  /** The headers and the query that go upstream. */
  readonly carried: Carried
}

/** Why a request is refused before it goes out. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 415 | 426 | 429
  readonly message: string
  readonly retryAfter?: number | undefined
}

/** The header of a server's token beside a client's own key, and the one by which a client names its conversation. Neither is sent on. */
const tokenHeader = "x-palimpsest-token"
const sessionHeader = "x-palimpsest-session"

/** Headers of a request that are not sent on: those two, and those with which some servers replace the method that a request is judged by. */
const ownHeaders = ["host", tokenHeader, sessionHeader, "x-http-method", "x-http-method-override", "x-method-override"]

/** Makes a refusal. */
export const refuse = (status: Refusal["status"], message: string): Refusal => ({
  status,
  message: `palimpsest gateway: ${message}`
})

const single = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "string" ? value : undefined

/** Decides by the key or token whether a client is admitted, and for which account. */
export const admitted = Effect.fnUntraced(function* (
  options: AccessOptions,
  { headers, rawHeaders }: Pick<IncomingMessage, "headers" | "rawHeaders">,
  { query }: RequestTarget,
  provider: Provider
) {
  const { tokens } = options
  const carried = { headers: withoutHeaders(endToEnd(rawHeaders), ownHeaders), query }
  const [key = "", ...others] = keysOf(provider, carried)
  if (others.length > 0) {
    return refuse(400, `the request has more than one key for ${provider}; send one`)
  }
  const tenantOf = (token: string | undefined) =>
    tokens === undefined || token === undefined || token === ""
      ? Effect.undefined
      : tokens.tenantOf(Redacted.make(token))
  const besides = single(headers[tokenHeader])
  const isToken = (yield* tenantOf(key)) !== undefined
  const tenant = yield* tenantOf(besides ?? key)
  const session = single(headers[sessionHeader])
  const ownerOf = (name: string | undefined, ofKey: string) => hashText(ownerText(name, ofKey, session))
  if (tokens !== undefined && tenant !== undefined) {
    if (!isToken) {
      const owner = ownerOf(tenant, key)
      return { owner, account: tenant, tenant, isOperators: false, carried: withOwnKey(provider, carried) }
    }
    const providerKey = tokens.providerKeys[provider]
    if (providerKey === undefined) return refuse(403, `this server has no key for ${provider}`)
    return {
      owner: ownerOf(tenant, ""),
      account: tenant,
      tenant,
      isOperators: true,
      carried: withOperatorKey(provider, carried, Redacted.value(providerKey))
    }
  }
  const isClosed = tokens?.ownKeys === false && options.keys === undefined && options.tenants === undefined
  const account = isClosed || isToken ? undefined : accountOf(options, hashText(key))
  if (account !== undefined && besides === undefined) {
    const owner = ownerOf(account.tenant, key)
    return { owner, ...account, isOperators: false, carried: withOwnKey(provider, carried) }
  }
  return refuse(
    401,
    tokens === undefined ? "this key is not allowed to use the gateway" : "a valid token of this server is required"
  )
})

/** The refusal of a request that is beyond a limit. */
export const beyondLimit = ({ message, retryAfter }: TooMany): Refusal => ({ ...refuse(429, message), retryAfter })

const isRead = (method: string): boolean => method === "GET" || method === "HEAD" || method === "OPTIONS"

/**
 * Decides whether a request is admitted: its key or token must be valid and within its budget, and its path one that the payer allows. The
 * operator's key serves models alone. A budget of tokens holds only where tokens are counted.
 */
export const accessOf = Effect.fnUntraced(function* (
  options: AccessOptions,
  request: Pick<IncomingMessage, "headers" | "rawHeaders" | "method">,
  target: RequestTarget,
  { provider, route }: { readonly provider: Provider; readonly route: Route | undefined }
) {
  const limiter = yield* TenantLimiter
  const method = request.method ?? "GET"
  const access = yield* admitted(options, request, target, provider)
  if ("status" in access) return access
  if (access.isOperators && !isModelRequest(method, target, route)) {
    return refuse(403, "a token gives access to chats, counts of tokens and lists of models")
  }
  if (route === undefined && !isRead(method) && Number.isFinite(limiter.limits(access.account).tokens)) {
    return refuse(403, "a budget of tokens allows chats and counts of tokens only: other requests cannot be counted")
  }
  const used = yield* Effect.result(
    Effect.andThen(limiter.request(access.account), limiter.checkTokens(access.account))
  )
  return used._tag === "Success" ? access : beyondLimit(used.failure)
})
