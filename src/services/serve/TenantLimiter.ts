import { Clock, Context, Effect, Layer } from "effect"
import { limitsOf, type ServeSettings, type TenantLimits } from "../../domain/serve/ServeSettings.ts"
import { limitReached, type TenantUsage, unused, used } from "../../domain/serve/TenantUsage.ts"
import { TooMany } from "./ServeErrors.ts"

/** The current usage of a tenant. */
interface Running {
  turns: number
  streams: number
}

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
    /** Takes one of the tenant's turns or streams. Returns the effect that gives it back. */
    readonly take: (tenant: string, what: "streams" | "turns") => Effect.Effect<Effect.Effect<void>, TooMany>
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
    take: (tenant, what) =>
      Effect.suspend(() => {
        const held = running.get(tenant) ?? { turns: 0, streams: 0 }
        running.set(tenant, held)
        const limit = limits(tenant)[what]
        if (held[what] >= limit) {
          const noun = what === "turns" ? "turns that run" : "event streams that are open"
          return new TooMany({ message: `the limit of ${limit} ${noun} at a time is reached; let one end first` })
        }
        held[what] += 1
        return Effect.succeed(
          Effect.sync(() => {
            held[what] -= 1
          })
        )
      })
  }
}
