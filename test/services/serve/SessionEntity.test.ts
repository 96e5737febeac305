import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Entity, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import { ServedSessions } from "../../../src/services/serve/ServedSessions.ts"
import { Conflict } from "../../../src/services/serve/ServeErrors.ts"
import { handlers, SessionEntity } from "../../../src/services/serve/SessionEntity.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A session of a cluster over sessions whose turn begins when the test says so. */
const session = Effect.gen(function* () {
  const opened = yield* Deferred.make<void, Conflict>()
  const cancelled = yield* Deferred.make<void>()
  let isRunning = false
  const end = {
    id: "1",
    event: "TurnEnded",
    data: { message: "m1", event: { _tag: "TurnEnded", status: "cancelled", error: null } }
  } as const
  const sessions = Layer.mock(ServedSessions, {
    close: () => Effect.void,
    send: () =>
      Effect.andThen(
        Deferred.await(opened),
        Effect.sync(() => {
          isRunning = true
          return Stream.fromEffect(
            Effect.map(Deferred.await(cancelled), () => {
              isRunning = false
              return end
            })
          )
        })
      ),
    cancel: () =>
      Effect.suspend(() =>
        isRunning ? Effect.as(Deferred.succeed(cancelled, undefined), true) : Effect.succeed(false)
      )
  })
  const clientOf = yield* Entity.makeTestClient(SessionEntity, Layer.provide(handlers, sessions))
  const client = yield* clientOf("acme/one")
  return { client, opened }
}).pipe(Effect.provide(ShardingConfig.layer()))

const settle = TestClock.adjust("1 second")

describe("a cancel", () => {
  it.effect("waits for the turn of a message that is accepted and not begun", function* () {
    const { client, opened } = yield* session
    const sent = yield* Effect.forkChild(client.Send({ message: "m1", text: "Hello" }))
    const cancel = yield* Effect.forkChild(client.Cancel())
    yield* settle
    assert.isUndefined(cancel.pollUnsafe())
    yield* Deferred.succeed(opened, undefined)
    yield* settle
    assert.isTrue(yield* Fiber.join(cancel))
    assert.strictEqual((yield* Fiber.join(sent)).status, "cancelled")
    assert.isFalse(yield* client.Cancel(), "the turn has ended")
  })

  it.effect("ends with the message whose turn does not begin", function* () {
    const { client, opened } = yield* session
    const sent = yield* Effect.forkChild(client.Send({ message: "m1", text: "Hello" }))
    const cancel = yield* Effect.forkChild(client.Cancel())
    yield* settle
    yield* Deferred.fail(opened, new Conflict({ message: "refused" }))
    yield* settle
    assert.strictEqual((yield* Fiber.join(sent)).status, "failed")
    assert.isFalse(yield* Fiber.join(cancel))
  })

  it.effect("without a message finds no turn", function* () {
    const { client } = yield* session
    assert.isFalse(yield* client.Cancel())
  })
})
