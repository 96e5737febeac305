/** The suite of session stores whose storage fails, at each of its calls in turn. */

import { Effect, Exit, type Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import assert from "node:assert/strict"
import { text as textPart } from "../../domain/content/Content.ts"
import { entryId } from "../../domain/conversation/Conversation.ts"
import type { SessionEvent } from "../../domain/session/Session.ts"
import { SessionStore } from "../../services/session/SessionStore.ts"
import { defineTests, type TestFunctions } from "./ContractTests.ts"
import { appended, entry, sessionOf, started, compressedBy } from "./SessionHistories.ts"

/**
 * The fate of one call of the storage: it succeeds; it fails without effect (a full disk, an unavailable database); or it succeeds but its
 * answer is lost, so that the caller sees a failure.
 */
export type StorageFault = "pass" | "fail" | "lost"

/** A store over a storage whose calls can fail. */
export interface FaultyStorage {
  /** The store. Providing it again is a restart. */
  readonly layer: Layer.Layer<SessionStore, unknown>
  /** Decides from now on what happens to each call of the storage, by its number from 1 since this was set. */
  readonly inject: (fault: (call: number) => StorageFault) => void
  /** The calls since `inject`. */
  readonly calls: () => number
}

const compressed: SessionEvent = compressedBy({
  drop: { from: entryId(1), to: entryId(2) },
  insert: [entry(4, [textPart("summary")])],
  shorten: []
})

/** A small message, one with a blob, one of each after a checkpoint. */
const events: ReadonlyArray<SessionEvent> = [
  appended(1, textPart("small")),
  appended(2, textPart("x".repeat(9_000))),
  appended(3, textPart("more")),
  compressed,
  appended(5, textPart("y".repeat(9_000))),
  appended(6, textPart("last"))
]

/** Creates the session, or finds it when the answer of an earlier attempt was lost. */
const begun = SessionStore.use((store) =>
  Effect.catch(Effect.scoped(store.create(started("s1"))), () =>
    Effect.scoped(Effect.catch(store.create(started("s1")), () => store.open("s1")))
  )
)

const reload = SessionStore.use((store) => Effect.scoped(Effect.flatMap(store.open("s1"), ({ log }) => log.whole)))

/**
 * Appends all events and restarts at the first failure, as a program does whose storage went away: it opens the session again and repeats
 * the append that has no answer. Acknowledged events must be there then. Returns the failures.
 */
const survived = Effect.fnUntraced(function* (layer: FaultyStorage["layer"]) {
  let acknowledged = 0
  let failures = 0
  const run = SessionStore.use((store) =>
    Effect.gen(function* () {
      const { log } = yield* store.open("s1")
      const found = yield* log.whole
      const all = [started("s1"), ...events]
      const there = all.findIndex((_, index) => sameSession(found, sessionOf(all.slice(0, index + 1))))
      assert.ok(there >= acknowledged, `${acknowledged} events were acknowledged, and the log has ${there}`)
      assert.ok(there <= acknowledged + 1, "the log has an event that was not appended")
      // A checkpoint has no id: a caller who repeats it checks whether it is stored.
      const next = events[acknowledged]?._tag === "Compressed" ? there : acknowledged
      for (const event of events.slice(next)) {
        yield* log.append(event)
        acknowledged = events.indexOf(event) + 1
      }
    })
  ).pipe(Effect.scoped, Effect.provide(layer))
  const start = Effect.provide(begun, layer)
  for (const step of [start, run]) {
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const exit = yield* Effect.exit(step)
      if (Exit.isSuccess(exit)) break
      const problem = exit.cause.reasons.find((reason) => reason._tag !== "Fail")
      assert.strictEqual(problem, undefined, `expected a typed failure, got ${String(problem)}`)
      failures += 1
    }
  }
  return failures
})

const sameSession = (one: unknown, other: unknown): boolean => {
  try {
    assert.deepStrictEqual(one, other)
    return true
  } catch {
    return false
  }
}

/** Lets time pass for fibers that wait until the storage is back. */
const timePasses = Effect.forever(
  Effect.andThen(
    Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
    TestClock.adjust("100 millis")
  )
)

/** Maximum number of storage calls that `events` may take. */
const maxCalls = 400

/** A storage whose calls can fail. */
export interface Variant {
  readonly name: string
  /** Makes a storage without sessions. */
  readonly make: Effect.Effect<FaultyStorage, unknown, Scope.Scope>
  /** Fails every n-th call only, for a storage that needs many calls to start. Default: 1. */
  readonly every?: number | undefined
}

const repeatsAppends = ({ make }: Variant) =>
  function* () {
    const storage = yield* make
    yield* Effect.forkScoped(timePasses)
    yield* Effect.gen(function* () {
      const store = yield* SessionStore
      const log = yield* store.create(started("s1"))
      for (const [n, event] of [appended(1, textPart("one")), appended(2, textPart("two"))].entries()) {
        storage.inject(() => "lost")
        yield* Effect.exit(log.append(event))
        storage.inject(() => "pass")
        yield* log.append(event)
        assert.strictEqual((yield* store.events("s1")).length, n + 2)
      }
    }).pipe(Effect.scoped, Effect.provide(storage.layer))
  }

/** Stores the history with a fault, and checks what a new store finds. Returns the calls of the storage, and how many operations failed. */
const storedWith = Effect.fnUntraced(function* ({ make }: Variant, fault: (call: number) => StorageFault) {
  const storage = yield* make
  // The tables of a database and the like are made before.
  yield* Effect.provide(
    SessionStore.use(({ list }) => list),
    storage.layer
  )
  storage.inject(fault)
  const failed = yield* survived(storage.layer)
  const calls = storage.calls()
  storage.inject(() => "pass")
  assert.deepStrictEqual(yield* Effect.provide(reload, storage.layer), sessionOf([started("s1"), ...events]))
  return { calls, failed }
}, Effect.scoped)

const atEachCall = (variant: Variant, faultAt: (at: number) => (call: number) => StorageFault) =>
  function* () {
    yield* Effect.forkScoped(timePasses)
    let failures = 0
    for (let at = 1; at < maxCalls; at += variant.every ?? 1) {
      const { calls, failed } = yield* storedWith(variant, faultAt(at))
      failures += failed
      if (calls < at) break
    }
    assert.ok(failures > 0, "no call of the storage failed")
  }

/**
 * Defines tests of a SessionStore whose storage fails: at each of its calls in turn, once or for a while, with and without effect.
 * Nothing that was acknowledged is lost, nothing is stored twice, every failure is typed, and the store works again when the storage is back.
 *
 * *When to use*: for a SessionStore of your own, over a client that you can make fail.
 */
export const sessionStoreFaults = (functions: TestFunctions, variant: Variant) =>
  defineTests(functions, `${variant.name} with a storage that fails`, {
    "stores an append once that is repeated in the same log after its answer was lost": repeatsAppends(variant),
    "loses nothing when a call fails": atEachCall(variant, (at) => (call) => (call === at ? "fail" : "pass")),
    "stores nothing twice when an answer is lost": atEachCall(
      variant,
      (at) => (call) => (call === at ? "lost" : "pass")
    ),
    "continues after the storage was unavailable for a while": atEachCall(
      variant,
      (at) => (call) => (call >= at && call < at + 12 ? "fail" : "pass")
    )
  })
