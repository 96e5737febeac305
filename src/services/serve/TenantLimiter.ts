/** Limits what tenants use: requests, tokens, running turns and open streams. */

import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { limitsOf, type ServeSettings, type TenantLimits } from "../../domain/serve/ServeSettings.ts"
import { limitReached, type TenantUsage, unused, used } from "../../domain/serve/TenantUsage.ts"
import { TooMany } from "./ServeErrors.ts"

/** What a tenant holds for as long as it lasts. */
type Held = "streams" | "turns"

/** Counts what tenants use in all servers of a cluster together. */
export interface UsageOfAll {
  /** Adds to what a tenant has used. Returns the sum and its age; undefined while that cannot be known. */
  readonly add: (
    tenant: string,
    kind: keyof TenantUsage,
    amount: number
  ) => Effect.Effect<{ readonly used: number; readonly ageMillis: number } | undefined>
  /**
   * Takes a turn, a stream, or an `amount` of tokens that a request may cost, for this process. Turns that several processes hold
   * under one name count once. Returns false where what is held has reached `limit`; undefined takes it in any case.
   */
  readonly take: (
    tenant: string,
    what: Held | "reserved",
    name: string,
    limit: number | undefined,
    amount?: number
  ) => Effect.Effect<boolean>
  /** Gives it back. What a dead process holds is given back after a while. */
  readonly give: (tenant: string, what: Held | "reserved", name: string) => Effect.Effect<void>
}

/** The counts of all servers. Default: none; this process is alone. */
export const SharedUsage = Context.Reference<UsageOfAll | undefined>("palimpsest/services/serve/SharedUsage", {
  defaultValue: () => undefined
})

/** What a tenant holds at the moment, and how often each. */
interface Running extends Readonly<Record<Held, Map<string, number>>> {
  readonly alone: Semaphore.Semaphore
}

/** Seconds after which a client tries again where a request, a turn or a stream must end first. */
const retryAfter = 5

/**
 * Counts what tenants use, and rejects what exceeds their limits. The counts are in memory, so a restart resets them, but for those in
 * `SharedUsage`.
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
    /**
     * Holds back tokens that a request may cost, so that others which begin meanwhile do not spend them too. Returns the effect that gives them back, once:
     * what the request did cost is counted by `tokens`. Fails as `checkTokens` does, and where the requests that run may use the rest.
     */
    readonly reserve: (tenant: string, amount: number) => Effect.Effect<Effect.Effect<void>, TooMany>
    /** Counts tokens. */
    readonly tokens: (tenant: string, amount: number) => Effect.Effect<void>
    /**
     * Takes one of the tenant's turns or streams. Returns the effect that gives it back, once. `name`: what is taken under
     * the same name at the same time counts once. `isAccepted`: it was promised before, so it is taken above the limit
     * too.
     */
    readonly take: (
      tenant: string,
      what: Held,
      options?: { readonly name?: string | undefined; readonly isAccepted?: boolean | undefined }
    ) => Effect.Effect<Effect.Effect<void>, TooMany>
  }
>()("palimpsest/services/serve/TenantLimiter") {
  /** Provides the limits in the settings. They hold over all servers that have the same `SharedUsage`. */
  static readonly layer = (settings: ServeSettings) =>
    Layer.effect(
      TenantLimiter,
      Effect.map(SharedUsage, (shared) => make(settings, shared))
    )
}

/** An effect that gives something back once, however often it is run. */
const once = (give: Effect.Effect<void>): Effect.Effect<void> => {
  let isHeld = true
  return Effect.suspend(() => {
    if (!isHeld) return Effect.void
    isHeld = false
    return give
  })
}

/** Counts requests and tokens. */
const counting = (limits: (tenant: string) => TenantLimits, shared: UsageOfAll | undefined) => {
  const usage = new Map<string, TenantUsage>()
  const usageOf = (tenant: string) => usage.get(tenant) ?? unused
  const check = Effect.fnUntraced(function* (tenant: string, kind: keyof TenantUsage, isCounted = false) {
    const now = yield* Clock.currentTimeMillis
    const reached = limitReached(usageOf(tenant), kind, limits(tenant), now, isCounted)
    if (reached === undefined) return
    const period = kind === "requests" ? "a minute" : "a day"
    return yield* new TooMany({
      message: `the limit of ${reached.maximum} ${kind} ${period} is reached; try again in ${reached.retryAfter} seconds`,
      retryAfter: reached.retryAfter
    })
  })
  const count = Effect.fnUntraced(function* (tenant: string, kind: keyof TenantUsage, amount: number) {
    const all = yield* shared?.add(tenant, kind, amount) ?? Effect.undefined
    const now = yield* Clock.currentTimeMillis
    usage.set(
      tenant,
      all === undefined
        ? used(usageOf(tenant), kind, amount, now)
        : { ...usageOf(tenant), [kind]: { from: now - all.ageMillis, used: all.used } }
    )
  })
  /** The tokens that requests of this process may still cost. */
  const reserved = new Map<string, number>()
  let reservations = 0
  const reserve = Effect.fnUntraced(function* (tenant: string, amount: number) {
    yield* check(tenant, "tokens")
    const limit = limits(tenant).tokens
    const held = reserved.get(tenant) ?? 0
    const left = limit - used(usageOf(tenant), "tokens", 0, yield* Clock.currentTimeMillis).tokens.used
    // A client names what it likes: sums stay exact up to the limit, and no more is of use.
    const kept = Math.ceil(Math.min(Math.max(0, amount), limit))
    const add = (tokens: number) => Effect.sync(() => void reserved.set(tenant, (reserved.get(tenant) ?? 0) + tokens))
    const name = `request ${(reservations += 1)}`
    const isFree = held < left
    if (isFree) yield* add(kept)
    if (!isFree || (yield* shared?.take(tenant, "reserved", name, left, kept) ?? Effect.succeed(true)) === false) {
      if (isFree) yield* add(-kept)
      return yield* new TooMany({
        message: `requests that run may use the rest of the limit of ${limit} tokens a day; let one end first`,
        retryAfter
      })
    }
    return once(Effect.andThen(add(-kept), shared?.give(tenant, "reserved", name) ?? Effect.void))
  })
  return { check, count, reserve }
}

/** Counts the turns and streams that a tenant holds, and how often each. */
const holding = (limits: (tenant: string) => TenantLimits, shared: UsageOfAll | undefined) => {
  const running = new Map<string, Running>()
  const heldBy = (tenant: string) => {
    const all = running.get(tenant) ?? { alone: Semaphore.makeUnsafe(1), turns: new Map(), streams: new Map() }
    running.set(tenant, all)
    return all
  }
  const take = Effect.fnUntraced(function* (tenant: string, what: Held, name: string, isAccepted: boolean) {
    const held = heldBy(tenant)[what]
    const limit = limits(tenant)[what]
    const isFree = isAccepted || held.has(name) || held.size < limit
    if (
      !isFree ||
      (yield* shared?.take(tenant, what, name, isAccepted ? undefined : limit) ?? Effect.succeed(true)) === false
    ) {
      const noun = what === "turns" ? "turns that run" : "event streams that are open"
      return yield* new TooMany({
        message: `the limit of ${limit} ${noun} at a time is reached; let one end first`,
        retryAfter
      })
    }
    held.set(name, (held.get(name) ?? 0) + 1)
  })
  const give = Effect.fnUntraced(function* (tenant: string, what: Held, name: string) {
    const held = heldBy(tenant)[what]
    const left = (held.get(name) ?? 1) - 1
    if (left > 0) return void held.set(name, left)
    held.delete(name)
    if (shared !== undefined) yield* shared.give(tenant, what, name)
  })
  // One after the other, so that a name is not given back by one while another one takes it.
  const alone = (tenant: string) => heldBy(tenant).alone.withPermit
  return {
    take: (tenant: string, what: Held, name: string, isAccepted: boolean) =>
      alone(tenant)(take(tenant, what, name, isAccepted)),
    give: (tenant: string, what: Held, name: string) => alone(tenant)(give(tenant, what, name))
  }
}

const make = (settings: ServeSettings, shared: UsageOfAll | undefined): TenantLimiter["Service"] => {
  const limits = (tenant: string) => limitsOf(settings, tenant)
  const { check, count, reserve } = counting(limits, shared)
  const held = holding(limits, shared)
  const refreshed = (tenant: string) => (shared === undefined ? Effect.void : count(tenant, "tokens", 0))
  let streams = 0
  return {
    limits,
    request: (tenant) =>
      check(tenant, "requests").pipe(
        Effect.andThen(count(tenant, "requests", 1)),
        // Other servers may have counted some since.
        Effect.andThen(check(tenant, "requests", true))
      ),
    checkTokens: (tenant) => Effect.andThen(refreshed(tenant), check(tenant, "tokens")),
    reserve: (tenant, amount) =>
      // Without a limit there is nothing to hold back, and nothing to ask the other servers.
      limits(tenant).tokens === Infinity
        ? Effect.succeed(Effect.void)
        : Effect.uninterruptible(Effect.andThen(refreshed(tenant), reserve(tenant, amount))),
    tokens: (tenant, amount) => count(tenant, "tokens", amount),
    take: (tenant, what, { isAccepted = false, name = `stream ${(streams += 1)}` } = {}) =>
      Effect.map(Effect.uninterruptible(held.take(tenant, what, name, isAccepted)), () =>
        once(held.give(tenant, what, name))
      )
  }
}
