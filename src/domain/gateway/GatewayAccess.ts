import type { ServeSettings } from "../serve/ServeSettings.ts"
import type { GatewaySettings } from "./GatewaySettings.ts"

/** Who may use the gateway, and whose budget a request counts for. */

/** The keys that may use the gateway, as `sha256:…`, and the tenants that have keys. Neither: all keys may. */
export interface GatewayAccess {
  readonly keys?: ReadonlyArray<string> | undefined
  readonly tenants?: Readonly<Record<string, { readonly keys: ReadonlyArray<string> }>> | undefined
}

/** What a key is counted as. */
export interface KeyAccount {
  /** The name that its use is counted under: that of its tenant, else the hash of the key. */
  readonly account: string
  readonly tenant: string | undefined
}

/** Returns what a key is counted as, by the SHA-256 of its text in hexadecimal digits; undefined where it may not be used. */
export const accountOf = ({ keys, tenants = {} }: GatewayAccess, hash: string): KeyAccount | undefined => {
  const key = `sha256:${hash}`
  const tenant = Object.keys(tenants).find((name) => tenants[name]?.keys.includes(key))
  if (tenant !== undefined) return { account: tenant, tenant }
  const isOpen = keys === undefined && Object.keys(tenants).length === 0
  return isOpen || keys?.includes(key) === true ? { account: hash, tenant: undefined } : undefined
}

/** The limits of keys and of tenants. */
export const limitsOfKeys = ({
  budgets = {},
  tenants = {}
}: Pick<GatewaySettings, "budgets" | "tenants">): ServeSettings => ({
  limits: { requests: budgets.requests ?? Infinity, tokens: budgets.tokens ?? Infinity },
  tenants: Object.fromEntries(
    Object.entries(tenants).map(([name, own]) => [name, own.budgets === undefined ? {} : { limits: own.budgets }])
  )
})
