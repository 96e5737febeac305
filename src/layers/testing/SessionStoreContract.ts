/** The contract suite of session stores. */

import { Arbitrary, Context, Effect, Exit, Layer, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import assert from "node:assert/strict"
import { pid } from "node:process"
import { call, text as textPart } from "../../domain/content/Content.ts"
import type { SessionEvent } from "../../domain/session/Session.ts"
import { SessionStore } from "../../services/session/SessionStore.ts"
import {
  checkProperty,
  type ContractVariant,
  defineTests,
  type NamedTests,
  onService,
  type ServiceTests,
  type TestFunctions
} from "./ContractTests.ts"
import { appended, entry, sessionOf, histories, visibleState, started } from "./SessionHistories.ts"

const closings = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })))

/** Opens a session and reads all of it. */
export const reopened = (id: string) =>
  Effect.scoped(
    SessionStore.use((store) =>
      Effect.gen(function* () {
        const { log, torn } = yield* store.open(id)
        return { session: yield* log.whole, torn }
      })
    )
  )

/** Appends a history, closes and reopens the session at the positions in `stops`, and reads it back each time. */
const readsBack = (
  variant: ContractVariant<Layer.Layer<SessionStore, unknown>>,
  events: ReadonlyArray<SessionEvent>,
  stops: ReadonlyArray<number>
) =>
  Effect.gen(function* () {
    const storage = yield* variant.make
    const store = Context.get(yield* Layer.build(storage), SessionStore)
    yield* Effect.scoped(store.create(started("s1")))
    const cuts = [...new Set([...stops.map((stop) => stop % (events.length + 1)), events.length])]
    let from = 0
    for (const to of cuts.sort((a, b) => a - b)) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const opened = yield* store.open("s1")
          const expected = sessionOf([started("s1"), ...events.slice(0, from)])
          assert.deepStrictEqual(visibleState(opened.session), visibleState(expected))
          if (opened.complete) assert.deepStrictEqual(opened.session, expected)
          for (const event of events.slice(from, to)) yield* opened.log.append(event)
          assert.deepStrictEqual(yield* opened.log.whole, sessionOf([started("s1"), ...events.slice(0, to)]))
        })
      )
      from = to
    }
    const { complete, session, torn } = yield* Effect.scoped(store.open("s1"))
    const expected = sessionOf([started("s1"), ...events])
    assert.deepStrictEqual({ ...visibleState(session), torn }, { ...visibleState(expected), torn: 0 })
    if (complete) assert.deepStrictEqual(session, expected)
    assert.deepStrictEqual(yield* reopened("s1").pipe(Effect.provide(storage)), { session: expected, torn: 0 })
  }).pipe(Effect.scoped)

type Variant = ContractVariant<Layer.Layer<SessionStore, unknown>> & {
  /** Whether `open` with `takeOver` opens a session that another writer has open. */
  readonly takesOver?: boolean | undefined
  /** Whether the blobs of all sessions are in one store, as in a double over one `TempStore`. */
  readonly sharesBlobs?: boolean | undefined
}

type StoreTests = ServiceTests<SessionStore, SessionStore["Service"]>

const writing: StoreTests = {
  *"stores a message once that is appended again under its id, also by another writer"(store) {
    const [message, answer] = [entry(3, [textPart("how?")]), entry(4, [textPart("so")])]
    const answered: SessionEvent = { _tag: "Answered", message, answer }
    const events = [appended(1, textPart("hello")), appended(2, textPart("x".repeat(9_000))), answered]
    const again = [...events, appended(4, textPart("so"))]
    yield* Effect.scoped(
      Effect.flatMap(store.create(started("s1")), (log) => Effect.forEach([...events, ...again], log.append))
    )
    yield* Effect.scoped(
      Effect.flatMap(store.open("s1"), ({ log }) =>
        Effect.forEach([...again.slice(1), appended(5, textPart("new"))], log.append)
      )
    )
    assert.deepStrictEqual(yield* store.events("s1"), [started("s1"), ...events, appended(5, textPart("new"))])
  },

  *"appends in the order of the calls, large and small"(store) {
    const events = Array.from({ length: 30 }, (_, index) =>
      appended(index + 1, textPart(index % 3 === 0 ? "x".repeat(20_000 + index) : `${index}`))
    )
    yield* Effect.scoped(
      Effect.flatMap(store.create(started("s1")), (log) =>
        Effect.forEach(events, log.append, { concurrency: "unbounded" })
      )
    )
    assert.deepStrictEqual((yield* reopened("s1")).session, sessionOf([started("s1"), ...events]))
  }
}

const creating: StoreTests = {
  *"refuses to create an existing session, open or closed, and leaves it unchanged"(store) {
    const scope = yield* Scope.make()
    const log = yield* store.create(started("s1")).pipe(Scope.provide(scope))
    const create = Effect.flip(Effect.scoped(store.create(started("s1"))))
    assert.strictEqual((yield* create).reason._tag, "SessionExists")
    yield* log.append(appended(1, textPart("still mine")))
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual((yield* create).reason._tag, "SessionExists")
    const found = yield* Effect.scoped(store.open("s1"))
    assert.deepStrictEqual(found.session, sessionOf([started("s1"), appended(1, textPart("still mine"))]))
  },

  *"names the session that does not exist"(store) {
    const error = yield* Effect.flip(store.open("s1"))
    assert.deepStrictEqual([error.reason._tag, error.message], ["SessionNotFound", "there is no session s1"])
    assert.deepStrictEqual(yield* store.list, [])
  },

  *"refuses ids that are more than a name"(store) {
    for (const id of ["", "..", "../s1", "a/b", "a\\b", "a.b", "a b", "é", "a\0", "a\n", "x".repeat(65)]) {
      assert.strictEqual((yield* Effect.flip(store.open(id))).reason._tag, "SessionNotFound")
      assert.strictEqual((yield* Effect.flip(store.create(started(id)))).reason._tag, "SessionUnavailable")
    }
    yield* store.create(started("x".repeat(64)))
    yield* store.create(started("019a8b3c-7d1e-7000-8000-000000000000"))
    assert.strictEqual((yield* store.list).length, 2)
  }
}

const owning: StoreTests = {
  *"has one writer for a session, and another one once the first has closed it"(store) {
    yield* store.create(started("other"))
    const first = yield* Scope.make()
    yield* store.create(started("s1")).pipe(Scope.provide(first))
    const second = yield* Scope.make()
    for (let i = 0; i < 2; i += 1) {
      const error = yield* store.open("s1").pipe(Scope.provide(second), Effect.flip)
      assert.strictEqual(error.reason._tag, "SessionLocked")
    }
    yield* Scope.close(first, Exit.void)
    // Reuses the scope of the earlier failure: a refusal leaves nothing behind.
    yield* store.open("s1").pipe(Scope.provide(second))
    assert.strictEqual((yield* Effect.flip(Effect.scoped(store.open("s1")))).reason._tag, "SessionLocked")
    yield* Scope.close(second, Exit.void)
    yield* Effect.scoped(store.open("s1"))
  },

  *"refuses appends of a writer whose scope is closed"(store) {
    const log = yield* Effect.scoped(store.create(started("s1")))
    const error = yield* Effect.flip(log.append(appended(1, textPart("too late"))))
    assert.strictEqual(error.reason._tag, "SessionUnavailable")
    assert.strictEqual(error.message, "session s1 was closed; open it again")
    assert.deepStrictEqual((yield* reopened("s1")).session, sessionOf([started("s1")]))
  }
}

const takingOver: StoreTests = {
  *"refuses the late write of an owner whose session was taken over"(store) {
    const first = yield* store.create(started("s1"))
    yield* first.append(appended(1, textPart("acknowledged")))
    const second = yield* store.open("s1", { takeOver: true })
    assert.strictEqual((yield* Effect.flip(first.append(appended(2, textPart("late"))))).reason._tag, "SessionTaken")
    yield* second.log.append(appended(2, textPart("of the new owner")))
    assert.strictEqual((yield* Effect.flip(first.append(appended(2, textPart("late"))))).reason._tag, "SessionTaken")
    const events = [appended(1, textPart("acknowledged")), appended(2, textPart("of the new owner"))]
    assert.deepStrictEqual(yield* second.log.whole, sessionOf([started("s1"), ...events]))
  },

  *"keeps a session that was taken over locked when its first owner closes"(store) {
    const [one, two] = yield* Effect.all([Scope.make(), Scope.make()])
    yield* Scope.provide(store.create(started("s1")), one)
    const second = yield* Scope.provide(store.open("s1", { takeOver: true }), two)
    yield* Scope.close(one, Exit.void)
    const third = Effect.scoped(store.open("s1"))
    assert.strictEqual((yield* Effect.flip(third)).reason._tag, "SessionLocked")
    yield* second.log.append(appended(1, textPart("of the second owner")))
    yield* Scope.close(two, Exit.void)
    assert.deepStrictEqual(
      (yield* third).session,
      sessionOf([started("s1"), appended(1, textPart("of the second owner"))])
    )
  }
}

const listing: StoreTests = {
  *"lists newest first, and nothing at first"(store) {
    assert.deepStrictEqual(yield* store.list, [])
    for (const id of ["0193b", "0193c", "0193a"]) yield* store.create(started(id))
    assert.deepStrictEqual(yield* store.list, ["0193c", "0193b", "0193a"])
  },

  *"summarises every session for a list, the last written one first"(store) {
    assert.deepStrictEqual(yield* store.summaries, [])
    const long = `  please\n\tfix \u001b[31mthis\u001b[0m: ${"x".repeat(300)}`
    yield* Effect.scoped(
      Effect.gen(function* () {
        const log = yield* store.create({ ...started("0190a"), model: "m1", cwd: "/home" })
        yield* log.append({ _tag: "Appended", entry: { ...entry(1, [textPart("where")]), author: "environment" } })
        yield* log.append(appended(2, textPart("no person's words")))
        yield* log.append(appended(3, call("shell", {})))
        yield* log.append({ _tag: "Answered", message: entry(5, [textPart(long)]), answer: entry(6, []) })
        yield* log.append(appended(7, textPart("later words")))
      })
    )
    yield* TestClock.adjust("1 second")
    yield* Effect.scoped(store.create(started("0190b")))
    const found = yield* store.summaries
    assert.deepStrictEqual(found.map(({ id }) => id).sort(), yield* Effect.map(store.list, (ids) => [...ids].sort()))
    assert.deepStrictEqual(yield* Effect.forEach(found, ({ id }) => store.summary(id)), found)
    for (const id of ["nowhere", "../0190a"]) {
      assert.strictEqual((yield* Effect.flip(store.summary(id))).reason._tag, "SessionNotFound")
    }
    const [a] = found.filter(({ id }) => id === "0190a")
    const [b] = found.filter(({ id }) => id === "0190b")
    assert.deepStrictEqual([a?.model, a?.cwd, a?.startedAt], ["m1", "/home", 1_763_000_000_000])
    assert.deepStrictEqual(a?.firstPrompt, `please fix this: ${"x".repeat(183)}`)
    assert.deepStrictEqual([a?.title, a?.holder, a?.problem], [undefined, undefined, undefined])
    assert.ok((a?.bytes ?? 0) > (b?.bytes ?? Infinity))
    assert.deepStrictEqual([b?.firstPrompt, b?.model, b?.cwd], [undefined, undefined, undefined])
  },

  *"names the process that has a session open"(store) {
    yield* TestClock.setTime(17)
    const held = Effect.map(store.summaries, ([only]) => only?.holder)
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* store.create(started("s1"))
        assert.deepStrictEqual(yield* held, { pid, since: 17 })
      })
    )
    assert.strictEqual(undefined, yield* held)
  },

  *"gives a session a title of one line, also while another writer has it open"(store) {
    const title = Effect.map(store.summaries, ([only]) => only?.title)
    const log = yield* store.create(started("s1"))
    for (const [newTitle, kept] of [
      ["first", "first"],
      ["  two\nlines\u0007\u001b[2J and \u202ea tab\t ", "two lines\\u{7} and \\u{202e}a tab"],
      [`${"é".repeat(199)}😀`, "é".repeat(199)],
      ["x".repeat(5_000), "x".repeat(200)]
    ] as const) {
      yield* store.rename("s1", newTitle)
      assert.strictEqual(yield* title, kept)
    }
    yield* log.append(appended(1, textPart("goes on")))
    yield* store.rename("s1", " \n ")
    assert.strictEqual(undefined, yield* title)
    assert.strictEqual((yield* Effect.flip(store.rename("s2", "x"))).reason._tag, "SessionNotFound")
    assert.strictEqual((yield* Effect.flip(store.rename("../s1", "x"))).reason._tag, "SessionNotFound")
  },

  *"reads a log of many lines, and says when the last one was written"(store) {
    yield* TestClock.adjust("1 hour")
    const events = Array.from({ length: 600 }, (_, n) => appended(n + 1, textPart(`message ${n}`)))
    yield* store.add([started("s1"), ...events])
    assert.deepStrictEqual(yield* store.events("s1"), [started("s1"), ...events])
    assert.ok((yield* store.summary("s1")).updatedAt > 0)
    const last = appended(601, textPart("a\u2028b 語 😀"))
    yield* Effect.scoped(Effect.flatMap(store.open("s1"), ({ log }) => log.append(last)))
    assert.deepStrictEqual((yield* store.events("s1")).at(-1), last)
  }
}

const adding = (variant: Variant): StoreTests => ({
  *"adds a session as a whole, reads its events, and keeps its blobs apart from those of others"(store) {
    const events = [started("s1"), appended(1, textPart("x".repeat(9_000))), appended(2, textPart("end"))]
    yield* store.add(events)
    assert.strictEqual((yield* Effect.flip(store.add(events))).reason._tag, "SessionExists")
    yield* store.add([started("s2")])
    assert.deepStrictEqual(yield* store.events("s1"), events)
    assert.strictEqual((yield* Effect.flip(store.events("s3"))).reason._tag, "SessionNotFound")
    assert.strictEqual((yield* Effect.flip(store.blobs("s3"))).reason._tag, "SessionNotFound")
    if (variant.sharesBlobs === true) return
    const [blob] = yield* store.blobs("s1")
    assert.ok(blob !== undefined && (yield* blob.bytes).length === 9_000)
    assert.deepStrictEqual(yield* store.blobs("s2"), [])
    const other = store.open("s2").pipe(Effect.flatMap(({ log }) => Effect.flip(log.blobs.get(blob.hash))))
    assert.strictEqual((yield* Effect.scoped(other)).reason._tag, "BlobMissing")
  }
})

const removing = (variant: Variant): NamedTests => ({
  *"deletes a session for good, but not while a writer has it open"() {
    const storage = yield* variant.make
    yield* Effect.gen(function* () {
      const store = yield* SessionStore
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* store.create(started("s1"))
          yield* log.append(appended(1, textPart("x".repeat(9_000))))
          yield* store.rename("s1", "a title")
          assert.strictEqual((yield* Effect.flip(store.remove("s1"))).reason._tag, "SessionLocked")
          yield* log.append(appended(2, textPart("still there")))
        })
      )
      yield* Effect.scoped(store.create(started("s2")))
      yield* store.remove("s1")
      assert.deepStrictEqual(yield* store.list, ["s2"])
      // A new session of the same id has nothing of it.
      yield* Effect.scoped(store.create(started("s1")))
      assert.deepStrictEqual(yield* store.blobs("s1"), [])
      assert.strictEqual((yield* store.summary("s1")).title, undefined)
      yield* store.remove("s1")
      assert.strictEqual((yield* Effect.flip(store.remove("s1"))).reason._tag, "SessionNotFound")
      assert.strictEqual((yield* Effect.flip(store.remove(".."))).reason._tag, "SessionNotFound")
    }).pipe(Effect.provide(storage))
    yield* Effect.gen(function* () {
      const store = yield* SessionStore
      assert.strictEqual((yield* Effect.flip(store.open("s1"))).reason._tag, "SessionNotFound")
      yield* Effect.scoped(store.create(started("s1")))
      assert.deepStrictEqual((yield* store.summaries).map(({ id, title }) => [id, title]).sort(), [
        ["s1", undefined],
        ["s2", undefined]
      ])
    }).pipe(Effect.provide(storage))
  }
})

const restarting = (variant: Variant): NamedTests => ({
  *"creates, appends, closes, and reads back after a restart"() {
    const storage = yield* variant.make
    const events = [appended(1, textPart("hello")), appended(2, textPart("x".repeat(9_000))), appended(3, {})]
    yield* Effect.gen(function* () {
      const store = yield* SessionStore
      const log = yield* store.create(started("s1"))
      assert.strictEqual(log.id, "s1")
      for (const event of events) yield* log.append(event)
    }).pipe(Effect.scoped, Effect.provide(storage))
    const found = yield* reopened("s1").pipe(Effect.provide(storage))
    assert.deepStrictEqual(found, { session: sessionOf([started("s1"), ...events]), torn: 0 })
  },

  *"continues where it stopped"() {
    const storage = yield* variant.make
    const events = [1, 2, 3, 4, 5].map((n) => appended(n, textPart(`turn ${n}`)))
    yield* Effect.scoped(SessionStore.use((store) => store.create(started("s1")))).pipe(Effect.provide(storage))
    for (const event of events) {
      yield* Effect.scoped(
        SessionStore.use((store) => Effect.flatMap(store.open("s1"), ({ log }) => log.append(event)))
      ).pipe(Effect.provide(storage))
    }
    const found = yield* reopened("s1").pipe(Effect.provide(storage))
    assert.deepStrictEqual(found.session, sessionOf([started("s1"), ...events]))
  },

  *"reads any history back equal, and shows the model the same, wherever it was closed and opened again"() {
    yield* checkProperty(
      Arbitrary.all([histories, Arbitrary.array(closings, { maxLength: 4 })]),
      variant.runs,
      ([events, stops]) => readsBack(variant, events, stops)
    )
  }
})

/**
 * Defines the tests that every SessionStore passes.
 *
 * *When to use*: to test a SessionStore of your own. See `TestFunctions` for an example. The suite runs within this process: a
 * store that other processes use too needs tests of its own for that.
 */
export const sessionStoreContract = (functions: TestFunctions, variant: Variant) =>
  defineTests(functions, variant.name, {
    ...onService(SessionStore, variant, {
      ...writing,
      ...creating,
      ...owning,
      ...(variant.takesOver === true ? takingOver : {}),
      ...adding(variant),
      ...listing
    }),
    ...removing(variant),
    ...restarting(variant)
  })
