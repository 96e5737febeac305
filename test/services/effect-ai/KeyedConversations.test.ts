import { Effect, Fiber, Layer, Stream } from "effect"
import type * as Prompt from "effect/ai/Prompt"
import { TestClock } from "effect/testing"
import { BoundedMap } from "../../../src/domain/text/BoundedMap.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import { ConversationKey, withConversation } from "../../../src/services/effect-ai/ConversationKey.ts"
import * as KeyedConversations from "../../../src/services/effect-ai/KeyedConversations.ts"
import {
  findPrompt,
  makePromptConversations,
  type PromptView,
  shrink
} from "../../../src/services/effect-ai/PromptConversations.ts"
import { makeNames, namesOf } from "../../../src/services/effect-ai/PromptNames.ts"
import { make as makeWindow, noDeclarations } from "../../../src/services/effect-ai/PromptWindow.ts"
import {
  type OpenSession,
  sessionError,
  SessionLocked,
  SessionNotFound,
  SessionStore,
  type SessionSummary
} from "../../../src/services/session/SessionStore.ts"
import { answers, says } from "../../support/prompts.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const make = (): KeyedConversations.KeyedConversations => new BoundedMap(100)

const alike = ["a/b", "a-b", "a b", "a--b", "A/B", "", "-", "/", "x".repeat(24), "x".repeat(25), `${"x".repeat(24)}/1`]

describe("conversations with keys", () => {
  it.effect(
    "are compressed without keeping what made their earlier views",
    Layer.merge(Offline.layer, MemoryCalibrations.layer),
    function* () {
      const window = yield* makeWindow({ window: 2_000, reserve: 200 })
      const names = yield* makeNames
      const all = makePromptConversations(window, names, { remembered: 10, whole: 10 })
      const conversation = KeyedConversations.keyedConversation(make(), "a")
      const views = new Set<PromptView>()
      let content: ReadonlyArray<Prompt.Message> = []
      for (let turn = 0; turn < 20; turn += 1) {
        content = [...content, says(`${turn}: ${"src/parser is red. ".repeat(40)}`)]
        const known = { content, names: yield* namesOf(names, content, "a") }
        const call = yield* findPrompt(all, { ...known, method: "generateText", declared: noDeclarations })
        yield* shrink(all, call, KeyedConversations.openKeyed(all, conversation, call))
        if (call.beginning.view !== undefined) views.add(call.beginning.view)
        content = [...content, answers(`${turn}`)]
      }
      assert.isAbove(views.size, 3)
      for (const { before, events } of views) assert.deepStrictEqual([before, events], [undefined, []])
    }
  )

  it.effect("are named for effects and for streams, exactly", function* () {
    for (const key of alike) {
      assert.strictEqual(yield* ConversationKey.pipe(withConversation(key)), key)
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.fromEffect(ConversationKey).pipe(withConversation(key))), [
        key
      ])
    }
    assert.isUndefined(yield* ConversationKey)
  })

  it.effect(
    "have names that do not depend on what was named before, and each message is hashed once",
    Offline.layer,
    function* () {
      let hashed = 0
      const counting = Effect.map(makeNames, (names) => ({
        ...names,
        hash: (text: string | Uint8Array) => Effect.suspend(() => ((hashed += 1), names.hash(text)))
      }))
      const [a, b, c] = [says("a"), answers("b"), says("c")]
      const names = yield* counting
      for (const content of [[a, b, c], [a, b, c], [b, c], [a, c], [c, b, a], [a, b, c], []]) {
        for (const owner of [undefined, "", "one", "another"]) {
          assert.deepStrictEqual(yield* namesOf(names, content, owner), yield* namesOf(yield* counting, content, owner))
        }
      }
      yield* namesOf(names, [a, b, c])
      const before = hashed
      yield* namesOf(names, [a, b, c])
      yield* namesOf(names, [a, b])
      assert.strictEqual(hashed, before)
    }
  )

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
