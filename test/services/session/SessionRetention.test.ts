import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as MemorySessionStore from "../../../src/layers/testing/MemorySessionStore.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { started } from "../../../src/layers/testing/SessionHistories.ts"
import { enforce, remove } from "../../../src/services/session/SessionRetention.ts"
import {
  SessionLocked,
  SessionNotFound,
  SessionStore,
  SessionStoreError
} from "../../../src/services/session/SessionStore.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const store = MemorySessionStore.layer.pipe(Layer.provide(MemoryTempStore.layer))

/** Sessions `a`, `b`, `c`, each begun ten days after the one before; now it is ten days after the last. */
const three = Effect.gen(function* () {
  const { create } = yield* SessionStore
  for (const id of ["a", "b", "c"]) {
    yield* Effect.scoped(create(started(id)))
    yield* TestClock.adjust("10 days")
  }
})
const ids = (sessions: ReadonlyArray<{ readonly id: string }>) => sessions.map(({ id }) => id)

describe("retention", () => {
  it.effect("deletes what exceeds the configured age or count, and reports it", store, function* () {
    yield* three
    const { list } = yield* SessionStore
    const byAge = yield* enforce({ maxAge: "25d" })
    assert.deepStrictEqual([ids(byAge.deleted), byAge.kept], [["a"], []])
    assert.strictEqual(byAge.deleted[0]?.updatedAt, 0)
    assert.deepStrictEqual(yield* list, ["c", "b"])
    const byCount = yield* enforce({ maxCount: 1 })
    assert.deepStrictEqual([ids(byCount.deleted), yield* list], [["b"], ["c"]])
  })

  it.effect("keeps the current session and those in use", store, function* () {
    yield* three
    const { list, open } = yield* SessionStore
    yield* open("b")
    const { deleted } = yield* enforce({ maxAge: "1d" }, "a")
    assert.deepStrictEqual([ids(deleted), yield* list], [["c"], ["b", "a"]])
  })

  it.effect("agents' sessions are not counted, and are deleted with their parent's", store, function* () {
    yield* three
    const { create, list } = yield* SessionStore
    for (const [id, parent] of [
      ["of-a", "a"],
      ["of-of-a", "of-a"],
      ["of-c", "c"]
    ] as const) {
      yield* Effect.scoped(create({ ...started(id), parent }))
    }
    const { deleted } = yield* enforce({ maxAge: "25d" })
    assert.deepStrictEqual([ids(deleted), [...(yield* list)].sort()], [["a"], ["b", "c", "of-c"]])
    yield* remove("c")
    assert.deepStrictEqual(yield* list, ["b"])
    // A parent goes last: what is left when a removal fails still hangs together.
    for (const [id, parent] of [
      ["of-b", "b"],
      ["of-of-b", "of-b"],
      ["too-b", "b"]
    ] as const) {
      yield* Effect.scoped(create({ ...started(id), parent }))
    }
    const real = yield* SessionStore
    const removed: Array<string> = []
    yield* remove("b").pipe(
      Effect.provideService(SessionStore, { ...real, remove: (id) => Effect.sync(() => void removed.push(id)) })
    )
    assert.strictEqual(removed.at(-1), "b")
    assert.isBelow(removed.indexOf("of-of-b"), removed.indexOf("of-b"))
    assert.strictEqual(removed.length, 4)
  })

  it.effect("reads nothing without settings", Layer.mock(SessionStore, {}), function* () {
    assert.deepStrictEqual(yield* enforce({}), { deleted: [], kept: [] })
  })

  it.effect("reports an invalid setting with what was expected, and deletes nothing", store, function* () {
    yield* three
    const { list } = yield* SessionStore
    const error = yield* Effect.flip(enforce({ maxAge: "5h", maxCount: 1 }))
    assert.strictEqual(error._tag, "RetentionInvalid")
    assert.include(error.message, "at least a day")
    assert.deepStrictEqual(yield* list, ["c", "b", "a"])
  })

  it.effect.each([
    ["reports a session that could not be deleted", new SessionLocked({ id: "a", pid: 7, since: 1 }), ["a"]],
    ["does not report one that another process deleted first", new SessionNotFound({ id: "a" }), []]
  ] as const)("%s, and continues", store, function* ([, reason, reported]) {
    yield* three
    const real = yield* SessionStore
    const refusing = Layer.succeed(SessionStore, {
      ...real,
      remove: (id) => (id === "a" ? Effect.fail(new SessionStoreError({ reason })) : real.remove(id))
    })
    const { deleted, kept } = yield* enforce({ maxAge: "15d" }).pipe(Effect.provide(refusing))
    assert.deepStrictEqual([ids(deleted), kept.map(({ session }) => session.id)], [["b"], reported])
    for (const { error } of kept) assert.include(error.message, "process 7")
  })
})
