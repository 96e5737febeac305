/** The registry of hooks: which receive an event, in which order, for how long, and how their answers merge. */

import { Cause, Clock, Context, Duration, Effect, Exit, Fiber, Layer, type Scope } from "effect"
import {
  type HookEvent,
  type HookEventName,
  type HookFailure,
  type HookOutcome,
  type HookOutput,
  emptyOutcome
} from "../../domain/hooks/Hook.ts"
import type { HookAnswer } from "../../domain/hooks/HookAnswer.ts"
import { changedBy, matchesEvent, outcomeOf, toolOf, trimmedMatcher } from "../../domain/hooks/HookOutcome.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import { PatternMatcher } from "../../domain/text/Pattern.ts"
import * as Patterns from "../platform/Patterns.ts"

/** Whether a hook is for a tool. */
type ToolMatcher = (tool: string) => Effect.Effect<boolean>

const always: ToolMatcher = () => Effect.succeed(true)

/**
 * Makes the function of a matcher: a regular expression anywhere in the name of the tool, or the exact name when it is none that can be used. Without a
 * matcher, a hook is for all tools.
 */
export const toolMatcher = (matcher: string | undefined): Effect.Effect<ToolMatcher> => {
  const trimmed = trimmedMatcher(matcher)
  if (trimmed === undefined) return Effect.succeed(always)
  // Most are names, which need no engine.
  if (/^\w+$/.test(trimmed)) return Effect.succeed((tool) => Effect.succeed(tool.includes(trimmed)))
  return Effect.match(Patterns.compile(trimmed, { ignoresCase: false }), {
    onFailure: (): ToolMatcher => (tool) => Effect.succeed(tool === trimmed),
    onSuccess:
      (pattern): ToolMatcher =>
      (tool) =>
        Patterns.run(new PatternMatcher(pattern).line(tool)).pipe(
          Effect.map((found) => found !== undefined),
          // A hook may be there to refuse a call: better it runs once too often.
          Effect.orElseSucceed(() => true)
        )
  })
}

/** Where an event happens. Absent fields: the working folder, no session. */
export interface HookPlace {
  /** The session id. */
  readonly session?: string | undefined
  /** The absolute folder of the conversation. */
  readonly cwd?: string | undefined
  /** The caller reports failures itself, so they are not logged. */
  readonly isReportedByCaller?: boolean | undefined
}

/** Receives each event; its result counts as a hook's answer. A failure does not affect other hooks. */
export type Subscriber = (
  event: HookEvent,
  place: HookPlace
) => Effect.Effect<HookOutput | HookAnswer | undefined | void, unknown>

/** A registered receiver of events, as a value. */
export interface Hook {
  /** The name used in failure reports. */
  readonly name: string
  /** The event it receives. Absent: all. */
  readonly event?: HookEventName | undefined
  /** Which occurrences it receives; see `toolMatcher` and `matchesEvent`. */
  readonly matcher?: string | undefined
  /** Runs in sequence with all other hooks of the event, each seeing the changes of the one before. */
  readonly sequential?: boolean | undefined
  /** Smaller numbers run first: 0 in this process, 1 workspace, 2 user, 4 extensions. */
  readonly priority: number
  /** Time limit for one event. Absent: the default of the system. */
  readonly timeout?: Duration.Input | undefined
  readonly run: Subscriber
}

/**
 * Sends events to hooks and merges their answers. Never fails, and never waits for a hook longer than its time limit.
 *
 * **Example** (Refusing compressions for a while)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Chats, Content, Hooks, Palimpsest } from "palimpsest"
 *
 * const program = Effect.gen(function* () {
 *   const hooks = yield* Hooks.HookSystem
 *   yield* hooks.subscribe("keeper", (event) =>
 *     Effect.succeed(
 *       event._tag === "PreCompress" ? { decision: "block" as const, reason: "someone reads it" } : {}
 *     )
 *   )
 *   const chat = yield* Chats.open("bridge")
 *   const drafts = Array.from({ length: 40 }, (_, n) => ({
 *     content: Content.user(Content.text(`Of oak. ${n}`.repeat(60)))
 *   }))
 *   yield* chat.append(drafts)
 *   return (yield* chat.compress())._tag
 * }).pipe(Effect.scoped)
 * console.log(await Effect.runPromise(Effect.provide(program, Palimpsest.layer({ chat: { window: 8_000 } })))) // => Noop
 * ```
 */
export class HookSystem extends Context.Service<
  HookSystem,
  {
    /** Subscribes to all events until the scope closes. */
    readonly subscribe: (name: string, subscriber: Subscriber) => Effect.Effect<void, never, Scope.Scope>
    /** Adds hooks until the scope closes. Hooks still running then are interrupted and awaited. */
    readonly add: (hooks: ReadonlyArray<Hook>) => Effect.Effect<void, never, Scope.Scope>
    /** Whether any hook receives this event. Costs nothing. */
    readonly has: (event: HookEventName) => boolean
    /** Runs the matching hooks and returns their merged answer. Costs nothing when there are none. */
    readonly fire: (event: HookEvent, place?: HookPlace) => Effect.Effect<HookOutcome>
    /**
     * Runs the matching hooks in the background, for the end of work that was cut off: nobody waits for their answers. When the hooks are removed,
     * they get a second to end.
     */
    readonly fireAside: (event: HookEvent, place?: HookPlace) => Effect.Effect<void>
  }
>()("palimpsest/services/hooks/HookSystem") {
  /** Hooks within this process, each limited to `timeout` per event. */
  static readonly layerWith = (options: { readonly timeout: Duration.Input }) =>
    Layer.sync(HookSystem, () => {
      const registry: Registry = {
        ...options,
        registered: new Map(),
        lookups: new Map(),
        warned: new Set(),
        aside: new Set()
      }
      return {
        add: (hooks) => add(registry, hooks),
        subscribe: (name, run) => add(registry, [{ name, priority: 0, run }]),
        has: (name) => receivers(registry, name).length > 0,
        fire: (event, place = {}) => Effect.suspend(() => fire(registry, event, place)),
        fireAside: (event, place = {}) => fireAside(registry, event, place)
      }
    })

  /** `layerWith` a time limit of 60 s. */
  static readonly layer = HookSystem.layerWith({ timeout: "60 seconds" })
}

type Running = Fiber.Fiber<unknown, unknown>

/** A registered hook with its running work. */
interface Registered {
  readonly hook: Hook
  readonly isForTool: ToolMatcher
  readonly running: Set<Running>
}

/** The hooks of a program. Mutable. */
interface Registry {
  /** The time limit of a hook without its own. */
  readonly timeout: Duration.Input
  readonly registered: Map<symbol, ReadonlyArray<Registered>>
  /** Receivers by event since the last change: events fire for every chunk of an answer. */
  readonly lookups: Map<HookEventName, ReadonlyArray<Registered>>
  /** The hooks and events for which a warning was logged. */
  readonly warned: Set<string>
  /** Events that are fired in the background. */
  readonly aside: Set<Running>
}

/** The hooks that receive an event, in their order. */
const receivers = ({ lookups, registered }: Registry, name: HookEventName): ReadonlyArray<Registered> => {
  const before = lookups.get(name)
  if (before !== undefined) return before
  const hooks = [...registered.values()]
    .flat()
    .filter(({ hook: { event } }) => event === undefined || event === name)
    .sort((one, other) => one.hook.priority - other.hook.priority)
  lookups.set(name, hooks)
  return hooks
}

const add = Effect.fnUntraced(function* ({ aside, lookups, registered }: Registry, hooks: ReadonlyArray<Hook>) {
  const added = yield* Effect.forEach(hooks, (hook) =>
    Effect.map(toolMatcher(hook.matcher), (isForTool) => ({ hook, isForTool, running: new Set<Running>() }))
  )
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const key = Symbol("hooks")
      registered.set(key, added)
      lookups.clear()
      return key
    }),
    (key) =>
      Effect.suspend(() => {
        registered.delete(key)
        lookups.clear()
        // By the system's clock: nobody advances a test clock while layers end.
        const late =
          aside.size === 0
            ? Effect.void
            : Effect.provideService(
                Effect.timeoutOption(Fiber.awaitAll([...aside]), asideTimeout),
                Clock.Clock,
                Clock.Clock.defaultValue()
              )
        return Effect.andThen(
          late,
          Effect.suspend(() => ended(added.flatMap(({ running }) => [...running])))
        )
      })
  )
})

/** How long hooks that run in the background may take once they are removed. */
const asideTimeout = Duration.seconds(1)

const fireAside = (registry: Registry, event: HookEvent, place: HookPlace) =>
  Effect.suspend(() => {
    if (receivers(registry, event._tag).length === 0) return Effect.void
    return Effect.map(Effect.forkDetach(fire(registry, event, place)), (fiber) => {
      registry.aside.add(fiber)
      fiber.addObserver(() => registry.aside.delete(fiber))
    })
  }).pipe(Effect.uninterruptible)

/** Not a generator: without hooks, it must cost nothing. */
const fire = (registry: Registry, event: HookEvent, place: HookPlace) => {
  const all = receivers(registry, event._tag)
  const tool = toolOf(event)
  const run = (hooks: ReadonlyArray<Registered>) =>
    hooks.length === 0 ? Effect.succeed(emptyOutcome) : runHooks(registry, hooks, event, place)
  if (tool === undefined || all.length === 0) return run(all.filter(({ hook }) => matchesEvent(event, hook.matcher)))
  return Effect.flatMap(
    Effect.filter(all, ({ isForTool }) => isForTool(tool)),
    run
  )
}

const runHooks = Effect.fn("HookSystem.fire")(function* (
  { timeout, warned }: Registry,
  hooks: ReadonlyArray<Registered>,
  event: HookEvent,
  place: HookPlace
) {
  const isChained = hooks.some(({ hook }) => hook.sequential === true)
  const reports = isChained
    ? yield* runInOrder(hooks, event, place, timeout)
    : yield* Effect.forEach(hooks, (each) => runHook(each, event, place, timeout), { concurrency: "unbounded" })
  const failures = reports.flatMap(({ hook, problem }) => (problem === undefined ? [] : [{ hook, message: problem }]))
  const replies = reports.flatMap(({ hook, output }) => (output === undefined ? [] : [{ hook, output }]))
  if (place.isReportedByCaller !== true) yield* warn(warned, event._tag, failures)
  return outcomeOf(event._tag, replies, failures, isChained)
})

/** Warns once for each hook and event. */
const warn = (warned: Set<string>, event: HookEventName, failures: ReadonlyArray<HookFailure>) =>
  Effect.forEach(
    failures.filter(({ hook }) => !warned.has(`${event} ${hook}`)),
    ({ hook, message }) => {
      warned.add(`${event} ${hook}`)
      return Effect.logWarning(`hook ${hook} failed on ${event}: ${message}`)
    },
    { discard: true }
  )

/** One hook's answer to one event. */
interface Report extends Omit<HookAnswer, "_tag"> {
  readonly hook: string
}

/** How long interrupted work may take to end: the processes of a command have 5 s, and killing them takes some more. */
const interruptTimeout = Duration.seconds(8)

const ended = (running: ReadonlyArray<Running>) => {
  if (running.length === 0) return Effect.void
  for (const fiber of running) fiber.interruptUnsafe()
  return Effect.asVoid(Effect.timeoutOption(Fiber.awaitAll(running), interruptTimeout))
}

/** Runs hooks in sequence. A failure does not end the sequence. */
const runInOrder = Effect.fnUntraced(function* (
  hooks: ReadonlyArray<Registered>,
  event: HookEvent,
  place: HookPlace,
  timeout: Duration.Input
) {
  const reports: Array<Report> = []
  let current = event
  for (const each of hooks) {
    const report = yield* runHook(each, current, place, timeout)
    reports.push(report)
    if (report.succeeded && report.output !== undefined) current = changedBy(current, report.output)
  }
  return reports
})

const isAnswer = (value: HookOutput | HookAnswer): value is HookAnswer => "_tag" in value && value._tag === "HookAnswer"

const runHook = Effect.fnUntraced(function* (
  { hook, running }: Registered,
  event: HookEvent,
  place: HookPlace,
  defaultTimeout: Duration.Input
): Effect.fn.Return<Report> {
  const timeout = hook.timeout ?? defaultTimeout
  const exit = yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      // In its own fiber, so that a hook that cannot be interrupted does not block us.
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
  const { name } = hook
  if (Exit.isSuccess(exit)) {
    const value = exit.value ?? undefined
    const answer =
      value !== undefined && isAnswer(value) ? value : { output: value, succeeded: true, problem: undefined }
    return { hook: name, ...answer }
  }
  const error = Cause.hasInterruptsOnly(exit.cause) ? "it was interrupted" : Cause.squash(exit.cause)
  return { hook: name, output: undefined, succeeded: false, problem: errorText(error) }
})
