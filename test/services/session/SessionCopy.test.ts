import { Context, Effect, Layer } from "effect"
import { text as textPart } from "../../../src/domain/content/Content.ts"
import * as SqliteSessionStore from "../../../src/layers/session/SqliteSessionStore.ts"
import * as MemorySessionStore from "../../../src/layers/testing/MemorySessionStore.ts"
import { appended, started } from "../../../src/layers/testing/SessionHistories.ts"
import * as SessionCopy from "../../../src/services/session/SessionCopy.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const stores = Effect.gen(function* () {
  const from = Context.get(yield* Layer.build(MemorySessionStore.layer), SessionStore)
  const to = Context.get(yield* Layer.build(SqliteSessionStore.layer(":memory:")), SessionStore)
  return { from, to }
})

const events = [started("s1"), appended(1, textPart("hello")), appended(2, textPart("x".repeat(9_000)))]

describe("SessionCopy", () => {
  it.live("carries the log, title and blobs of a session, then only what was added", function* () {
    const { from, to } = yield* stores
    yield* from.add(events)
    yield* from.rename("s1", "a title")
    const bytes = new Uint8Array([1, 2, 3])
    const hash = yield* Effect.scoped(Effect.flatMap(from.open("s1"), ({ log }) => log.blobs.put(bytes)))
    assert.deepStrictEqual(yield* SessionCopy.copy(from, to, "s1"), { _tag: "Added", events: 3 })
    assert.deepStrictEqual(yield* to.events("s1"), events)
    assert.strictEqual((yield* to.summary("s1")).title, "a title")
    const blob = (yield* to.blobs("s1")).find((one) => one.hash === hash)
    assert.deepStrictEqual(blob === undefined ? undefined : yield* blob.bytes, bytes)
    assert.deepStrictEqual(yield* SessionCopy.copy(from, to, "s1"), { _tag: "Same" })

    yield* from.rename("s1", "another title")
    assert.deepStrictEqual(yield* SessionCopy.copy(from, to, "s1"), { _tag: "Same" })
    assert.strictEqual((yield* to.summary("s1")).title, "another title")

    const later = appended(3, textPart("later"))
    yield* Effect.scoped(Effect.flatMap(from.open("s1"), ({ log }) => log.append(later)))
    assert.deepStrictEqual(yield* SessionCopy.copy(from, to, "s1"), { _tag: "Continued", events: 1 })
    assert.deepStrictEqual(yield* to.events("s1"), [...events, later])
  })

  it.live.each([
    [[...events, appended(3, textPart("there"))]],
    [[{ ...started("s1"), at: 9 }, ...events.slice(1), appended(3, textPart("there"))]],
    [[{ ...started("s1"), at: 9 }, ...events.slice(1)]]
  ] as const)(
    "refuses to overwrite a session that is another one, or continued, in the other store: %#",
    function* ([there]) {
      const { from, to } = yield* stores
      yield* from.add(events)
      yield* to.add(there)
      const error = yield* Effect.flip(SessionCopy.copy(from, to, "s1"))
      assert.strictEqual(
        error.message,
        "the other store has another one with this id, or it went on there; nothing was copied"
      )
      assert.deepStrictEqual(yield* to.events("s1"), there)
    }
  )

  it.live("does not copy a session that is in use in the other store", function* () {
    const { from, to } = yield* stores
    yield* from.add(events)
    yield* to.add(events.slice(0, 2))
    yield* to.open("s1")
    assert.strictEqual((yield* Effect.flip(SessionCopy.copy(from, to, "s1"))).reason._tag, "SessionLocked")
    assert.strictEqual((yield* to.events("s1")).length, 2)
  })
})
