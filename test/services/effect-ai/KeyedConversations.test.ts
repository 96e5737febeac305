import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { hash } from "node:crypto"
import { hashOf } from "../../../src/domain/content/Handle.ts"
import * as KeyedConversations from "../../../src/services/effect-ai/KeyedConversations.ts"
import {
  type OpenSession,
  sessionError,
  SessionLocked,
  SessionNotFound,
  SessionStore,
  type SessionSummary
} from "../../../src/services/session/SessionStore.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const make = (maxBytes = 1_000_000) =>
  KeyedConversations.make({
    hash: (text) => Effect.succeed(hashOf(hash("sha256", text, "buffer"))),
    hashesOf: () => Effect.succeed([]),
    count: () => Effect.succeed(1),
    maxBytes
  })

const alike = ["a/b", "a-b", "a b", "a--b", "A/B", "", "-", "/", "x".repeat(24), "x".repeat(25), `${"x".repeat(24)}/1`]

describe("conversations with keys", () => {
  it.effect("are two for two keys, however alike the keys are, and one for one", function* () {
    const all = make()
    const ids = yield* Effect.forEach(alike, (key) =>
      KeyedConversations.withKeyed(all, key, ({ id }) => Effect.succeed(id))
    )
    assert.lengthOf(new Set(ids), alike.length)
    // Ids name stored sessions: the same in every process, and allowed in a file's name.
    const again = make()
    for (const [at, key] of alike.entries()) {
      const id = yield* KeyedConversations.withKeyed(again, key, (one) => Effect.succeed(one.id))
      assert.strictEqual(id, ids[at])
      assert.match(id, /^[A-Za-z0-9-]{1,64}$/)
    }
    const [one, same] = yield* Effect.forEach(["a/b", "a/b"], (key) =>
      KeyedConversations.withKeyed(all, key, Effect.succeed)
    )
    assert.strictEqual(one, same)
  })

  const locked = sessionError(new SessionLocked({ id: "a", pid: 7, since: 0 }))
  it.effect.each([0, 100, 101])(
    "wait for a session that others hold, for five seconds (asked %i times in vain)",
    function* (refused) {
      const opened: Array<string> = []
      let left = refused
      const absent = sessionError(new SessionNotFound({ id: "" }))
      const numberOf = (id: string) => Number(/-[^-]{24}-(\d+)$/.exec(id)?.[1] ?? 1)
      const store = Layer.mock(SessionStore, {
        // Three sessions, of which the newest is gone.
        summary: (id) => (numberOf(id) < 4 ? Effect.succeed({} as SessionSummary) : absent),
        open: Effect.fnUntraced(function* (id) {
          const number = numberOf(id)
          if (number === 3) return yield* absent
          if ((left -= 1) >= 0) return yield* locked
          yield* Effect.acquireRelease(
            Effect.sync(() => opened.push(`open ${number}`)),
            () => Effect.sync(() => void opened.push(`close ${number}`))
          )
          const log = { whole: Effect.succeed("whole") }
          return { log, session: "view", complete: number === 1 } as unknown as OpenSession
        })
      })
      const all = make()
      const reading = KeyedConversations.withKeyed(all, "a", (one) =>
        Effect.scoped(
          Effect.flatMap(
            KeyedConversations.firstSession(one, ({ session }) =>
              Effect.sync(() => void opened.push(`read ${String(session)}`))
            ),
            () => Effect.sync(() => opened.push(`of ${one.sessions}`))
          )
        )
      ).pipe(Effect.provide(store), Effect.result)
      const fiber = yield* Effect.forkChild(reading)
      yield* TestClock.adjust("4950 millis")
      assert.strictEqual(fiber.pollUnsafe() === undefined, refused >= 100)
      yield* TestClock.adjust("50 millis")
      const found = yield* Fiber.join(fiber)
      assert.strictEqual(found._tag, refused > 100 ? "Failure" : "Success")
      if (refused > 100) return
      assert.strictEqual(opened.join(), "open 2,read whole,close 2,open 1,read view,close 1,of 3")
    }
  )

  it.effect("leave memory when it is full, the one used longest ago first, and none that is in use", function* () {
    const all = make(20_000)
    const use = (key: string, tokens: number) =>
      KeyedConversations.withKeyed(all, key, (one) => Effect.sync(() => KeyedConversations.weigh(all, one, tokens)))
    const held = () => [...all.held.keys()].join()
    yield* use("a", 100)
    yield* use("b", 100)
    yield* use("a", 100)
    yield* use("c", 100)
    assert.strictEqual(held(), "b,a,c")
    yield* use("d", 1_000)
    assert.strictEqual(held(), "a,c,d")
    yield* KeyedConversations.withKeyed(all, "a", () => use("e", 1_000))
    assert.strictEqual(held(), "a,e")
    assert.strictEqual(
      all.bytes,
      [...all.held.values()].reduce((sum, { bytes }) => sum + bytes, 0)
    )
  })
})
