/** Decides who may use the gateway, and whose budget a request is charged to. */

import type { ServeSettings } from "../serve/ServeSettings.ts"
import type { GatewaySettings } from "./GatewaySettings.ts"

/**
 * The keys that may use the gateway, as `sha256:…`, and the tenants with keys. When both are absent, every key may
 * use it.
 */
export interface GatewayAccess {
  readonly keys?: ReadonlyArray<string> | undefined
  readonly tenants?: Readonly<Record<string, { readonly keys: ReadonlyArray<string> }>> | undefined
}

/** The account of a key. */
export interface KeyAccount {
  /** The name under which usage is counted: the tenant's, or else the hash of the key. */
  readonly account: string
  readonly tenant: string | undefined
}

/**
 * Returns the account of a key, from the SHA-256 of the key in hexadecimal digits. Returns undefined for a key that
 * may not use the gateway.
 */
export const accountOf = ({ keys, tenants = {} }: GatewayAccess, hash: string): KeyAccount | undefined => {
  const key = `sha256:${hash}`
  const tenant = Object.keys(tenants).find((name) => tenants[name]?.keys.includes(key))
  if (tenant !== undefined) return { account: tenant, tenant }
  const isOpen = keys === undefined && Object.keys(tenants).length === 0
  return isOpen || keys?.includes(key) === true ? { account: hash, tenant: undefined } : undefined
}

/**
 * Returns the text whose hash owns the conversations of a request: views, originals and hidden exchanges are stored and found under it.
 * The tenant is a part of it, because tenants of a local server may have the same key, or none; so is the name that a client gave to its
 * conversation.
 */
export const ownerText = (tenant: string | undefined, key: string, session: string | undefined): string =>
  JSON.stringify([tenant ?? null, key, session ?? null])

/** Returns the limits of keys and of tenants. */
export const limitsOfKeys = ({
  budgets = {},
  tenants = {}
}: Pick<GatewaySettings, "budgets" | "tenants">): ServeSettings => ({
  limits: { requests: budgets.requests ?? Infinity, tokens: budgets.tokens ?? Infinity },
  tenants: Object.fromEntries(
    Object.entries(tenants).map(([name, own]) => [name, own.budgets === undefined ? {} : { limits: own.budgets }])
  )
})
