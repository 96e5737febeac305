import { Deferred, Effect, Exit, Fiber, Layer, Logger, Ref, Scope, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { type HookEvent, type HookOutput, emptyOutcome } from "../../../src/domain/hooks/Hook.ts"
import { type Hook, HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const compress: HookEvent = { _tag: "PreCompress", trigger: "auto" }
const prompt: HookEvent = { _tag: "BeforeAgent", prompt: "do" }

const specific = (fields: Readonly<Record<string, unknown>>): HookOutput => ({ hookSpecificOutput: fields })

/** Hooks that write down what they are told, in the order in which they are. */
const recording = Effect.gen(function* () {
  const told: Array<readonly [string, HookEvent]> = []
  const hook = (name: string, fields: Partial<Hook> = {}, answer: HookOutput = {}): Hook => ({
    name,
    priority: 0,
    run: (event) =>
      Effect.sync(() => {
        told.push([name, event])
        return answer
      }),
    ...fields
  })
  return { hook, told, names: () => told.map(([name]) => name), hooks: yield* HookSystem }
})

const run = <A, E>(effect: Effect.Effect<A, E, HookSystem | Scope.Scope>) =>
  Effect.provide(Effect.scoped(effect), HookSystem.layer)

describe("HookSystem", () => {
  it.effect(
    "a subscriber that fails, dies or hangs is reported, and others are called",
    HookSystem.layer,
    function* () {
      const hooks = yield* HookSystem
      const told = yield* Ref.make(0)
      yield* hooks.subscribe("fails", () => Effect.fail("no"))
      yield* hooks.subscribe("dies", () => Effect.die(new Error("bug")))
      yield* hooks.subscribe("hangs", () => Effect.never)
      yield* hooks.subscribe("interrupts itself", () => Effect.interrupt)
      yield* hooks.subscribe("works", () => Ref.update(told, (n) => n + 1))
      const fiber = yield* Effect.forkChild(hooks.fire(compress))
      yield* TestClock.adjust("60 seconds")
      const { failures } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(failures, [
        { hook: "fails", message: "no" },
        { hook: "dies", message: "bug" },
        { hook: "hangs", message: "no answer within 1m" },
        { hook: "interrupts itself", message: "it was interrupted" }
      ])
      assert.strictEqual(yield* Ref.get(told), 1)
    }
  )

  it.effect("a subscription ends with its scope", HookSystem.layer, function* () {
    const { hook, hooks, names } = yield* recording
    const scope = yield* Scope.make()
    yield* Scope.provide(hooks.add([hook("short")]), scope)
    yield* hooks.add([hook("long")])
    yield* hooks.fire(compress)
    yield* Scope.close(scope, Exit.void)
    yield* hooks.fire(compress)
    assert.deepStrictEqual(names(), ["short", "long", "long"])
  })

  it.effect("subscribers at work are interrupted and awaited when their scope closes", HookSystem.layer, function* () {
    const hooks = yield* HookSystem
    const [started, ended] = [yield* Deferred.make<void>(), yield* Ref.make(false)]
    const scope = yield* Scope.make()
    const hangs = Deferred.succeed(started, undefined).pipe(
      Effect.andThen(Effect.never),
      Effect.onInterrupt(() => Effect.andThen(Effect.yieldNow, Ref.set(ended, true)))
    )
    yield* Scope.provide(
      hooks.subscribe("hangs", () => hangs),
      scope
    )
    const fiber = yield* Effect.forkChild(hooks.fire(compress))
    yield* Deferred.await(started)
    yield* Scope.close(scope, Exit.void)
    assert.isTrue(yield* Ref.get(ended))
    assert.deepStrictEqual((yield* Fiber.join(fiber)).failures, [{ hook: "hangs", message: "it was interrupted" }])
  })

  it.live("an event in the background is waited for by nobody, and for a second when its hooks end", function* () {
    const told: Array<string> = []
    yield* run(
      Effect.gen(function* () {
        const hooks = yield* HookSystem
        const work = Effect.andThen(
          Effect.sleep("50 millis"),
          Effect.sync(() => void told.push("ended"))
        )
        yield* hooks.subscribe("slow", () => work)
        yield* hooks.fireAside(compress)
        told.push("went on")
      })
    )
    assert.deepStrictEqual(told, ["went on", "ended"])
  })

  it.effect("hooks are called for their own event, filtered by their matcher", HookSystem.layer, function* () {
    const { hook, hooks, names } = yield* recording
    yield* hooks.add([
      hook("all"),
      hook("compress", { event: "PreCompress" }),
      hook("auto", { event: "PreCompress", matcher: "auto" }),
      hook("manual", { event: "PreCompress", matcher: "manual" }),
      hook("agent", { event: "BeforeAgent" })
    ])
    yield* hooks.fire(compress)
    assert.deepStrictEqual(names(), ["all", "compress", "auto"])
  })

  it.effect("lower priority numbers run first", HookSystem.layer, function* () {
    const { hook, hooks, names } = yield* recording
    yield* hooks.add([
      hook("extension", { priority: 4 }),
      hook("home", { priority: 2 }),
      hook("again", { priority: 2 })
    ])
    yield* hooks.add([hook("workspace", { priority: 1 }), hook("own"), hook("own")])
    yield* hooks.fire(compress)
    assert.deepStrictEqual(names(), ["own", "own", "workspace", "home", "again", "extension"])
  })

  it.effect("all run in parallel unless one asks for a sequence", HookSystem.layer, function* () {
    const { hook, hooks, names } = yield* recording
    const gate = yield* Deferred.make<void>()
    const scope = yield* Scope.make()
    const first = (sequential: boolean) => hook("first", { sequential, run: () => Effect.as(Deferred.await(gate), {}) })
    yield* Scope.provide(hooks.add([first(false), hook("second")]), scope)
    const open = yield* Effect.forkChild(hooks.fire(compress), { startImmediately: true })
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(names(), ["second"])
    yield* Scope.close(scope, Exit.void)
    yield* Fiber.join(open)

    yield* hooks.add([first(true), hook("third")])
    const row = yield* Effect.forkChild(hooks.fire(compress), { startImmediately: true })
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(names(), ["second"])
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(row)
    assert.deepStrictEqual(names(), ["second", "third"])
  })

  it.effect("in sequence each sees earlier changes; a failing one ends nothing", HookSystem.layer, function* () {
    const { hook, hooks, told } = yield* recording
    const failed = {
      _tag: "HookAnswer",
      output: specific({ additionalContext: "not this" }),
      succeeded: false,
      problem: undefined
    } as const
    yield* hooks.add([
      hook("one", { sequential: true }, specific({ additionalContext: "a" })),
      hook("dies", { run: () => Effect.die("bug") }),
      hook("fails", { run: () => Effect.succeed(failed) }),
      hook("two", {}, specific({ additionalContext: "b" })),
      hook("three")
    ])
    const { context, failures } = yield* hooks.fire(prompt)
    assert.deepStrictEqual(
      told.map(([, event]) => event._tag === "BeforeAgent" && event.prompt),
      ["do", "do\n\na", "do\n\na\n\nb"]
    )
    // What it said counts all the same.
    assert.strictEqual(context, "a\nnot this\nb")
    assert.deepStrictEqual(failures, [{ hook: "dies", message: "bug" }])
  })

  it.effect("in sequence changes of arguments combine; in parallel the last one wins", HookSystem.layer, function* () {
    const { hook, hooks, told } = yield* recording
    const scope = yield* Scope.make()
    const both = (sequential: boolean) => [
      hook("one", { sequential }, specific({ tool_input: { a: 1, b: 1 } })),
      hook("two", {}, specific({ tool_input: { b: 2 } }))
    ]
    const event: HookEvent = { _tag: "BeforeTool", tool: "t", input: { c: 3 } }
    yield* Scope.provide(hooks.add(both(true)), scope)
    assert.deepStrictEqual((yield* hooks.fire(event)).specific, { tool_input: { a: 1, b: 2 } })
    assert.deepStrictEqual(told[1]?.[1], { ...event, input: { a: 1, b: 1, c: 3 } })
    yield* Scope.close(scope, Exit.void)
    yield* hooks.add(both(false))
    assert.deepStrictEqual((yield* hooks.fire(event)).specific, { tool_input: { b: 2 } })
    assert.deepStrictEqual(told[3]?.[1], event)
  })

  it.effect("subscribers answer like hooks, and get the place of the event", HookSystem.layer, function* () {
    const hooks = yield* HookSystem
    const places: Array<unknown> = []
    yield* hooks.subscribe("vetoes", (_event, place) =>
      Effect.sync((): HookOutput => {
        places.push(place)
        return { decision: "block", reason: "not now" }
      })
    )
    const outcome = yield* hooks.fire(compress, { session: "s1", cwd: "/w" })
    assert.deepStrictEqual(outcome, { ...emptyOutcome, blocked: "not now" })
    yield* hooks.fire(compress)
    assert.deepStrictEqual(places, [{ session: "s1", cwd: "/w" }, {}])
  })

  it.effect("a hook has its own timeout, and waiting for it can be interrupted", HookSystem.layer, function* () {
    const hooks = yield* HookSystem
    const interrupted = yield* Ref.make(0)
    const hangs = Effect.onInterrupt(Effect.never, () => Ref.update(interrupted, (n) => n + 1))
    yield* hooks.add([{ name: "slow", priority: 0, timeout: "2 seconds", run: () => hangs }])
    const first = yield* Effect.forkChild(hooks.fire(compress))
    yield* TestClock.adjust("2 seconds")
    assert.deepStrictEqual((yield* Fiber.join(first)).failures, [{ hook: "slow", message: "no answer within 2s" }])
    const second = yield* Effect.forkChild(hooks.fire(compress))
    yield* TestClock.adjust("1 second")
    yield* Fiber.interrupt(second)
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* Ref.get(interrupted), 2)
  })

  it.effect("interrupting an event interrupts all its hooks", function* () {
    const state = { working: 0 }
    const hook: Hook = {
      name: "works",
      priority: 0,
      run: () =>
        Effect.acquireUseRelease(
          Effect.sync(() => (state.working += 1)),
          () => Effect.andThen(Effect.yieldNow, Effect.yieldNow),
          () => Effect.sync(() => (state.working -= 1))
        ).pipe(Effect.as({}))
    }
    const points = yield* interruptSweep(
      () => run(Effect.flatMap(HookSystem, (hooks) => Effect.andThen(hooks.add([hook, hook]), hooks.fire(compress)))),
      () => Effect.sync(() => assert.strictEqual(state.working, 0))
    )
    assert.isAbove(points, 1)
  })

  it.effect("a hook that fails every time is reported once", () => {
    const lines: Array<unknown> = []
    return Effect.gen(function* () {
      const hooks = yield* HookSystem
      yield* hooks.subscribe("fails", () => Effect.fail("no"))
      for (let count = 0; count < 3; count += 1) {
        assert.strictEqual((yield* hooks.fire(compress)).failures.length, 1)
      }
      yield* hooks.fire({ _tag: "SessionEnd", reason: "exit" }, { isReportedByCaller: true })
      yield* hooks.fire(prompt)
      assert.deepStrictEqual(lines, [
        ["hook fails failed on PreCompress: no"],
        ["hook fails failed on BeforeAgent: no"]
      ])
    }).pipe(
      Effect.provide(
        Layer.merge(HookSystem.layer, Logger.layer([Logger.make(({ message }) => void lines.push(message))]))
      )
    )
  })

  it.effect("without hooks nothing is done: no span, no fiber, the same answer object", () => {
    const spans: Array<string> = []
    const tracer = Tracer.make({
      span: (options) => {
        spans.push(options.name)
        return new Tracer.NativeSpan(options)
      }
    })
    return Effect.gen(function* () {
      const { hook, hooks } = yield* recording
      assert.isFalse(hooks.has("PreCompress"))
      assert.strictEqual(yield* hooks.fire(compress), emptyOutcome)
      yield* hooks.add([hook("manual", { event: "PreCompress", matcher: "manual" })])
      assert.isTrue(hooks.has("PreCompress"))
      assert.isFalse(hooks.has("BeforeAgent"))
      assert.strictEqual(yield* hooks.fire(compress), emptyOutcome)
      assert.strictEqual(yield* hooks.fire(prompt), emptyOutcome)
      assert.deepStrictEqual(spans, [])
      yield* hooks.fire({ _tag: "PreCompress", trigger: "manual" })
      assert.deepStrictEqual(spans, ["HookSystem.fire"])
    }).pipe(Effect.provide(HookSystem.layer), Effect.provideService(Tracer.Tracer, tracer))
  })
})
