import { Clock, Context, Effect, Layer } from "effect"
import { limitsOf, type ServeSettings, type TenantLimits } from "../../domain/serve/ServeSettings.ts"
import { limitReached, type TenantUsage, unused, used } from "../../domain/serve/TenantUsage.ts"
import { TooMany } from "./ServeErrors.ts"

/** What a tenant uses at this moment. */
interface Running {
  turns: number
  streams: number
}

/** Counts what tenants use, and refuses what is above their limits. Counts in memory: a restart begins anew. */
export class TenantLimiter extends Context.Service<
  TenantLimiter,
  {
    /** The limits of a tenant. */
    readonly limits: (tenant: string) => TenantLimits
    /** Counts a request. */
    readonly request: (tenant: string) => Effect.Effect<void, TooMany>
    /** Fails when the tenant has used its tokens of the day. */
    readonly checkTokens: (tenant: string) => Effect.Effect<void, TooMany>
    /** Counts tokens. */
    readonly tokens: (tenant: string, amount: number) => Effect.Effect<void>
    /** Takes one of the tenant's turns or streams; the effect that comes back returns it. */
    readonly take: (tenant: string, what: "streams" | "turns") => Effect.Effect<Effect.Effect<void>, TooMany>
  }
>()("palimpsest/services/serve/TenantLimiter") {
  /** Limits as the settings say. */
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
      message: `the limit of ${reached.most} ${kind} ${period} is reached; try again in ${reached.retryAfter} seconds`,
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
        const most = limits(tenant)[what]
        if (held[what] >= most) {
          const noun = what === "turns" ? "turns that run" : "event streams that are open"
          return new TooMany({ message: `the limit of ${most} ${noun} at a time is reached; let one end first` })
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
