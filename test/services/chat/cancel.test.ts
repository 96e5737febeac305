import { ConfigProvider, Deferred, Effect, Exit, Fiber, Layer, Ref } from "effect"
import { defaultPolicy, type Policy } from "../../../src/domain/compression/strategies/Policy.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as GoogleModel from "../../../src/layers/model/GoogleModel.ts"
import * as FakeGemini from "../../../src/layers/testing/FakeGemini.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import * as ModelSummarizer from "../../../src/services/compression/summary/ModelSummarizer.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/**
 * The abort-signal gap, closed: a compression cancelled at any place, over a real socket. Afterwards the conversation, the log and the
 * failure memory are what they were, the server has seen the socket close, and nothing is asked again.
 */

const said = (words: string) => FakeGemini.json(FakeGemini.response([{ text: words }]))
const half: FakeGemini.Answer = [
  FakeGemini.head(200, { "content-type": "application/json" }),
  FakeGemini.write('{"candidates":['),
  FakeGemini.stall
]

/** Where it is cancelled: what the server does, and which request hangs then. */
const places: Readonly<Record<string, { readonly script: FakeGemini.Script; readonly hangs: number }>> = {
  "the first call, before an answer": { script: () => [FakeGemini.stall], hangs: 0 },
  "the first call, in the middle of its body": { script: () => half, hangs: 0 },
  "the second call": { script: ({ index }) => (index === 0 ? said("<state_snapshot>") : [FakeGemini.stall]), hangs: 1 },
  "the second call, in the middle of its body": {
    script: ({ index }) => (index === 0 ? said("<state_snapshot>") : half),
    hangs: 1
  }
}

const conversation = [
  user(text("Make the build green.")),
  ...Array.from({ length: 10 }, (_, n) => [
    model(call("read_file", { path: `src/file${n}.ts` }, `c${n}`)),
    user(response("read_file", { output: `line of file ${n}\n`.repeat(60) }, `c${n}`))
  ]).flat(),
  model(text("done"))
].map((content) => ({ content }))

const policy: Policy = { ...defaultPolicy, limit: TokenCount.make(4_000), summarizer: "model", ladder: false }

const services = (url: string) =>
  Compression.layer.pipe(
    Layer.provide(ModelSummarizer.layer),
    Layer.provide(Layer.merge(GoogleModel.layerConfig, MemoryCalibrations.layer)),
    Layer.provideMerge(Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer, HookSystem.layer)),
    Layer.provide(
      ConfigProvider.layer(
        ConfigProvider.fromUnknown({ GEMINI_API_KEY: "not-a-real-key", GOOGLE_GEMINI_BASE_URL: url })
      )
    )
  )

const world = Effect.gen(function* () {
  const events = yield* Ref.make<ReadonlyArray<SessionEvent>>([])
  const log = { id: "cancel", append: (event: SessionEvent) => Ref.update(events, (all) => [...all, event]) }
  const chat = yield* Chat.keep({ session: emptySession, log })
  yield* chat.append(conversation)
  const before = { session: yield* chat.session, events: yield* Ref.get(events) }
  const unchanged = Effect.gen(function* () {
    assert.strictEqual(yield* chat.session, before.session)
    assert.strictEqual(yield* Ref.get(events), before.events)
    assert.strictEqual((yield* chat.plan({ policy, forced: true }))._tag, "Go")
  })
  return { chat, unchanged }
})

describe("a cancelled compression", () => {
  for (const [name, { hangs, script }] of Object.entries(places)) {
    it.live(`in ${name}: returns Cancelled, closes the socket, changes nothing`, function* () {
      const fake = yield* FakeGemini.make(script)
      yield* Effect.gen(function* () {
        const { chat, unchanged } = yield* world
        const cancel = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(chat.compress({ policy, forced: true, cancel: Deferred.await(cancel) }))
        yield* fake.received(hangs)
        yield* Deferred.succeed(cancel, undefined)
        assert.isFalse(yield* fake.closed(hangs))
        assert.strictEqual((yield* Fiber.join(fiber))._tag, "Cancelled")
        yield* unchanged
        assert.strictEqual((yield* fake.requests).length, hangs + 1)
      }).pipe(Effect.provide(services(fake.url)))
    })

    it.live(`in ${name}, from outside: stays an interruption`, function* () {
      const fake = yield* FakeGemini.make(script)
      yield* Effect.gen(function* () {
        const { chat, unchanged } = yield* world
        const fiber = yield* Effect.forkChild(chat.compress({ policy, forced: true }))
        yield* fake.received(hangs)
        yield* Fiber.interrupt(fiber)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        assert.isFalse(yield* fake.closed(hangs))
        yield* unchanged
        assert.strictEqual((yield* fake.requests).length, hangs + 1)
      }).pipe(Effect.provide(services(fake.url)))
    })
  }

  it.live("in the pause before a retry: does not retry", function* () {
    const fake = yield* FakeGemini.make(() => FakeGemini.rateLimited(5))
    yield* Effect.gen(function* () {
      const { chat, unchanged } = yield* world
      const fiber = yield* Effect.forkChild(chat.compress({ policy, forced: true }))
      yield* fake.closed(0)
      yield* Fiber.interrupt(fiber)
      yield* unchanged
      assert.strictEqual((yield* fake.requests).length, 1)
    }).pipe(Effect.provide(services(fake.url)))
  })

  it.live("in a slow hook: calls no model", function* () {
    const fake = yield* FakeGemini.make(() => [FakeGemini.stall])
    yield* Effect.gen(function* () {
      const { chat, unchanged } = yield* world
      const hooks = yield* HookSystem
      const told = yield* Deferred.make<void>()
      yield* hooks.subscribe("slow", () => Effect.andThen(Deferred.succeed(told, undefined), Effect.never))
      const fiber = yield* Effect.forkChild(chat.compress({ policy, forced: true }))
      yield* Deferred.await(told)
      yield* Fiber.interrupt(fiber)
      yield* unchanged
      assert.isEmpty(yield* fake.requests)
    }).pipe(Effect.provide(services(fake.url)))
  })
})
