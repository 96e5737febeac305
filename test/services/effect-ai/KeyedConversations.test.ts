import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { BoundedMap } from "../../../src/domain/text/BoundedMap.ts"
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

const make = (): KeyedConversations.KeyedConversations => new BoundedMap(100)

const alike = ["a/b", "a-b", "a b", "a--b", "A/B", "", "-", "/", "x".repeat(24), "x".repeat(25), `${"x".repeat(24)}/1`]

describe("conversations with keys", () => {
  it("are two for two keys, however alike the keys are, and one for one", () => {
    const all = make()
    const ids = alike.map((key) => KeyedConversations.keyedConversation(all, key).id)
    assert.lengthOf(new Set(ids), alike.length)
    // Ids name stored sessions: the same in every process, and allowed in a file's name.
    const again = make()
    for (const [at, key] of alike.entries()) {
      const { id } = KeyedConversations.keyedConversation(again, key)
      assert.strictEqual(id, ids[at])
      assert.match(id, /^[A-Za-z0-9-]{1,64}$/)
    }
    assert.strictEqual(
      KeyedConversations.keyedConversation(all, "a/b"),
      KeyedConversations.keyedConversation(all, "a/b")
    )
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
      const one = KeyedConversations.keyedConversation(make(), "a")
      const reading = KeyedConversations.firstSession(one, ({ session }) =>
        Effect.sync(() => void opened.push(`read ${String(session)}`))
      ).pipe(
        Effect.tap(() => Effect.sync(() => opened.push(`of ${one.sessions}`))),
        Effect.scoped,
        Effect.provide(store),
        Effect.result
      )
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
})
