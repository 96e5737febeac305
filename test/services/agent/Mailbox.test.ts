import { Deferred, Effect, Fiber } from "effect"
import * as Mailbox from "../../../src/services/agent/Mailbox.ts"
import { assert, it } from "../../support/vitest.ts"

const taken = (mailbox: Mailbox.Mailbox) => mailbox.deliver(Effect.succeed)

it.effect("messages are taken once, in order of arrival", function* () {
  const mailbox = yield* Mailbox.make
  yield* mailbox.put("a")
  yield* mailbox.put("b")
  assert.isTrue(yield* mailbox.hasMail)
  assert.deepStrictEqual(yield* taken(mailbox), ["a", "b"])
  assert.deepStrictEqual(yield* taken(mailbox), [])
  assert.isFalse(yield* mailbox.hasMail)
})

it.effect("undelivered messages go back in front of newer ones", function* () {
  const mailbox = yield* Mailbox.make
  yield* mailbox.put("a")
  assert.strictEqual(yield* Effect.flip(mailbox.deliver(() => Effect.fail("full"))), "full")
  const began = yield* Deferred.make<void>()
  const fiber = yield* Effect.forkChild(
    mailbox.deliver(() => Effect.andThen(Deferred.succeed(began, undefined), Effect.never))
  )
  yield* Deferred.await(began)
  yield* mailbox.put("b")
  yield* Fiber.interrupt(fiber)
  assert.deepStrictEqual(yield* taken(mailbox), ["a", "b"])
  assert.deepStrictEqual(yield* taken(mailbox), [])
})

it.effect("a waiter is woken by the first message, also after the mailbox was emptied", function* () {
  const mailbox = yield* Mailbox.make
  for (const text of ["a", "b"]) {
    const waiting = yield* Effect.forkChild(mailbox.arrival)
    yield* mailbox.put(text)
    yield* Fiber.join(waiting)
    assert.deepStrictEqual(yield* taken(mailbox), [text])
  }
})
