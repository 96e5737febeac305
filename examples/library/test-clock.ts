/**
 * A test that waits for nothing: the model's server asks for a pause of minutes, and the TestClock of Effect makes it pass.
 *
 *   node test-clock.ts        (or: node --test test-clock.ts)
 *
 * With @effect/vitest a test is `it.effect(name, () => program.pipe(Effect.provide(layer)))`, with a TestClock. It prints:
 *
 *   ✔ a turn waits as long as the server asks for, and answers then …
 *   ✔ a full window is compressed, and what left it can be read back …
 */
import { Duration, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import assert from "node:assert/strict"
import { test } from "node:test"
import { Chats, Content, Conversation, Models, Palimpsest } from "palimpsest"
import { ScriptedModel } from "palimpsest/testing"

/** Runs a test over a model that plays these steps. */
const run = <A, E>(steps: ScriptedModel.Answers, effect: Effect.Effect<A, E, Palimpsest.Services>) => {
  const Runtime = Palimpsest.layer({ model: ScriptedModel.layer(steps), chat: { window: 4_000 } })
  return Effect.runPromise(effect.pipe(Effect.provide(Layer.merge(Runtime, TestClock.layer()))))
}

/** The program under test. */
const ask = Effect.fn("ask")(function* (question: string) {
  const chat = yield* Chats.open("support")
  const events = yield* Stream.runCollect(chat.send(question))
  return events.flatMap((event) => (event._tag === "Content" ? [event.text] : [])).join("")
}, Effect.scoped)

test("a turn waits as long as the server asks for, and answers then", () => {
  const busy = new Models.ModelError({ reason: new Models.RateLimitError({ retryAfter: Duration.minutes(4) }) })
  return run(
    [busy, "Yes."],
    Effect.gen(function* () {
      const turn = yield* Effect.forkChild(ask("Is it done?"))
      yield* TestClock.adjust("3 minutes")
      assert.equal(turn.pollUnsafe(), undefined)
      yield* TestClock.adjust("2 minutes")
      assert.equal(yield* Fiber.join(turn), "Yes.")
    })
  )
})

test("a full window is compressed, and what left it can be read back", () =>
  run(
    () => `It is in src/main.ts. ${"I looked at every file. ".repeat(100)}`,
    Effect.gen(function* () {
      const chat = yield* Chats.open("support")
      for (let n = 0; n < 10; n += 1) yield* ask(`Where is bug ${n}?`)
      const shown = Conversation.projectMessages(yield* chat.conversation).map(({ content }) => Content.plainText(content))
      const [handle] = Content.mentions(shown.join("\n"))
      assert.ok(handle !== undefined && shown.length < 20)
      assert.match((yield* chat.recall(handle)).text, /Where is bug 0\?/)
    }).pipe(Effect.scoped)
  ))
