import { Effect, Fiber } from "effect"
import * as MessageQueue from "../../../src/layers/terminal/MessageQueue.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const message = (text: string): MessageQueue.TypedMessage => ({ text, waits: false, store: Effect.void })

const filled = Effect.fnUntraced(function* (...texts: ReadonlyArray<string>) {
  const queue = yield* MessageQueue.make
  for (const text of texts) queue.add(message(text))
  return queue
})

const takeText = (queue: MessageQueue.MessageQueue) => Effect.map(queue.take, ({ text }) => text)

describe("a queue of messages", () => {
  it.effect("gives the oldest first", function* () {
    const queue = yield* filled("one", "two")
    assert.deepStrictEqual([yield* takeText(queue), yield* takeText(queue)], ["one", "two"])
    assert.isEmpty(queue.messages)
  })

  it.effect("does not give what was taken back", function* () {
    const queue = yield* filled("one", "two")
    assert.strictEqual(queue.takeBackLast(), "two")
    assert.deepStrictEqual(
      queue.messages.map(({ text }) => text),
      ["one"]
    )
    assert.deepStrictEqual(queue.takeBackAll(), ["one"])
    assert.isUndefined(queue.takeBackLast())
    const next = yield* Effect.forkChild(takeText(queue), { startImmediately: true })
    queue.add(message("three"))
    assert.strictEqual(yield* Fiber.join(next), "three")
  })

  it.effect("gives work what need not wait for a prompt, and the rest to prompts in its order", function* () {
    const queue = yield* filled("two")
    queue.add({ ...message("later"), waits: true })
    queue.add(message("three"))
    const taken = queue.takeTyped()
    assert.deepStrictEqual(
      taken.map(({ text }) => text),
      ["two", "three"]
    )
    assert.strictEqual(yield* takeText(queue), "later")
    assert.isEmpty(queue.messages)
  })

  it.effect("tells equal messages apart", function* () {
    const queue = yield* filled("same", "same", "other")
    queue.takeBackAll()
    queue.add(message("same"))
    assert.strictEqual(yield* takeText(queue), "same")
    assert.isEmpty(queue.messages)
  })

  it.effect("fails when it is closed", function* () {
    const queue = yield* filled()
    const next = yield* Effect.forkChild(Effect.flip(takeText(queue)), { startImmediately: true })
    queue.close()
    assert.strictEqual((yield* Fiber.join(next))._tag, "Closed")
    assert.isFalse(queue.isOpen)
  })
})
