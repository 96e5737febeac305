import { Effect, Schema } from "effect"
import { defaultPolicy, type Outcome, patchOf, type Policy } from "../domain/Compression.ts"
import type { Part } from "../domain/Content.ts"
import { TokenCount } from "../domain/Tokens.ts"
import { Calibrations } from "./Calibrations.ts"

/** How much of a model's window a request may take, and how it is made to (law 3). */

/** What would be sent now. */
export interface Weighed {
  /** Estimated tokens of all of it. */
  readonly tokens: number
  /** All of it as parts, the same objects every time. */
  readonly parts: () => ReadonlyArray<Part>
  /** Tokens that have to stay free beside it and beside the answer's reserve. */
  readonly free?: number
}

/** A request that may have to become smaller, and the way to do it. */
export interface Shrinkable<A extends Weighed, E, R> {
  /** What would be sent now. */
  readonly request: Effect.Effect<A, E, R>
  /** Makes it smaller, once. */
  readonly compress: (policy: Policy, forced: boolean) => Effect.Effect<Outcome, E, R>
}

/** A request that was looked at closely: what it was estimated at, and the most that it costs. */
export interface Measured {
  readonly tokens: number
  readonly most: number
  /** What had been learned until then. */
  readonly lesson: number
}

/** A request that cannot be made to fit. Nothing was sent. Tokens. */
export class WindowOverflow extends Schema.TaggedError<WindowOverflow>()("WindowOverflow", {
  /** The most that it costs. */
  tokens: Schema.Natural,
  estimated: Schema.Natural,
  window: Schema.Natural,
  /** Of the window, what is not kept for the answer. */
  room: Schema.Natural,
  /** Why it cannot be smaller, where that is known. */
  why: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return `the prompt is too long: up to ${this.tokens} tokens (estimated ${this.estimated}), where the window of ${this.window} less ${this.window - this.room} for the answer has room for ${this.room}${this.why === null ? "" : `; ${this.why}`}`
  }
}

/** The window of one model. Numbers in tokens. */
export interface WindowOptions {
  /** The name under which is learned of its counting. */
  readonly model: string
  readonly window: number
  /** What is kept for the answer. */
  readonly reserve: number
  /** Share of the window from which on a request is compressed. */
  readonly threshold: number
  /** How is compressed. */
  readonly policy: Partial<Policy> | undefined
  /** The model's own count of a request that seems not to fit, where it can be had. */
  readonly recount?: ((parts: ReadonlyArray<Part>) => Effect.Effect<number>) | undefined
}

/** How much more than estimated a request may cost at first; below that nobody has to look closer. */
const coldRatio = 3
/** How much more than any request so far, as a share, the next one may cost. */
const doubt = 1.5
/** After so many attempts what is left is what cannot be made smaller. */
const rounds = 4

/** Sees to it that nothing is sent to a model that does not surely fit its window (law 3). */
export const make = Effect.fnUntraced(function* (options: WindowOptions) {
  const calibrations = yield* Calibrations
  const { model, window } = options
  const room = Math.max(0, Math.floor(window - options.reserve))
  const trigger = options.threshold * window
  /** The most that a request has been found to cost, as a share of its estimate. */
  let ratio = coldRatio
  /** Counts the requests that cost more than had been thought possible. */
  let lesson = 0

  const bound = (parts: ReadonlyArray<Part>) => calibrations.upperBound(model, parts)

  /** Tokens that the model does not count more than. Near the room the model's own count decides. */
  const most = Effect.fnUntraced(function* ({ free = 0, parts, tokens }: Weighed) {
    const all = parts()
    const bounded = yield* bound(all)
    return (
      free +
      (bounded + free > room && tokens + free <= room && options.recount !== undefined
        ? yield* options.recount(all)
        : bounded)
    )
  })

  const overflow = (tokens: number, estimated: number, why: string | undefined) =>
    new WindowOverflow({
      tokens: Math.ceil(tokens),
      estimated: Math.ceil(estimated),
      window,
      room,
      why: why ?? null
    })

  /** How is compressed to fit so many tokens, by the estimator's count. */
  const policy = (limit: number): Policy => ({
    ...defaultPolicy,
    summarizer: "model",
    ...options.policy,
    limit: TokenCount.make(limit),
    threshold: Math.min(1, trigger / Math.max(1, limit))
  })

  /**
   * Whether a request of so many estimated tokens may be sent without a closer look: it is small, or adds little to one that
   * was looked at.
   */
  const isSmall = (tokens: number, measured: Measured | undefined): boolean =>
    tokens < trigger &&
    (tokens * ratio <= room ||
      (measured !== undefined &&
        measured.lesson === lesson &&
        tokens >= measured.tokens &&
        measured.most + (tokens - measured.tokens) * ratio <= room))

  /**
   * Makes a request small enough, if it is due, and answers what may be sent; fails before anything is sent when it surely
   * fits in no way. `fixed` is what no compression can touch. `waiting`: below so many tokens a compression is not tried
   * that nothing forces.
   */
  const fit = Effect.fnUntraced(function* <A extends Weighed, E, R>(
    subject: Shrinkable<A, E, R>,
    fixed: Weighed & { readonly what: string },
    waiting: number
  ): Effect.fn.Return<{ readonly request: A; readonly measured: Measured }, E | WindowOverflow, R> {
    let why: string | undefined
    let request = yield* subject.request
    let cost = yield* most(request)
    if (cost > room) {
      const least = yield* most(fixed)
      if (least > room) return yield* overflow(least, request.tokens, fixed.what)
    }
    for (let round = 0; round < rounds; round += 1) {
      const { free = 0, tokens } = request
      ratio = Math.max(ratio, (cost / Math.max(1, tokens + free)) * doubt)
      const forced = cost > room
      if (!forced && (round > 0 || tokens < trigger || tokens < waiting)) break
      // In the estimator's tokens, as the planner counts, and what they were found to cost.
      const limit = Math.max(1, Math.floor((room * tokens) / Math.max(cost, tokens)))
      const outcome = yield* subject.compress(policy(limit), forced)
      why = "degraded" in outcome ? outcome.degraded?.message : "message" in outcome ? outcome.message : undefined
      if (patchOf(outcome) === undefined) break
      request = yield* subject.request
      cost = yield* most(request)
    }
    if (cost > room) return yield* overflow(cost, request.tokens, why)
    return { request, measured: { tokens: request.tokens, most: cost, lesson } }
  })

  /** Learns from what the provider counted for a request. */
  const learn = Effect.fnUntraced(function* ({ parts, tokens }: Weighed, actual: number) {
    const all = parts()
    if (tokens > 0) ratio = Math.max(ratio, (actual / tokens) * doubt)
    if (actual > (yield* bound(all))) lesson += 1
    yield* calibrations.observe(model, all, actual)
  })

  /** Learns that a request did not fit: it has more tokens than the window. From now on every request is looked at. */
  const learnTooLong = (request: Weighed) =>
    Effect.suspend(() => {
      ratio = Infinity
      return learn(request, window + 1)
    })

  return { model, window, room, policy, isSmall, fit, learn, learnTooLong }
})

/** What keeps the requests to one model within its window. */
export type Window = Effect.Success<ReturnType<typeof make>>
