import { Effect, Schema } from "effect"
import { isBelievable } from "../domain/Calibration.ts"
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
  /** Makes it smaller, once. `forced`: as it is, it surely does not fit. */
  readonly compress: (policy: Policy, forced: boolean) => Effect.Effect<Outcome, E, R>
  /** Whether its strategy wants to compress, where that does not go by what the request likely costs. */
  readonly isDue?: boolean | undefined
}

/** A request that was looked at closely: what it was estimated at, what it likely costs, and the most that it costs. */
export interface Measured {
  readonly tokens: number
  readonly likely: number
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

/** How much more than estimated a request may cost a model of which nothing is known; below that nobody has to look closer. */
const coldRatio = 3
/** How much more than any request so far, as a share, the next one may cost. */
const doubt = 1.5
/** How much more than estimated a model may count: a refusal that would mean more says that its window is smaller than was thought. */
const mostRatio = 5
/** After so many attempts what is left is what cannot be made smaller. */
const rounds = 4

/** How is shrunk what a strategy left too large: by code, so that it costs nothing and cannot fail as the strategy did. */
const rescue = {
  strategy: defaultPolicy.strategy,
  outputForm: defaultPolicy.outputForm,
  minGain: defaultPolicy.minGain,
  preserve: defaultPolicy.preserve,
  summarizer: "extractive",
  ladder: true
} as const

/** The estimator's tokens for some of the model's, where `by` of these are one. */
const tokensIn = (tokens: number, by: number): TokenCount => TokenCount.make(Math.round(tokens / by))

/** A request as it was looked at: what it likely costs, and the most that it costs. */
interface Cost {
  readonly likely: number
  readonly most: number
}

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
  /** So many tokens for one of the estimator's are too many: what a refused request would have to hold to be one. */
  let stretch = 0
  /** The model's tokens for one of the estimator's, in requests like the last one. Undefined: nothing is known of it. */
  let scale: number | undefined
  /** Whether the model was asked for a count of what is not known, and gave none. */
  let isMute = false

  const bound = (parts: ReadonlyArray<Part>) => calibrations.upperBound(model, parts)

  /** Looks up what is known of a request like this one; where that is nothing, its estimate stands. */
  const rescale = Effect.fnUntraced(function* (request: Weighed): Effect.fn.Return<number> {
    const expected = request.tokens > 0 ? yield* calibrations.expected(model, request.parts()) : undefined
    scale = expected === undefined ? undefined : expected / request.tokens
    return scale ?? 1
  })

  const likelyOf = Effect.fnUntraced(function* (request: Weighed): Effect.fn.Return<number> {
    return request.tokens * (scale ?? (yield* rescale(request)))
  })

  /**
   * What a request costs. The model's own count decides where the bound is above the room, and at first, where nothing is
   * known of the model and a compression may be due.
   */
  const costOf = Effect.fnUntraced(function* (request: Weighed): Effect.fn.Return<Cost> {
    const { free = 0, tokens } = request
    const all = request.parts()
    const least = tokens * stretch
    const bounded = Math.max(least, yield* bound(all))
    const likely = yield* likelyOf(request)
    const isOver = bounded + free > room
    const isUnsure =
      scale === undefined ? isOver || (bounded >= trigger && !isMute) : isOver && likely * 2 - bounded + free <= room
    if (!isUnsure || options.recount === undefined) return { likely: likely + free, most: bounded + free }
    const counted = yield* options.recount(all)
    const known = yield* rescale(request)
    isMute = scale === undefined
    return { likely: tokens * known + free, most: Math.max(least, counted) + free }
  })

  /** The refusal of a request, in the numbers of what was looked at: it, or a part of it that is too large by itself. */
  const overflow = ({ likely, most }: Cost, looked: Weighed, { tokens }: Weighed, why: string | undefined) =>
    new WindowOverflow({
      tokens: Math.ceil((((likely > room ? likely : most) - (looked.free ?? 0)) / Math.max(1, looked.tokens)) * tokens),
      estimated: Math.ceil(tokens),
      window,
      room,
      why: why ?? null
    })

  /** How is compressed to fit so many tokens, by the estimator's count, where `by` tokens of the model's are one of these. */
  const policy = (limit: number, by = 1): Policy => {
    const wanted: Policy = { ...defaultPolicy, summarizer: "model", ...options.policy }
    return {
      ...wanted,
      toolBudget: tokensIn(wanted.toolBudget, by),
      ...(wanted.snapshotBudget === undefined ? {} : { snapshotBudget: tokensIn(wanted.snapshotBudget, by) }),
      limit: TokenCount.make(limit),
      threshold: Math.min(1, trigger / by / Math.max(1, limit))
    }
  }

  /**
   * Whether a request of so many estimated tokens may be sent without a closer look: it is small, or adds little to one that
   * was looked at.
   */
  const isSmall = (tokens: number, measured: Measured | undefined): boolean => {
    const isComparable = measured !== undefined && measured.lesson === lesson && tokens >= measured.tokens
    const added = tokens - (measured?.tokens ?? 0)
    const isBelow =
      tokens * (scale ?? coldRatio) < trigger ||
      (scale === undefined && isComparable && measured.likely + added * coldRatio < trigger)
    return isBelow && (tokens * ratio <= room || (isComparable && measured.most + added * ratio <= room))
  }

  /**
   * Makes a request small enough, if it is due, and answers what may be sent; fails before anything is sent when it surely
   * fits in no way. The strategy has one attempt; what does not fit then is shrunk without a model, so that nobody pays
   * twice. `fixed` is what no compression can touch. `waiting`: below so many estimated tokens a compression is not tried
   * that nothing forces.
   */
  const fit = Effect.fnUntraced(function* <A extends Weighed, E, R>(
    subject: Shrinkable<A, E, R>,
    fixed: Weighed & { readonly what: string },
    waiting: number
  ): Effect.fn.Return<{ readonly request: A; readonly measured: Measured }, E | WindowOverflow, R> {
    let why: string | undefined
    let request = yield* subject.request
    let cost = yield* costOf(request)
    if (cost.most > room) {
      const least = yield* costOf(fixed)
      yield* rescale(request)
      if (least.most > room) return yield* overflow(least, fixed, request, fixed.what)
    }
    for (let round = 0; round < rounds; round += 1) {
      const { free = 0, tokens } = request
      ratio = Math.max(ratio, (cost.most / Math.max(1, tokens + free)) * doubt)
      const forced = cost.most > room
      const isDue = subject.isDue ?? (cost.likely >= trigger && tokens >= waiting)
      if (!forced && (round > 0 || !isDue)) break
      // In the estimator's tokens, as the planner counts, and what they were found to cost.
      const limit = Math.max(1, Math.floor((room * tokens) / Math.max(cost.most, tokens)))
      const by = cost.likely > free && tokens > 0 ? (cost.likely - free) / tokens : 1
      const wanted = policy(limit, by)
      const outcome = yield* subject.compress(round === 0 ? wanted : { ...wanted, ...rescue }, forced)
      why = "degraded" in outcome ? outcome.degraded?.message : "message" in outcome ? outcome.message : undefined
      if (patchOf(outcome) === undefined) {
        if (round > 0) break
        continue
      }
      request = yield* subject.request
      scale = undefined
      cost = yield* costOf(request)
    }
    if (cost.most > room) return yield* overflow(cost, request, request, why)
    return { request, measured: { tokens: request.tokens, ...cost, lesson } }
  })

  /** Learns from what the provider counted for a request. */
  const learn = Effect.fnUntraced(function* ({ parts, tokens }: Weighed, actual: number) {
    const all = parts()
    if (tokens > 0) ratio = Math.max(ratio, (actual / tokens) * doubt)
    if (actual > (yield* bound(all))) lesson += 1
    yield* calibrations.observe(model, all, actual)
    if (isBelievable(actual, tokens)) scale = actual / tokens
  })

  /**
   * Learns that a request did not fit, although it seemed to: from now on every request is looked at, and none as large is sent.
   * Where a model may count so many more than estimated, that it has more tokens than the window is a count; else the window is
   * another one than was thought, which says nothing of counting.
   */
  const learnTooLong = (request: Weighed) =>
    Effect.suspend(() => {
      ratio = Infinity
      lesson += 1
      const times = (window + 1) / Math.max(1, request.tokens)
      if (times <= mostRatio) return learn(request, window + 1)
      stretch = Math.max(stretch, times)
      return Effect.void
    })

  /**
   * The model's tokens for one of the estimator's, in a request like this one. Undefined: nothing is known of the model; with
   * `ask` it is asked then, once. `isNew`: the request is none that the last report says anything of; `reported`: but an earlier
   * one does, this.
   */
  const scaleOf = Effect.fnUntraced(function* (request: Weighed, isNew: boolean, ask: boolean, reported?: number) {
    if (isNew && reported !== undefined) scale = reported
    else if (isNew || scale === undefined) yield* rescale(request)
    if (scale !== undefined || !ask || isMute || options.recount === undefined) return scale
    yield* options.recount(request.parts())
    yield* rescale(request)
    isMute = scale === undefined
    return scale
  })

  return { model, window, room, trigger, policy, isSmall, fit, learn, learnTooLong, scaleOf }
})

/** What keeps the requests to one model within its window. */
export type Window = Effect.Success<ReturnType<typeof make>>
