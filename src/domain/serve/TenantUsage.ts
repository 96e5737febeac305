/** Counts what a tenant has used: requests per minute and tokens per day. */

import type { TenantLimits } from "./ServeSettings.ts"

/** The usage in one window. */
interface Window {
  /** Milliseconds since 1970. */
  readonly from: number
  readonly used: number
}

/** The usage of a tenant. */
export interface TenantUsage {
  readonly requests: Window
  readonly tokens: Window
}

/** The usage of a tenant that has used nothing. */
export const unused: TenantUsage = { requests: { from: -Infinity, used: 0 }, tokens: { from: -Infinity, used: 0 } }

/** The length of each window, in milliseconds. */
export const periods = { requests: 60_000, tokens: 86_400_000 } as const

/** A limit that is reached, and the seconds until it is lifted. */
export interface LimitReached {
  readonly limit: keyof TenantUsage
  /** The most that the period allows. */
  readonly maximum: number
  readonly retryAfter: number
}

const current = (window: Window, kind: keyof TenantUsage, now: number): Window =>
  now - window.from < periods[kind] && now >= window.from ? window : { from: now, used: 0 }

/** Returns the usage after one more amount. */
export const used = (usage: TenantUsage, kind: keyof TenantUsage, amount: number, now: number): TenantUsage => {
  const window = current(usage[kind], kind, now)
  return { ...usage, [kind]: { ...window, used: window.used + Math.max(0, amount) } }
}

/** Returns the limit that is reached. Undefined when none is. `isCounted`: the request that asks is in the usage already. */
export const limitReached = (
  usage: TenantUsage,
  kind: keyof TenantUsage,
  limits: TenantLimits,
  now: number,
  isCounted = false
): LimitReached | undefined => {
  const window = current(usage[kind], kind, now)
  if (window.used < limits[kind] + (isCounted ? 1 : 0)) return undefined
  return {
    limit: kind,
    maximum: limits[kind],
    retryAfter: Math.max(1, Math.ceil((window.from + periods[kind] - now) / 1_000))
  }
}
