import { Deferred, Effect, Exit, Fiber, Layer, Schema, Scheduler, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Outcome } from "../../src/domain/compression/Compression.ts"
import type { InvalidOption } from "../../src/domain/compression/InvalidOption.ts"
import { text, user } from "../../src/domain/content/Content.ts"
import { type Session, type SessionEvent, applyEvent } from "../../src/domain/session/Session.ts"
import type { UnknownEntry } from "../../src/services/chat/Branch.ts"
import { Chat } from "../../src/services/chat/Chat.ts"
import type { ChatBusy } from "../../src/services/chat/Commit.ts"
import type { PlanRefused } from "../../src/services/compression/strategies/CompressRequest.ts"
import { Summarizer, SummarizerError } from "../../src/services/compression/summary/Summarizer.ts"
import { HookSystem, type Subscriber } from "../../src/services/hooks/HookSystem.ts"
import { SessionStoreError, SessionUnavailable } from "../../src/services/session/SessionStore.ts"
import { TokenCounter, TokenCountError } from "../../src/services/tokens/TokenCounter.ts"
import {
  described,
  draftsOf,
  nativeScripts,
  play,
  policyOf,
  recorded,
  type Script,
  type World,
  worldOf
} from "../support/generate.ts"
import { interruptSweep } from "../support/interruptSweep.ts"
import { runsOf, strideOf } from "../support/runs.ts"
import { assert, describe, it } from "../support/vitest.ts"

/**
 * Law 2: whatever stops an operation, the conversation is as before it, or as after it.
 *
 * One file: every way to stop an operation is tried on the same operations and sessions.
 */

type Operation = "compress" | "append" | "undo" | "redo" | "branch"

/** A conversation in which every operation has something to do. */
const busy: Script = {
  opening: "environment",
  beats: [
    { kind: "asks", saying: { words: "constraint", size: "page" } },
    { kind: "parallel calls", saying: { words: "plain", size: "page" } },
    { kind: "answers", saying: { words: "emoji", size: "page" } },
    { kind: "writes a file", saying: { words: "plain", size: "paragraph" } },
    { kind: "asks", saying: { words: "user words", size: "paragraph" } },
    { kind: "runs a command that fails", saying: { words: "plain", size: "page" } },
    { kind: "answers", saying: { words: "plain", size: "once" } }
  ],
  steps: [{ action: "compress", beats: [] }],
  wanted: {
    limit: 6_000,
    preserve: 0.3,
    toolBudget: 400,
    outputForm: "last-lines",
    overhead: 0,
    ladder: true,
    focus: ""
  }
}

const more = draftsOf(
  [
    { kind: "exchange", saying: { words: "plain", size: "page" } },
    { kind: "asks", saying: { words: "line breaks", size: "paragraph" } }
  ],
  500
)

const inWorld =
  (world: World) =>
  <A, E, R>(effect: Effect.Effect<A, E, R | Layer.Success<World["services"]>>) =>
    Effect.provide(effect, Layer.fresh(world.services))

/** The session of a script, prepared for an operation: with something to compress, to undo, to redo. */
const readyFor = (script: Script, operation: Operation) =>
  Effect.gen(function* () {
    const { chat } = yield* play(worldOf(), script)
    yield* Effect.orDie(chat.append(more))
    if (operation === "redo") yield* Effect.orDie(chat.undo)
    return yield* chat.session
  }).pipe(Effect.scoped, inWorld(worldOf()))

/** One conversation in memory that starts from a session, and its log. */
const beginning = Effect.fnUntraced(function* (world: World, session: Session) {
  const events: Array<SessionEvent> = []
  const memory = { id: "law", append: () => Effect.void }
  const log = recorded(memory, events)
  const chat = yield* Chat.keep({ log: world.log?.(log) ?? log, session })
  return { chat: world.chat?.(chat) ?? chat, events }
})
type Begun = Effect.Success<ReturnType<typeof beginning>>

/** Runs the operation; for a compression, returns its outcome. */
const operate = (
  script: Script,
  { chat }: Begun,
  operation: Operation,
  cancel?: Effect.Effect<unknown>
): Effect.Effect<
  Outcome | undefined,
  ChatBusy | InvalidOption | PlanRefused | SessionStoreError | TokenCountError | UnknownEntry
> => {
  switch (operation) {
    case "compress":
      return chat.compress({ policy: policyOf(script), forced: true, cancel })
    case "append":
      return Effect.as(chat.append(more), undefined)
    case "undo":
      return Effect.as(chat.undo, undefined)
    case "redo":
      return Effect.as(chat.redo, undefined)
    case "branch":
      return Effect.as(
        // The first entry of the tree is there in every script that said anything.
        Effect.flatMap(chat.tree, ({ nodes }) =>
          Effect.forEach([...nodes.keys()].slice(0, 1), (to) => chat.branch({ to, summary: true, cancel }))
        ),
        undefined
      )
  }
}

/** The states that an operation may leave: before, after, and between the messages of one `append`. */
const allowedStates = Effect.fnUntraced(function* (script: Script, session: Session, operation: Operation) {
  const begun = yield* beginning(worldOf(), session)
  yield* Effect.orDie(operate(script, begun, operation))
  const states = begun.events.map((_, index) => begun.events.slice(0, index + 1).reduce(applyEvent, session))
  return new Set([session, ...states].map(described))
})

/** What is wrong with a conversation after an operation. */
const inconsistent = Effect.fnUntraced(function* (
  script: Script,
  { chat, events }: Begun,
  session: Session,
  allowed: ReadonlySet<string>
) {
  const now = described(yield* chat.session)
  if (!allowed.has(now)) return "the conversation is neither what it was nor what it is after"
  if (described(events.reduce(applyEvent, session)) !== now) return "the log says something else than the conversation"
  const next = yield* Effect.exit(chat.compress({ policy: policyOf(script), forced: true }))
  if (Exit.isFailure(next)) return `the next compression does not work: ${String(next.cause)}`
  return described(events.reduce(applyEvent, session)) === described(yield* chat.session)
    ? undefined
    : "after the next compression the log says something else than the conversation"
})

interface Swept {
  readonly points: number
  readonly violation: string | undefined
}

/** Interrupts an operation at its suspension points, up to the first violation. */
const interrupted = Effect.fnUntraced(function* (
  world: World,
  script: Script,
  operation: Operation,
  stride?: number,
  first?: number
) {
  const session = yield* readyFor(script, operation)
  const allowed = yield* allowedStates(script, session, operation)
  let begun: Begun | undefined
  return yield* interruptSweep(
    () =>
      Effect.gen(function* () {
        begun = undefined
        begun = yield* beginning(world, session)
        yield* operate(script, begun, operation)
      }),
    (_, k) =>
      Effect.gen(function* () {
        if (begun === undefined) return
        const problem = yield* inconsistent(script, begun, session, allowed)
        if (problem === undefined) return
        return yield* Effect.fail<Swept>({ points: k, violation: `${operation} interrupted at point ${k}: ${problem}` })
      }),
    stride,
    first
  ).pipe(
    Effect.map((points): Swept => ({ points, violation: undefined })),
    Effect.catch((swept) => Effect.succeed(swept))
  )
})

/** Runs something once, at the k-th opportunity to yield. */
class ActAt extends Scheduler.MixedScheduler {
  private seen = 0
  hit = false
  readonly k: number
  readonly act: () => void

  constructor(k: number, act: () => void) {
    super()
    this.k = k
    this.act = act
  }

  override shouldYield(): boolean {
    this.seen += 1
    if (this.seen !== this.k) return false
    this.hit = true
    queueMicrotask(this.act)
    return true
  }
}

/** Cancels a compression at its suspension points, until there is none left. */
const cancelled = Effect.fnUntraced(function* (world: World, script: Script) {
  const session = yield* readyFor(script, "compress")
  const allowed = yield* allowedStates(script, session, "compress")
  for (let k = 1; ; k += strideOf(59)) {
    const cancel = yield* Deferred.make<void>()
    const scheduler = new ActAt(k, () => Deferred.doneUnsafe(cancel, Exit.void))
    const begun = yield* beginning(world, session)
    const exit = yield* operate(script, begun, "compress", Deferred.await(cancel)).pipe(
      Effect.provideService(Scheduler.Scheduler, scheduler),
      Effect.exit
    )
    const gaveUp = Exit.isSuccess(exit) && exit.value?._tag === "Cancelled"
    const changed = described(yield* begun.chat.session) !== described(session)
    const wrong = !Exit.isSuccess(exit)
      ? `ended with ${String(exit.cause)}`
      : gaveUp && (changed || begun.events.length > 0)
        ? "ended as Cancelled and changed the conversation"
        : yield* inconsistent(script, begun, session, allowed)
    if (wrong !== undefined) return { points: k, violation: `cancelled at point ${k}: ${wrong}` } satisfies Swept
    if (!scheduler.hit) return { points: k - 1, violation: undefined } satisfies Swept
  }
})

const broken = new SessionStoreError({
  reason: new SessionUnavailable({ operation: "append", message: "no space", cause: "no space" })
})

const operations: ReadonlyArray<Operation> = ["compress", "append", "undo", "redo", "branch"]

/** How an operation of a world fails: which one, and at which call. */
const Trouble = Schema.Struct({
  operation: Schema.Literals(operations),
  what: Schema.Literals(["log", "counter", "summarizer fails", "summarizer dies", "hook fails", "hook dies"]),
  call: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 }))
})

/** The real service, except that its n-th call fails. */
const nth = (n: number) => {
  let calls = 0
  return <A, E, R, E2>(real: Effect.Effect<A, E, R>, instead: Effect.Effect<never, E2>): Effect.Effect<A, E | E2, R> =>
    Effect.suspend((): Effect.Effect<A, E | E2, R> => {
      calls += 1
      return calls === n ? instead : real
    })
}

const troubled = ({ call, what }: typeof Trouble.Type): World => {
  const at = nth(call)
  switch (what) {
    case "log":
      return worldOf({ log: (log) => ({ ...log, append: (event) => at(log.append(event), Effect.fail(broken)) }) })
    case "counter":
      return worldOf({
        counter: Layer.effect(
          TokenCounter,
          Effect.map(TokenCounter, (real) => ({
            count: (parts) =>
              at(real.count(parts), Effect.fail(new TokenCountError({ message: "gone", cause: "gone" })))
          }))
        ).pipe(Layer.provide(TokenCounter.layerEstimate))
      })
    case "summarizer fails":
      return worldOf({
        summarizer: Layer.succeed(Summarizer, {
          ask: () => Effect.die("unexpected call"),
          count: () => Effect.die("unexpected call"),
          summarize: () =>
            Effect.fail(new SummarizerError({ reason: "RateLimited", message: "slow down", cause: "429", calls: [] }))
        })
      })
    case "summarizer dies":
      return worldOf({
        summarizer: Layer.effect(
          Summarizer,
          Effect.map(Summarizer, (real) => ({
            ask: () => Effect.die("unexpected call"),
            count: () => Effect.die("unexpected call"),
            summarize: (request) => at(real.summarize(request), Effect.die("a bug"))
          }))
        ).pipe(Layer.provide(Summarizer.layerExtractive))
      })
    case "hook fails":
    case "hook dies":
      return worldOf({
        hooks: Layer.effect(
          HookSystem,
          Effect.gen(function* () {
            const hooks = yield* HookSystem
            yield* hooks.subscribe("bad", () =>
              at(Effect.void, what === "hook dies" ? Effect.die("a bug") : Effect.fail("no"))
            )
            return hooks
          })
        ).pipe(Layer.provide(HookSystem.layer))
      })
  }
}

describe("law 2: every operation is atomic", () => {
  it.effect.each(operations)("%s, interrupted at every suspension point", (operation) =>
    Effect.gen(function* () {
      const { points, violation } = yield* interrupted(worldOf(), busy, operation)
      assert.isUndefined(violation)
      assert.isAbove(points, operation === "compress" ? 100 : 10)
    }).pipe(inWorld(worldOf()))
  )

  it.effect("a compression, cancelled at any point", () =>
    Effect.gen(function* () {
      const { points, violation } = yield* cancelled(worldOf(), busy)
      assert.isUndefined(violation)
      assert.isAbove(points, 100)
    }).pipe(inWorld(worldOf()))
  )

  it.effect.prop(
    "any operation on any conversation, interrupted at any point, and cancelled",
    [nativeScripts, Schema.Literals(operations)],
    ([script, operation]) =>
      Effect.gen(function* () {
        const { violation } = yield* interrupted(worldOf(), script, operation)
        if (violation !== undefined) return yield* Effect.fail(violation)
        const stopped = yield* cancelled(worldOf(), script)
        return stopped.violation === undefined ? true : yield* Effect.fail(stopped.violation)
      }).pipe(inWorld(worldOf())),
    { arbitrary: { runs: runsOf(14, 2), seed: "law 2", size: 10, maxShrinks: 100 } }
  )

  it.effect.prop(
    "any conversation whose log, counter, summarizer or hook fails at any call",
    [nativeScripts, Trouble],
    ([script, trouble]) =>
      Effect.gen(function* () {
        const session = yield* readyFor(script, trouble.operation)
        const world = troubled(trouble)
        yield* Effect.gen(function* () {
          const begun = yield* beginning(world, session)
          const exit = yield* Effect.exit(operate(script, begun, trouble.operation))
          const state = yield* begun.chat.session
          const logged = begun.events.reduce(applyEvent, session)
          if (described(logged) !== described(state)) return yield* Effect.fail("the log and the conversation differ")
          const changes = begun.events.filter(({ _tag }) => _tag !== "CompressionFailed")
          if (Exit.isFailure(exit) && changes.length > 0 && trouble.operation !== "append") {
            return yield* Effect.fail("it failed and changed the conversation")
          }
          const next = yield* Effect.exit(begun.chat.append([{ content: user(text("go on")) }]))
          if (Exit.isFailure(next) && String(next.cause).includes("ChatBusy"))
            return yield* Effect.fail("it is still busy")
          const after = begun.events.reduce(applyEvent, session)
          if (described(after) !== described(yield* begun.chat.session)) return yield* Effect.fail("then they differ")
          return true
        }).pipe(inWorld(world))
        return true
      }),
    { arbitrary: { runs: runsOf(1_000, 20), seed: "law 2, trouble", size: 10, maxShrinks: 100 } }
  )

  it.effect("a hung log: reading works, an interruption waits, and the operation is complete", () =>
    Effect.gen(function* () {
      const session = yield* readyFor(busy, "compress")
      const hanging = yield* Deferred.make<void>()
      const release = yield* Deferred.make<void>()
      const begun = yield* beginning(
        worldOf({
          log: (log) => ({
            ...log,
            append: (event) =>
              Deferred.succeed(hanging, undefined).pipe(
                Effect.andThen(Deferred.await(release)),
                Effect.andThen(log.append(event))
              )
          })
        }),
        session
      )
      const fiber = yield* Effect.forkChild(operate(busy, begun, "compress"))
      yield* Deferred.await(hanging)
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      assert.strictEqual(described(yield* begun.chat.session), described(session))
      const other = yield* Effect.flip(begun.chat.undo)
      assert.strictEqual(other._tag, "ChatBusy")
      yield* Deferred.succeed(release, undefined)
      yield* Fiber.join(interrupting)
      assert.deepStrictEqual(
        begun.events.map(({ _tag }) => _tag),
        ["Compressed"]
      )
      assert.strictEqual(described(yield* begun.chat.session), described(begun.events.reduce(applyEvent, session)))
      assert.isTrue(yield* begun.chat.undo)
    }).pipe(inWorld(worldOf()))
  )

  it.effect("a cancel while the log hangs has no effect on the commit", () =>
    Effect.gen(function* () {
      const session = yield* readyFor(busy, "compress")
      const cancel = yield* Deferred.make<void>()
      const begun = yield* beginning(
        worldOf({
          log: (log) => ({
            ...log,
            append: (event) =>
              Effect.andThen(Deferred.succeed(cancel, undefined), Effect.andThen(Effect.yieldNow, log.append(event)))
          })
        }),
        session
      )
      const outcome = yield* begun.chat.compress({
        policy: policyOf(busy),
        forced: true,
        cancel: Deferred.await(cancel)
      })
      assert.strictEqual(outcome._tag, "Compressed")
      assert.strictEqual(described(yield* begun.chat.session), described(begun.events.reduce(applyEvent, session)))
    }).pipe(inWorld(worldOf()))
  )

  describe("a hook subscriber", () => {
    const subscribers: ReadonlyArray<readonly [string, Subscriber]> = [
      ["that fails", () => Effect.fail("no")],
      ["that dies", () => Effect.die("a bug")],
      ["that throws", () => assert.fail("a bug")],
      ["that interrupts itself", () => Effect.interrupt],
      ["that never answers", () => Effect.never],
      ["that never answers and cannot be interrupted", () => Effect.uninterruptible(Effect.never)]
    ]
    it.effect.each(subscribers)("%s does not keep a compression from completing", ([, subscriber]) =>
      Effect.gen(function* () {
        const session = yield* readyFor(busy, "compress")
        const begun = yield* beginning(worldOf(), session)
        const hooks = yield* HookSystem
        const subscribed = yield* Scope.make()
        yield* Scope.provide(hooks.subscribe("bad", subscriber), subscribed)
        const fiber = yield* Effect.forkDetach(operate(busy, begun, "compress"))
        for (let minute = 0; minute < 4; minute += 1) yield* TestClock.adjust("61 seconds")
        const exit = fiber.pollUnsafe()
        assert.isDefined(exit, "it still waits")
        assert.isTrue(exit !== undefined && Exit.isSuccess(exit), "it was interrupted")
        assert.strictEqual(described(yield* begun.chat.session), described(begun.events.reduce(applyEvent, session)))
        // It does not keep its own subscription from ending, even if it never reads.
        const ending = yield* Effect.forkDetach(Scope.close(subscribed, Exit.void))
        yield* TestClock.adjust("10 seconds")
        assert.isDefined(ending.pollUnsafe())
      }).pipe(Effect.scoped, inWorld(worldOf()))
    )
  })

  it.effect("the checks detect a commit that can be interrupted between the log and the state", () =>
    Effect.gen(function* () {
      const world = worldOf({
        log: (log) => ({
          ...log,
          append: (event) => Effect.interruptible(Effect.andThen(log.append(event), Effect.yieldNow))
        })
      })
      // It commits after the 400th point.
      assert.isDefined((yield* interrupted(world, busy, "compress", 1, 400)).violation)
      assert.isDefined((yield* interrupted(world, busy, "undo", 1)).violation)
    }).pipe(inWorld(worldOf()))
  )
})
