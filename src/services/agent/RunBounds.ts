/** The limits of an agent run, and what ends it before its model is done. */

import { Clock, Deferred, Effect } from "effect"
import type { ChatEvent, LimitName } from "../../domain/chat/ChatEvent.ts"
import { plural } from "../../domain/text/NumberText.ts"
import { costOf, type Prices } from "../../domain/tokens/Prices.ts"
import type { Usage } from "../../domain/tokens/Tokens.ts"

/** The resources an agent may use before it stops. An absent limit is no limit. */
export interface Limits {
  /** Turns of one run, that is requests to the model. */
  readonly turns?: number | undefined
  /** Milliseconds of one run, without the time spent waiting for the user. */
  readonly time?: number | undefined
  /** Tokens sent and received in one run, as counted by the provider. */
  readonly tokens?: number | undefined
  /** Dollars of one run, by the price table. A model without a price costs nothing here. */
  readonly cost?: number | undefined
}

/** Why a run ends before the model is done. */
export type Stop =
  | { readonly _tag: "Cancelled" }
  | { readonly _tag: "Limit"; readonly limit: LimitName; readonly message: string }

/** The text that the model receives for a call that was interrupted by this stop. */
export const stopText = (stop: Stop): string =>
  stop._tag === "Cancelled" ? "the user stopped this before it finished" : stop.message

/** The last event of a run that was stopped. */
export const stopEvent = (stop: Stop): ChatEvent =>
  stop._tag === "Cancelled"
    ? { _tag: "UserCancelled" }
    : { _tag: "LimitReached", limit: stop.limit, message: stop.message }

/** A clock that pauses while work waits for the user. */
export interface Stopwatch {
  /** Returns the milliseconds up to a time, without the pauses. */
  readonly elapsed: (now: number) => number
  /** Pauses the clock while work runs. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Makes a clock that began at a time. */
export const stopwatch = (started: number): Stopwatch => {
  let waited = 0
  let since = 0
  let depth = 0
  return {
    elapsed: (now: number): number => now - started - waited - (depth === 0 ? 0 : now - since),
    waiting: <A, E, R>(work: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        Effect.map(Clock.currentTimeMillis, (now) => {
          if (depth === 0) since = now
          depth += 1
        }),
        () => work,
        () =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            depth -= 1
            if (depth === 0) waited += now - since
          })
      )
  }
}

const duration = (millis: number): string =>
  millis >= 60_000 ? plural(Math.round(millis / 6_000) / 10, "minute") : plural(Math.round(millis / 100) / 10, "second")

const reached = (limit: LimitName, what: string): Extract<Stop, { _tag: "Limit" }> => ({
  _tag: "Limit",
  limit,
  message: `the agent ${what}, which is its limit; send another message to continue`
})

/** The resources that a run has used so far. */
export interface ConsumedLimits {
  readonly turns: number
  readonly tokens: number
  readonly cost: number
}

/** What a run has used after an answer. `null`: the provider did not count it. */
export const afterUse = (used: ConsumedLimits, model: string, usage: Usage | null, prices: Prices): ConsumedLimits =>
  usage === null
    ? used
    : {
        turns: used.turns,
        tokens: used.tokens + usage.prompt + usage.answer + usage.thoughts,
        cost: used.cost + (costOf([{ model, usage }], prices, false).total ?? 0)
      }

/** The limit that the run has reached. Undefined: none. A limit that is no number is reached at once. */
export const exceededLimit = ({ cost, tokens, turns }: Limits, used: ConsumedLimits): Stop | undefined => {
  if (turns !== undefined && !(used.turns < turns)) return reached("turns", `took ${used.turns} turns`)
  if (tokens !== undefined && !(used.tokens < tokens)) return reached("tokens", `used ${used.tokens} tokens`)
  if (cost !== undefined && !(used.cost < cost)) return reached("cost", `cost $${used.cost.toFixed(4)}`)
  return undefined
}

/** What may end a run early. */
export interface RunBounds {
  /** Completes when the run must end before the model is done. */
  readonly stopped: Effect.Effect<Stop>
  /** Whether the run must end. */
  readonly isStopped: Effect.Effect<boolean>
  /** Runs work that is abandoned when the run is stopped. */
  readonly unlessStopped: <A>(work: Effect.Effect<A>) => Effect.Effect<A | undefined>
  /** Runs work that waits for the user, with the clock paused. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Watches for cancellation by the user and for the time limit, as long as the fiber runs. */
export const watchBounds = Effect.fnUntraced(function* (
  { time }: Limits,
  cancel: Effect.Effect<unknown> | undefined,
  outer: RunBounds["waiting"]
): Effect.fn.Return<RunBounds> {
  const watch = stopwatch(yield* Clock.currentTimeMillis)
  const stopping = yield* Deferred.make<Stop>()
  const stopped = Deferred.await(stopping)
  const stop = (why: Stop) => Deferred.succeed(stopping, why)

  if (cancel !== undefined) yield* Effect.forkChild(Effect.andThen(cancel, stop({ _tag: "Cancelled" })))
  if (time !== undefined) {
    const left = Effect.map(Clock.currentTimeMillis, (now) => time - watch.elapsed(now))
    const over = Effect.gen(function* () {
      for (let rest = yield* left; rest > 0; rest = yield* left) yield* Effect.sleep(rest)
      yield* stop(reached("time", `worked for ${duration(time)}`))
    })
    yield* Effect.forkChild(over)
  }
  return {
    stopped,
    isStopped: Deferred.isDone(stopping),
    unlessStopped: (work) => Effect.raceFirst(Effect.as(stopped, undefined), work),
    waiting: (work) => watch.waiting(outer(work))
  }
})
