import { Cause, Context, Duration, Effect, Exit, Fiber, Layer, type Scope } from "effect"
import {
  type HookEvent,
  type HookEventName,
  type HookFailure,
  type HookOutcome,
  type HookOutput,
  unsaid
} from "../domain/Hook.ts"
import type { HookAnswer } from "../domain/HookAnswer.ts"
import { changedBy, type HookSaid, isMeant, outcomeOf } from "../domain/HookOutcome.ts"

/** Where something happens; absent: where the program runs, in no session. */
export interface HookPlace {
  /** The session's id. */
  readonly session?: string | undefined
  /** The folder the conversation is about, absolute. */
  readonly cwd?: string | undefined
  /** Whoever tells of the event tells of failures, too: none is logged. */
  readonly isTold?: boolean | undefined
}

/** What is run for each event; what it answers counts as a hook's answer. However it fails, the event goes on to the others. */
export type Subscriber = (
  event: HookEvent,
  place: HookPlace
) => Effect.Effect<HookOutput | HookAnswer | undefined | void, unknown>

/** Somebody who is told of events. A value. */
export interface Hook {
  /** What it is called where it fails. */
  readonly name: string
  /** The event it is told of; absent: all. */
  readonly event?: HookEventName | undefined
  /** Which of them: spec 8, matcher. */
  readonly matcher?: string | undefined
  /** One after the other with all others of the event, each seeing what the one before changed. */
  readonly sequential?: boolean | undefined
  /** Runs first the smaller it is: 0 in this process, 1 of the workspace, 2 the person's, 4 of extensions (spec 8). */
  readonly priority: number
  /** How long it may take for one event; absent: as long as all. */
  readonly timeout?: Duration.Input | undefined
  readonly run: Subscriber
}

/** Tells hooks what happens, and what they say to it. Never fails and never waits longer than its time limit for anyone. */
export class HookSystem extends Context.Service<
  HookSystem,
  {
    /** Subscribes to all events for as long as the scope is open. */
    readonly subscribe: (name: string, subscriber: Subscriber) => Effect.Effect<void, never, Scope.Scope>
    /** Adds hooks for as long as the scope is open. Those that are still at work then are interrupted and waited for. */
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
      const known = new Map<symbol, ReadonlyArray<Known>>()
      // What was asked for since the last change: events are fired for every piece of an answer.
      const found = new Map<HookEventName, ReadonlyArray<Known>>()
      const warned = new Set<string>()
      const concerned = (name: HookEventName): ReadonlyArray<Known> => {
        const before = found.get(name)
        if (before !== undefined) return before
        const hooks = [...known.values()]
          .flat()
          .filter(({ hook: { event } }) => event === undefined || event === name)
          .sort((one, other) => one.hook.priority - other.hook.priority)
        found.set(name, hooks)
        return hooks
      }
      const add = (hooks: ReadonlyArray<Hook>) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const key = Symbol("hooks")
            const added = hooks.map((hook) => ({ hook, running: new Set<Running>() }))
            known.set(key, added)
            found.clear()
            return { added, key }
          }),
          ({ added, key }) =>
            Effect.suspend(() => {
              known.delete(key)
              found.clear()
              return ended(added.flatMap(({ running }) => [...running]))
            })
        ).pipe(Effect.asVoid)
      /** A hook that fails at every event is warned of once for each kind of them. */
      const warn = (event: HookEventName, failures: ReadonlyArray<HookFailure>): Effect.Effect<void> =>
        Effect.forEach(
          failures.filter(({ hook }) => !warned.has(`${event} ${hook}`)),
          ({ hook, message }) => {
            warned.add(`${event} ${hook}`)
            return Effect.logWarning(`hook ${hook} failed on ${event}: ${message}`)
          },
          { discard: true }
        )
      const tell = Effect.fn("HookSystem.fire")(function* (
        hooks: ReadonlyArray<Known>,
        event: HookEvent,
        place: HookPlace
      ): Effect.fn.Return<HookOutcome> {
        const isChained = hooks.some(({ hook }) => hook.sequential === true)
        const reports = isChained
          ? yield* inRow(hooks, event, place, options.timeout)
          : yield* Effect.forEach(hooks, (each) => told(each, event, place, options.timeout), {
              concurrency: "unbounded"
            })
        const failures = reports.flatMap(({ failure }) => (failure === undefined ? [] : [failure]))
        const said = reports.flatMap(({ said }) => (said === undefined ? [] : [said]))
        if (place.isTold !== true) yield* warn(event._tag, failures)
        return outcomeOf(event._tag, said, failures, isChained)
      })
      return {
        add,
        subscribe: (name, run) => add([{ name, priority: 0, run }]),
        has: (name) => concerned(name).length > 0,
        fire: (event, place = {}) =>
          Effect.suspend(() => {
            const hooks = concerned(event._tag)
            if (hooks.length === 0) return Effect.succeed(unsaid)
            const meant = hooks.filter(({ hook }) => isMeant(event, hook.matcher))
            return meant.length === 0 ? Effect.succeed(unsaid) : tell(meant, event, place)
          })
      }
    })

  /** `layerWith` a time limit of 60 s (spec 8). */
  static readonly layer = HookSystem.layerWith({ timeout: "60 seconds" })
}

type Running = Fiber.Fiber<unknown, unknown>

/** A hook, and its work that has not ended. */
interface Known {
  readonly hook: Hook
  readonly running: Set<Running>
}

/** What one hook said to one event. */
interface Report {
  readonly said: HookSaid | undefined
  /** Whether what it changed is what the next one is told. */
  readonly succeeded: boolean
  readonly failure: HookFailure | undefined
}

/** How long what was interrupted may take to end: a command's processes have 5 s (spec 8), and some for being killed. */
const farewell = Duration.seconds(8)

const ended = (running: ReadonlyArray<Running>): Effect.Effect<void> => {
  if (running.length === 0) return Effect.void
  for (const fiber of running) fiber.interruptUnsafe()
  return Effect.asVoid(Effect.timeoutOption(Fiber.awaitAll(running), farewell))
}

/** One after the other; one that fails does not end the row. */
const inRow = Effect.fnUntraced(function* (
  hooks: ReadonlyArray<Known>,
  event: HookEvent,
  place: HookPlace,
  timeout: Duration.Input
): Effect.fn.Return<ReadonlyArray<Report>> {
  const reports: Array<Report> = []
  let current = event
  for (const each of hooks) {
    const report = yield* told(each, current, place, timeout)
    reports.push(report)
    if (report.succeeded && report.said !== undefined) current = changedBy(current, report.said.output)
  }
  return reports
})

const isAnswer = (value: HookOutput | HookAnswer): value is HookAnswer => "_tag" in value && value._tag === "HookAnswer"

const told = Effect.fnUntraced(function* (
  { hook, running }: Known,
  event: HookEvent,
  place: HookPlace,
  usual: Duration.Input
): Effect.fn.Return<Report> {
  const timeout = hook.timeout ?? usual
  const exit = yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      // A subscriber's own fiber, so that one that cannot be interrupted cannot hold us either.
      const fiber = yield* Effect.forkDetach(Effect.suspend(() => hook.run(event, place)))
      running.add(fiber)
      fiber.addObserver(() => running.delete(fiber))
      const letGo = Effect.sync(() => fiber.interruptUnsafe())
      return yield* Fiber.await(fiber).pipe(
        Effect.timeoutOrElse({
          duration: timeout,
          orElse: () =>
            Effect.as(letGo, Exit.fail(`no answer within ${Duration.format(Duration.fromInputUnsafe(timeout))}`))
        }),
        restore,
        Effect.onInterrupt(() => letGo)
      )
    })
  )
  if (Exit.isSuccess(exit)) {
    const value = exit.value ?? undefined
    if (value === undefined) return { said: undefined, succeeded: true, failure: undefined }
    const answer = isAnswer(value) ? value : { output: value, succeeded: true, problem: undefined }
    return {
      said: answer.output === undefined ? undefined : { hook: hook.name, output: answer.output },
      succeeded: answer.succeeded,
      failure: answer.problem === undefined ? undefined : { hook: hook.name, message: answer.problem }
    }
  }
  const error = Cause.hasInterruptsOnly(exit.cause) ? "it was interrupted" : Cause.squash(exit.cause)
  const message = error instanceof Error ? error.message : String(error)
  return { said: undefined, succeeded: false, failure: { hook: hook.name, message } }
})
