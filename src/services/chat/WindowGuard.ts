/** The guard of the window: measures each request, makes it smaller until it fits, or refuses it. */

import { Effect, Schema } from "effect"
import { type Outcome, patchOf } from "../../domain/compression/Compression.ts"
import { defaultPolicy, type Policy } from "../../domain/compression/strategies/Policy.ts"
import type { Part } from "../../domain/content/Content.ts"
import { type CutPrompt, isPlausibleCount } from "../../domain/tokens/CutPrompts.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import type { TooManyTokens } from "../../domain/wire/ProviderFault.ts"
import { Calibrations } from "../tokens/Calibrations.ts"

/** A request, with its size if it were sent now. */
export interface SizedRequest {
  /** Estimated tokens of the whole request. */
  readonly tokens: number
  /** All of its parts, the same objects every time. */
  readonly parts: () => ReadonlyArray<Part>
  /** Tokens that must stay free in addition to the reserve for the answer. */
  readonly free?: number
}

/** A request, and how to make it smaller. */
export interface Shrinkable<A, E, R> {
  /** The request as it would be sent now. */
  readonly request: Effect.Effect<A, E, R>
  /** Makes it smaller once. `forced`: it does not fit as it is. */
  readonly compress: (policy: Policy, forced: boolean) => Effect.Effect<Outcome, E, R>
  /** Whether its strategy wants to compress. Default: by the expected tokens of the request. */
  readonly isDue?: boolean | undefined
}

/** The cost of a request in the model's tokens: expected, and at most. */
interface Cost {
  readonly expectedTokens: number
  readonly maxTokens: number
}

/** A request that was measured exactly. */
export interface MeasuredRequest extends Cost {
  /** Estimated tokens. */
  readonly tokens: number
  /** The revision of the guard's knowledge at that time. A later revision makes this measurement void. */
  readonly revision: number
}

/** What a provider says of a request that it refused as too long. Tokens. */
export type StatedSize = Pick<TooManyTokens, "tokens" | "limit">

/** A request that cannot be made to fit. Nothing was sent. */
export class WindowOverflow extends Schema.TaggedError<WindowOverflow>()("WindowOverflow", {
  /** The maximum number of tokens that the request costs. */
  tokens: Schema.Natural,
  estimated: Schema.Natural,
  window: Schema.Natural,
  /** The window without the tokens reserved for the answer. */
  maxRequestTokens: Schema.Natural,
  /** Why the request cannot be smaller, if that is known. */
  why: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return `the prompt is too long: up to ${this.tokens} tokens (estimated ${this.estimated}), where the window of ${this.window} less ${this.window - this.maxRequestTokens} for the answer has room for ${this.maxRequestTokens}${this.why === null ? "" : `; ${this.why}`}`
  }
}

/** The window of one model, and how requests are made to fit it. All numbers are tokens. */
export interface GuardOptions {
  /** The model's name in `Calibrations`. */
  readonly model: string
  readonly window: number
  /** Tokens reserved for the answer. */
  readonly reserve: number
  /** The number of expected tokens at which a request is compressed. */
  readonly trigger: number
  readonly policy: Partial<Policy> | undefined
  /** The model's own count of a request, if available. Used when a request seems not to fit. */
  readonly recount?: ((parts: ReadonlyArray<Part>) => Effect.Effect<number>) | undefined
}

/**
 * The multiple of its estimate that a request may cost while no count of the model is known. Below it, no exact
 * measurement is needed.
 */
const uncalibratedRatio = 3
/** The factor by which the next request may cost more than any request so far. */
const growthFactor = 1.5
/**
 * The largest plausible multiple of the estimate. A refusal that implies more means that the model's window is
 * smaller than stated.
 */
const maxPlausibleRatio = 5
/** Maximum number of compressions for one request. What is left after these cannot be made smaller. */
const maxRounds = 4

/**
 * The policy for shrinking what a strategy left too large. It needs no model, so it costs nothing and fails for other
 * reasons than the strategy.
 */
const extractivePolicy = {
  strategy: defaultPolicy.strategy,
  outputForm: defaultPolicy.outputForm,
  minGain: defaultPolicy.minGain,
  preserve: defaultPolicy.preserve,
  summarizer: "extractive",
  ladder: true
} as const

/** Converts the model's tokens to estimated tokens. `scale` is the model's tokens per estimated token. */
const toEstimated = (tokens: number, scale: number): TokenCount => TokenCount.make(Math.round(tokens / scale))

/**
 * Keeps the requests to one model within its window: every request that is sent fits. Mutable: it learns from the
 * provider's counts and refusals.
 */
export class WindowGuard {
  readonly model: string
  readonly window: number
  /** The maximum size of a request: the window without the reserve for the answer. */
  readonly maxRequestTokens: number
  /** Expected tokens from which a request is compressed. */
  readonly trigger: number
  private readonly options: GuardOptions
  private readonly calibrations: Calibrations["Service"]
  /** The highest observed cost of a request, as a multiple of its estimate. */
  private maxRatio = uncalibratedRatio
  /** The number of requests that cost more than the expected maximum. */
  private revision = 0
  /** The multiple of the estimate that a refused request proved to be too large. */
  private refusedRatio = 0
  /** The smallest limit below the window that the provider stated for a request. */
  private statedLimit = Infinity
  /**
   * The last request whose count is known or expected. `rate`: the tokens of an estimated one that is added to it; `added`: those that the server adds
   * to each request. Undefined: none.
   */
  private last:
    | { readonly estimated: number; readonly counted: number; readonly rate: number; readonly added: number }
    | undefined
  /** Whether the model was asked for a count and gave none. */
  private isCountUnavailable = false

  constructor(options: GuardOptions, calibrations: Calibrations["Service"]) {
    this.options = options
    this.calibrations = calibrations
    this.model = options.model
    this.window = options.window
    this.maxRequestTokens = Math.max(0, Math.floor(options.window - options.reserve))
    this.trigger = options.trigger
  }

  /**
   * Returns the policy for compressing to this many estimated tokens. `scale` is the model's tokens per estimated
   * token, `added` those that no compression changes.
   */
  policy(limit: number, scale = 1, added = 0): Policy {
    const base: Policy = { ...defaultPolicy, summarizer: "model", ...this.options.policy }
    return {
      ...base,
      toolBudget: toEstimated(base.toolBudget, scale),
      ...(base.snapshotBudget === undefined ? {} : { snapshotBudget: toEstimated(base.snapshotBudget, scale) }),
      ...(base.digestBudget === undefined ? {} : { digestBudget: toEstimated(base.digestBudget, scale) }),
      limit: TokenCount.make(limit),
      threshold: Math.min(1, (this.trigger - added) / scale / Math.max(1, limit))
    }
  }

  /** The model's tokens per estimated token, in a request like the last one and of this many estimated tokens. Undefined: not known. */
  private scaleAt(tokens: number): number | undefined {
    if (this.last === undefined) return undefined
    const { counted, estimated, rate } = this.last
    // What a server adds to each request weighs less in a longer one.
    return tokens <= estimated ? counted / estimated : (counted + (tokens - estimated) * rate) / tokens
  }

  /**
   * Whether a request of this many estimated tokens may be sent without an exact measurement: it is small, or only
   * slightly larger than a measured one.
   */
  isSmall(tokens: number, measured: MeasuredRequest | undefined): boolean {
    const isComparable = measured !== undefined && measured.revision === this.revision && tokens >= measured.tokens
    const added = tokens - (measured?.tokens ?? 0)
    const scale = this.scaleAt(tokens)
    const isBelowTrigger =
      tokens * (scale ?? uncalibratedRatio) < this.trigger ||
      (scale === undefined && isComparable && measured.expectedTokens + added * uncalibratedRatio < this.trigger)
    return (
      isBelowTrigger &&
      (tokens * this.maxRatio <= this.maxRequestTokens ||
        (isComparable && measured.maxTokens + added * this.maxRatio <= this.maxRequestTokens))
    )
  }

  /**
   * Compresses a request if that is due, and returns the one that may be sent. Fails before anything is sent if it cannot fit. The strategy has one
   * attempt; a request that then does not fit is shrunk without a model, so that no second attempt is paid for.
   *
   * `fixed` is the part that no compression can change. `waiting`: below this number of estimated tokens, only a forced compression is tried.
   */
  fit<A extends SizedRequest, E, R>(
    subject: Shrinkable<A, E, R>,
    fixed: SizedRequest & { readonly what: string },
    waiting: number
  ): Effect.Effect<{ readonly request: A; readonly measured: MeasuredRequest }, E | WindowOverflow, R> {
    return Effect.gen({ self: this }, function* () {
      let why: string | undefined
      let request = yield* subject.request
      let cost = yield* this.costOf(request)
      if (cost.maxTokens > this.maxRequestTokens) {
        const fixedCost = yield* this.costOf(fixed)
        yield* this.lookUpScale(request)
        if (fixedCost.maxTokens > this.maxRequestTokens) {
          return yield* this.overflow(fixedCost, fixed, request, fixed.what)
        }
      }
      for (let round = 0; round < maxRounds; round += 1) {
        const { free = 0, tokens } = request
        this.maxRatio = Math.max(this.maxRatio, (cost.maxTokens / Math.max(1, tokens + free)) * growthFactor)
        const forced = cost.maxTokens > this.maxRequestTokens
        const isDue = subject.isDue ?? (cost.expectedTokens >= this.trigger && tokens >= waiting)
        if (!forced && (round > 0 || !isDue)) break
        // The planner counts in estimated tokens, and what a server adds to each request is none of its, unless that is most of it: then it is doubted.
        const added = Math.min(this.last?.added ?? 0, this.trigger / 2)
        const room = (this.maxRequestTokens - added) * tokens
        const limit = Math.max(1, Math.floor(room / Math.max(cost.maxTokens - added, tokens)))
        const own = cost.expectedTokens - free - added
        const policy = this.policy(limit, own > 0 && tokens > 0 ? own / tokens : 1, added)
        const outcome = yield* subject.compress(round === 0 ? policy : { ...policy, ...extractivePolicy }, forced)
        why = "degraded" in outcome ? outcome.degraded?.message : "message" in outcome ? outcome.message : undefined
        if (patchOf(outcome) === undefined) {
          if (round > 0) break
          continue
        }
        request = yield* subject.request
        this.last = undefined
        cost = yield* this.costOf(request)
      }
      if (cost.maxTokens > this.maxRequestTokens) return yield* this.overflow(cost, request, request, why)
      return { request, measured: { tokens: request.tokens, ...cost, revision: this.revision } }
    })
  }

  /** Tokens that a request may have, for the user: fewer than `maxRequestTokens` where the provider refused one and stated its limit. */
  get requestLimit(): number {
    return Math.min(this.maxRequestTokens, this.statedLimit)
  }

  /** Learns from the provider's count of a request. Returns the prompt if the server seems to have cut it: then nothing is learned. */
  learn({ parts, tokens }: SizedRequest, actual: number): Effect.Effect<CutPrompt | undefined> {
    return Effect.gen({ self: this }, function* () {
      const all = parts()
      const bound = yield* this.calibrations.upperBound(this.model, all)
      const cut = yield* this.calibrations.observe(this.model, all, actual)
      if (cut !== undefined) {
        this.last = undefined
        return cut
      }
      if (tokens > 0) this.maxRatio = Math.max(this.maxRatio, (actual / tokens) * growthFactor)
      if (actual > bound) this.revision += 1
      if (isPlausibleCount(actual, tokens)) {
        yield* this.lookUpScale({ parts, tokens })
        this.last = { rate: 1, added: 0, ...this.last, estimated: tokens, counted: actual }
      }
      return undefined
    })
  }

  /**
   * Learns that a request was rejected although it seemed to fit: from now on every request is measured, and none of
   * this size is sent. If the implied ratio of tokens to estimate is plausible, the rejection counts as one token
   * more than the window. Otherwise the window differs from the stated one, which says nothing about counting. A limit
   * below the window, such as an account's tokens a minute, says nothing about it either. `stated` are the numbers of the provider.
   */
  learnTooLong(request: SizedRequest, { limit = this.window, tokens = 0 }: StatedSize = {}): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.maxRatio = Infinity
      this.revision += 1
      const estimated = Math.max(1, request.tokens)
      const ratio = (this.window + 1) / estimated
      const isBelowWindow = limit < this.window
      if (isBelowWindow) this.statedLimit = Math.min(this.statedLimit, limit)
      if (!isBelowWindow && ratio <= maxPlausibleRatio) return Effect.asVoid(this.learn(request, this.window + 1))
      // What costs as much as that limit now costs all that a request may. `tokens` is no count of the prompt: it may include the answer.
      const share = Math.max(tokens, estimated, limit + 1) / Math.max(1, limit)
      const refused = isBelowWindow ? (share * this.maxRequestTokens) / estimated : ratio
      this.refusedRatio = Math.max(this.refusedRatio, refused)
      return Effect.void
    })
  }

  /**
   * Returns the model's tokens per estimated token in a request like this one. Undefined: nothing is known of the
   * model; with `ask`, it is then asked for a count, once. `isNew`: the last report does not apply to this request;
   * `reported` is the scale of an earlier report that does.
   */
  scaleOf(request: SizedRequest, isNew: boolean, ask: boolean, reported?: number): Effect.Effect<number | undefined> {
    return Effect.gen({ self: this }, function* () {
      const { tokens } = request
      if (isNew && reported !== undefined)
        this.last = { estimated: tokens, counted: reported * tokens, rate: reported, added: 0 }
      else if (isNew || this.last === undefined) yield* this.lookUpScale(request)
      const { recount } = this.options
      if (this.last === undefined && ask && !this.isCountUnavailable && recount !== undefined) {
        yield* recount(request.parts())
        yield* this.lookUpScale(request)
        this.isCountUnavailable = this.last === undefined
      }
      return this.scaleAt(tokens)
    })
  }

  /** Looks up the calibration for requests like this one. Returns 1 if there is none: the estimate stands. */
  private lookUpScale(request: SizedRequest): Effect.Effect<number> {
    return Effect.gen({ self: this }, function* () {
      const expected = request.tokens > 0 ? yield* this.calibrations.expected(this.model, request.parts) : undefined
      const added = yield* this.calibrations.added(this.model)
      this.last =
        expected === undefined
          ? undefined
          : {
              estimated: request.tokens,
              counted: expected,
              rate: Math.max(0, expected - added) / request.tokens,
              added: Math.min(added, expected)
            }
      return this.scaleAt(request.tokens) ?? 1
    })
  }

  /**
   * Returns the cost of a request. Uses the model's own count if the upper bound exceeds the limit and, at first, if
   * nothing is known of the model and a compression may be due.
   */
  private costOf(request: SizedRequest): Effect.Effect<Cost> {
    return Effect.gen({ self: this }, function* () {
      const { free = 0, tokens } = request
      const { recount } = this.options
      const parts = request.parts()
      const refused = tokens * this.refusedRatio
      const bound = Math.max(refused, yield* this.calibrations.upperBound(this.model, parts))
      const expected = tokens * (this.scaleAt(tokens) ?? (yield* this.lookUpScale(request)))
      const isOver = bound + free > this.maxRequestTokens
      const isUnsure =
        this.last === undefined
          ? isOver || (bound >= this.trigger && !this.isCountUnavailable)
          : isOver && expected * 2 - bound + free <= this.maxRequestTokens
      if (!isUnsure || recount === undefined) return { expectedTokens: expected + free, maxTokens: bound + free }
      const counted = yield* recount(parts)
      const scale = yield* this.lookUpScale(request)
      this.isCountUnavailable = this.last === undefined
      return { expectedTokens: tokens * scale + free, maxTokens: Math.max(refused, counted) + free }
    })
  }

  /**
   * Makes the error for a request, from the numbers that were measured: the request, or a part of it that is too
   * large alone.
   */
  private overflow(
    { expectedTokens, maxTokens }: Cost,
    measured: SizedRequest,
    { tokens }: SizedRequest,
    why: string | undefined
  ): WindowOverflow {
    const cost = expectedTokens > this.maxRequestTokens ? expectedTokens : maxTokens
    const { requestLimit } = this
    const isStated = requestLimit === this.statedLimit
    // What costs as much as a stated limit costs all that a request may.
    const unit = requestLimit / Math.max(1, this.maxRequestTokens)
    return new WindowOverflow({
      tokens: Math.ceil(((cost - (measured.free ?? 0)) / Math.max(1, measured.tokens)) * tokens * unit),
      estimated: Math.ceil(tokens),
      window: isStated ? requestLimit : this.window,
      maxRequestTokens: requestLimit,
      why: why ?? null
    })
  }
}

/** Makes a guard for one model, with the calibration from `Calibrations`. */
export const make = (options: GuardOptions): Effect.Effect<WindowGuard, never, Calibrations> =>
  Effect.map(Calibrations, (calibrations) => new WindowGuard(options, calibrations))
