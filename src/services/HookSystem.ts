import { Cause, Context, Duration, Effect, Exit, Fiber, Layer, Schema, type Scope } from "effect"
import { TokenCount } from "../domain/Tokens.ts"

/** Why a compression is attempted. */
export const Trigger = Schema.Literals(["manual", "auto"])
export type Trigger = typeof Trigger.Type

/** What subscribers are told. */
export const HookEvent = Schema.TaggedUnion({
  /** Before a compression is attempted, and before it is known whether it will come to one (spec 3.1 step 2). */
  PreCompress: { trigger: Trigger },
  /** After one ended, however it did. */
  PostCompress: { trigger: Trigger, status: Schema.String, before: TokenCount, after: TokenCount }
})
export type HookEvent = typeof HookEvent.Type

/** A subscriber failed, died or took too long. The event went on to the others. */
export interface HookFailure {
  readonly subscriber: string
  readonly message: string
}

/** What is run for each event. However it fails, the event goes on to the others. */
export type Subscriber = (event: HookEvent) => Effect.Effect<void, unknown>

/** Tells subscribers what happens. Never fails and never waits longer than its time limit for anyone. */
export class HookSystem extends Context.Service<
  HookSystem,
  {
    /** Subscribes for as long as the scope is open. */
    readonly subscribe: (name: string, subscriber: Subscriber) => Effect.Effect<void, never, Scope.Scope>
    /** Tells every subscriber, all at once, and says who failed. */
    readonly fire: (event: HookEvent) => Effect.Effect<ReadonlyArray<HookFailure>>
  }
>()("palimpsest/services/HookSystem") {
  /** Subscribers within this process. Each has `timeout` (default 60 s, spec 8) for one event. */
  static readonly layerWith = (options: { readonly timeout: Duration.Input }) =>
    Layer.sync(HookSystem, () => {
      const subscribers = new Map<symbol, { readonly name: string; readonly subscriber: Subscriber }>()
      return {
        subscribe: (name, subscriber) =>
          Effect.acquireRelease(
            Effect.sync(() => {
              const key = Symbol(name)
              subscribers.set(key, { name, subscriber })
              return key
            }),
            (key) => Effect.sync(() => subscribers.delete(key))
          ).pipe(Effect.asVoid),
        fire: Effect.fn("HookSystem.fire")(function* (event) {
          const reports = yield* Effect.forEach(
            [...subscribers.values()],
            ({ name, subscriber }) => told(name, subscriber, event, options.timeout),
            { concurrency: "unbounded" }
          )
          return reports.flat()
        })
      }
    })

  /** `layerWith` a time limit of 60 s (spec 8). */
  static readonly layer = HookSystem.layerWith({ timeout: "60 seconds" })
}

const told = Effect.fnUntraced(function* (
  name: string,
  subscriber: Subscriber,
  event: HookEvent,
  timeout: Duration.Input
): Effect.fn.Return<ReadonlyArray<HookFailure>> {
  // A subscriber's own fiber, so that one that cannot be interrupted cannot hold us either.
  const fiber = yield* Effect.forkDetach(Effect.suspend(() => subscriber(event)))
  const letGo = Effect.sync(() => fiber.interruptUnsafe())
  const exit = yield* Fiber.await(fiber).pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () =>
        Effect.as(letGo, Exit.fail(`no answer within ${Duration.format(Duration.fromInputUnsafe(timeout))}`))
    }),
    Effect.onInterrupt(() => letGo)
  )
  if (Exit.isSuccess(exit)) return []
  const error = Cause.hasInterruptsOnly(exit.cause) ? "it was interrupted" : Cause.squash(exit.cause)
  const message = error instanceof Error ? error.message : String(error)
  yield* Effect.logWarning(`hook ${name} failed on ${event._tag}: ${message}`)
  return [{ subscriber: name, message }]
})
