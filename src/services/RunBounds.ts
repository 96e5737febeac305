import { Clock, Deferred, Effect } from "effect"
import type { ChatEvent, LimitName } from "../domain/ChatEvent.ts"

/** How far a run of an agent may go, and what ends it before its model is done. */

/** What an agent may use up before it stops. Absent: no such limit. */
export interface Limits {
  /** Turns of one run: requests to the model (spec 9: 100 for the main agent). */
  readonly turns?: number | undefined
  /** Milliseconds of one run, without the time a person was asked. */
  readonly time?: number | undefined
  /** Tokens sent and answered in one run, as the provider counted them. */
  readonly tokens?: number | undefined
  /** Dollars of one run, by the known prices. A model without a price costs nothing here. */
  readonly cost?: number | undefined
}

/** Why a run ends before the model is done. */
export type Stop =
  | { readonly _tag: "Cancelled" }
  | { readonly _tag: "Limit"; readonly limit: LimitName; readonly message: string }

/** What the model is told of a call that such an end caught. */
export const stopWords = (stop: Stop): string =>
  stop._tag === "Cancelled" ? "the person stopped this before it was done" : stop.message

/** The last event of a run that ended so. */
export const stopEvent = (stop: Stop): ChatEvent =>
  stop._tag === "Cancelled"
    ? { _tag: "UserCancelled" }
    : { _tag: "LimitReached", limit: stop.limit, message: stop.message }

/** Time that counts: none passes while a person is asked. Mutable. */
class Stopwatch {
  private waited = 0
  private since = 0
  private depth = 0

  private readonly started: number

  constructor(started: number) {
    this.started = started
  }

  elapsed(now: number): number {
    return now - this.started - this.waited - (this.depth === 0 ? 0 : now - this.since)
  }

  readonly waiting = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.map(Clock.currentTimeMillis, (now) => {
        if (this.depth === 0) this.since = now
        this.depth += 1
      }),
      () => work,
      () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          this.depth -= 1
          if (this.depth === 0) this.waited += now - this.since
        })
    )
}

const duration = (millis: number): string =>
  millis >= 60_000 ? `${Math.round(millis / 6_000) / 10} minutes` : `${Math.round(millis / 100) / 10} seconds`

const reached = (limit: LimitName, what: string): Extract<Stop, { _tag: "Limit" }> => ({
  _tag: "Limit",
  limit,
  message: `the agent ${what}, which is its limit; another message goes on with the work`
})

/** What of an agent's run has been used up. Mutable. */
export interface Used {
  turns: number
  tokens: number
  cost: number
}

/** The limit that a run has come to, if any. */
export const exceeded = ({ cost, tokens, turns }: Limits, used: Used): Stop | undefined => {
  if (turns !== undefined && used.turns >= turns) return reached("turns", `took ${used.turns} turns`)
  if (tokens !== undefined && used.tokens >= tokens) return reached("tokens", `used ${used.tokens} tokens`)
  if (cost !== undefined && used.cost >= cost) return reached("cost", `cost $${used.cost.toFixed(4)}`)
  return undefined
}

/** Begins to watch for a person's cancel and for the time; both are watched for as long as the fiber runs. */
export const bounded = Effect.fnUntraced(function* (
  { time }: Limits,
  cancel: Effect.Effect<unknown> | undefined,
  outer: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
) {
  const watch = new Stopwatch(yield* Clock.currentTimeMillis)
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
    /** Waits for the end that comes before the model is done. */
    stopped,
    isStopped: Deferred.isDone(stopping),
    /** Work that may take a while and is not worth waiting for once the run is stopped. */
    unlessStopped: <A>(work: Effect.Effect<A>): Effect.Effect<A | undefined> =>
      Effect.raceFirst(Effect.as(stopped, undefined), work),
    /** Runs what waits for a person: no time passes meanwhile. */
    waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => watch.waiting(outer(work))
  }
})
