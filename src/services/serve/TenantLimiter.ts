import { Clock, Context, Effect, Layer } from "effect"
import { limitsOf, type ServeSettings, type TenantLimits } from "../../domain/serve/ServeSettings.ts"
import { limitReached, type TenantUsage, unused, used } from "../../domain/serve/TenantUsage.ts"
import { TooMany } from "./ServeErrors.ts"

/** What a tenant holds at the moment, and how often each. */
interface Running {
  readonly turns: Map<unknown, number>
  readonly streams: Map<unknown, number>
}

/** Seconds after which a client tries again where a turn or a stream must end first. */
const retryAfter = 5

/**
 * Counts what tenants use, and rejects what exceeds their limits. The counts are in memory, so a restart resets them.
 */
export class TenantLimiter extends Context.Service<
  TenantLimiter,
  {
    /** The limits of a tenant. */
    readonly limits: (tenant: string) => TenantLimits
    /** Counts a request. */
    readonly request: (tenant: string) => Effect.Effect<void, TooMany>
    /** Fails when the tenant has used its tokens for the day. */
    readonly checkTokens: (tenant: string) => Effect.Effect<void, TooMany>
    /** Counts tokens. */
    readonly tokens: (tenant: string, amount: number) => Effect.Effect<void>
    /**
     * Takes one of the tenant's turns or streams. Returns the effect that gives it back, once. `name`: what is taken under
     * the same name at the same time counts once. `isAccepted`: it was promised before, so it is taken above the limit
     * too.
     */
    readonly take: (
      tenant: string,
      what: "streams" | "turns",
      options?: { readonly name?: string | undefined; readonly isAccepted?: boolean | undefined }
    ) => Effect.Effect<Effect.Effect<void>, TooMany>
  }
>()("palimpsest/services/serve/TenantLimiter") {
  /** Provides the limits in the settings. */
  static readonly layer = (settings: ServeSettings) => Layer.sync(TenantLimiter, () => make(settings))
}

const make = (settings: ServeSettings): TenantLimiter["Service"] => {
  const usage = new Map<string, TenantUsage>()
  const running = new Map<string, Running>()
  const usageOf = (tenant: string) => usage.get(tenant) ?? unused
  const limits = (tenant: string) => limitsOf(settings, tenant)
  const check = Effect.fnUntraced(function* (tenant: string, kind: "requests" | "tokens") {
    const now = yield* Clock.currentTimeMillis
    const reached = limitReached(usageOf(tenant), kind, limits(tenant), now)
    if (reached === undefined) return now
    const period = kind === "requests" ? "a minute" : "a day"
    return yield* new TooMany({
      message: `the limit of ${reached.maximum} ${kind} ${period} is reached; try again in ${reached.retryAfter} seconds`,
      retryAfter: reached.retryAfter
    })
  })
  const count = (tenant: string, kind: "requests" | "tokens", amount: number, now: number) =>
    void usage.set(tenant, used(usageOf(tenant), kind, amount, now))
  return {
    limits,
    request: (tenant) => Effect.map(check(tenant, "requests"), (now) => count(tenant, "requests", 1, now)),
    checkTokens: (tenant) => Effect.asVoid(check(tenant, "tokens")),
    tokens: (tenant, amount) => Effect.map(Clock.currentTimeMillis, (now) => count(tenant, "tokens", amount, now)),
    take: (tenant, what, { isAccepted = false, name } = {}) =>
      Effect.suspend(() => {
        const all = running.get(tenant) ?? { turns: new Map(), streams: new Map() }
        running.set(tenant, all)
        const held = all[what]
        const key = name ?? Symbol(what)
        const limit = limits(tenant)[what]
        if (!isAccepted && !held.has(key) && held.size >= limit) {
          const noun = what === "turns" ? "turns that run" : "event streams that are open"
          return new TooMany({
            message: `the limit of ${limit} ${noun} at a time is reached; let one end first`,
            retryAfter
          })
        }
        held.set(key, (held.get(key) ?? 0) + 1)
        let isHeld = true
        return Effect.succeed(
          Effect.sync(() => {
            if (!isHeld) return
            isHeld = false
            const left = (held.get(key) ?? 1) - 1
            if (left === 0) held.delete(key)
            else held.set(key, left)
          })
        )
      })
  }
}
