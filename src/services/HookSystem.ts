import { Cause, Context, Duration, Effect, Exit, Fiber, Layer, type Scope } from "effect"
import {
  type HookEvent,
  type HookEventName,
  type HookFailure,
  type HookOutcome,
  type HookOutput,
  unsaid
} from "../domain/Hook.ts"

/** Where something happens; absent: where the program runs, in no session. */
export interface HookPlace {
  /** The session's id. */
  readonly session?: string | undefined
  /** The folder the conversation is about, absolute. */
  readonly cwd?: string | undefined
}

/** What is run for each event; what it answers counts as a hook's answer. However it fails, the event goes on to the others. */
export type Subscriber = (event: HookEvent, place: HookPlace) => Effect.Effect<HookOutput | void, unknown>

/** Somebody who is told of events. A value. */
export interface Hook {
  /** Unique with `key`; what it is called where it fails. */
  readonly name: string
  /** The event it is told of; absent: all. */
  readonly event?: HookEventName | undefined
  /** Which of them: spec 8, matcher. */
  readonly matcher?: string | undefined
  /** One after the other with all others of the event, each seeing what the one before changed. */
  readonly sequential?: boolean | undefined
  /** Runs first the smaller it is: 0 in this process, 1 of the workspace, 2 the person's, 4 of extensions (spec 8). */
  readonly priority: number
  readonly run: Subscriber
}

/** Tells hooks what happens, and what they say to it. Never fails and never waits longer than its time limit for anyone. */
export class HookSystem extends Context.Service<
  HookSystem,
  {
    /** Subscribes to all events for as long as the scope is open. */
    readonly subscribe: (name: string, subscriber: Subscriber) => Effect.Effect<void, never, Scope.Scope>
    /** Adds hooks for as long as the scope is open. */
    readonly add: (hooks: ReadonlyArray<Hook>) => Effect.Effect<void, never, Scope.Scope>
    /** Whether anybody would be told of such an event; costs nothing. */
    readonly has: (event: HookEventName) => boolean
    /** Tells every hook that it concerns, and says what all together said. Costs nothing where there are none. */
    readonly fire: (event: HookEvent, place?: HookPlace) => Effect.Effect<HookOutcome>
  }
>()("palimpsest/services/HookSystem") {
  /** Hooks within this process. Each has `timeout` (default 60 s, spec 8) for one event. */
  static readonly layerWith = (options: { readonly timeout: Duration.Input }) =>
    Layer.sync(HookSystem, () => {
      const known = new Map<symbol, ReadonlyArray<Hook>>()
      const add = (hooks: ReadonlyArray<Hook>) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const key = Symbol("hooks")
            known.set(key, hooks)
            return key
          }),
          (key) => Effect.sync(() => known.delete(key))
        ).pipe(Effect.asVoid)
      const concerned = (name: HookEventName) =>
        [...known.values()].flat().filter(({ event }) => event === undefined || event === name)
      const fire = Effect.fn("HookSystem.fire")(function* (event: HookEvent, place: HookPlace) {
        const reports = yield* Effect.forEach(concerned(event._tag), (hook) => told(hook, event, place, options.timeout), {
          concurrency: "unbounded"
        })
        return { ...unsaid, failures: reports.flat() }
      })
      return {
        add,
        subscribe: (name, run) => add([{ name, priority: 0, run }]),
        has: (name) => concerned(name).length > 0,
        fire: (event, place = {}) => (known.size === 0 ? Effect.succeed(unsaid) : fire(event, place))
      }
    })

  /** `layerWith` a time limit of 60 s (spec 8). */
  static readonly layer = HookSystem.layerWith({ timeout: "60 seconds" })
}

const told = Effect.fnUntraced(function* (
  { name, run }: Hook,
  event: HookEvent,
  place: HookPlace,
  timeout: Duration.Input
): Effect.fn.Return<ReadonlyArray<HookFailure>> {
  // A subscriber's own fiber, so that one that cannot be interrupted cannot hold us either.
  const fiber = yield* Effect.forkDetach(Effect.suspend(() => run(event, place)))
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
  return [{ hook: name, message }]
})
