import { Effect, Fiber, Layer, Schema } from "effect"
import {
  ClusterError,
  ClusterSchema,
  Entity,
  MessageStorage,
  RunnerHealth,
  Runners,
  RunnerStorage,
  Sharding,
  ShardingConfig,
  Snowflake
} from "effect/cluster"
import { Rpc } from "effect/rpc"
import { TestClock } from "effect/testing"
import { lasting } from "../../../src/layers/serve/ClusterEngine.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The engine over a storage whose connections break. */

const Work = Rpc.make("Work", {
  payload: { id: Schema.String },
  primaryKey: ({ id }) => id,
  success: Schema.Int
}).annotate(ClusterSchema.Persisted, true)

const Worker = Entity.make("Worker", [Work])

const closed = new ClusterError.PersistenceError({ cause: new Error("Connection closed") })

type Faults = (encoded: MessageStorage.Encoded) => Partial<MessageStorage.Encoded>

/** Sends one message, and lets two minutes pass. Returns the answer, and how often the entity ran. */
const answered = (faults: Faults, work: Effect.Effect<void> = Effect.void) =>
  Effect.gen(function* () {
    let runs = 0
    const { encoded } = yield* MessageStorage.MemoryDriver.make
    const storage = yield* MessageStorage.makeEncoded(lasting({ ...encoded, ...faults(encoded) }))
    const handlers = Worker.toLayer({
      Work: () => Effect.as(work, 1).pipe(Effect.tap(() => Effect.sync(() => (runs += 1))))
    })
    const engine = handlers.pipe(
      Layer.provideMerge(Sharding.layer),
      Layer.provideMerge(Runners.layerNoop),
      Layer.provideMerge(Layer.succeed(MessageStorage.MessageStorage, storage)),
      Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
      Layer.provide(ShardingConfig.layer({ entityMessagePollInterval: "2 seconds" }))
    )
    const sent = Effect.flatMap(Worker.client, (client) => client("one").Work({ id: "m1" })).pipe(
      Effect.provide(engine)
    )
    const fiber = yield* Effect.forkChild(sent)
    yield* TestClock.adjust("2 minutes")
    const exit = fiber.pollUnsafe()
    yield* Fiber.interrupt(fiber)
    return { isAnswered: exit?._tag === "Success", runs }
  }).pipe(Effect.provide(Snowflake.layerGenerator))

/** Fails the first `times` calls. */
const failing = (times: number) => {
  let left = times
  return <A>(work: Effect.Effect<A, ClusterError.PersistenceError>) =>
    Effect.suspend(() => (left-- > 0 ? Effect.fail(closed) : work))
}

describe("messages of the engine", () => {
  it.effect("are answered after an outage that is longer than the engine's own attempts", function* () {
    const fail = failing(40)
    const end = yield* answered((encoded) => ({ saveReply: (reply) => fail(encoded.saveReply(reply)) }))
    assert.deepStrictEqual(end, { isAnswered: true, runs: 1 })
  })

  it.effect("have one answer when the connection closes after the answer was stored", function* () {
    let stored = 0
    const end = yield* answered((encoded) => ({
      saveReply: (reply) => {
        stored += 1
        return stored === 1 ? Effect.andThen(encoded.saveReply(reply), Effect.fail(closed)) : Effect.fail(closed)
      }
    }))
    assert.deepStrictEqual([end, stored], [{ isAnswered: true, runs: 1 }, 1])
  })

  it.effect("are read again when the connection closes while they are read", function* () {
    let lost = 0
    const end = yield* answered((encoded) => ({
      unprocessedMessages: (...query) =>
        Effect.tap(encoded.unprocessedMessages(...query), (messages) =>
          messages.length > 0 && lost++ === 0 ? Effect.fail(closed) : Effect.void
        )
    }))
    assert.deepStrictEqual([end, lost > 0], [{ isAnswered: true, runs: 1 }, true])
  })

  it.effect("are run once, although they are read again while they run", function* () {
    const end = yield* answered(() => ({}), Effect.sleep("1 minute"))
    assert.deepStrictEqual(end, { isAnswered: true, runs: 1 })
  })
})
