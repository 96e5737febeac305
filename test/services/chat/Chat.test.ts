import { Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { defaultPolicy, type Policy } from "../../../src/domain/compression/strategies/Policy.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { type Draft, view, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import { encode } from "../../../src/domain/text/Bytes.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import * as MemorySessionStore from "../../../src/layers/testing/MemorySessionStore.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Chats } from "../../../src/services/chat/Chats.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { Summarizer, SummarizerError } from "../../../src/services/compression/summary/Summarizer.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { Model } from "../../../src/services/model/Model.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { TempStore } from "../../../src/services/session/TempStore.ts"
import { TokenCounter, TokenCountError } from "../../../src/services/tokens/TokenCounter.ts"
import { begin } from "../../support/sending.ts"
import { assert, describe, it, layer } from "../../support/vitest.ts"

const pairs = (count: number): Array<Draft> =>
  Array.from({ length: count }, (_, n) => [
    { content: model(call("read_file", { path: `src/file${n}.ts` }, `c${n}`)) },
    { content: user(response("read_file", { output: `line of file ${n}\n`.repeat(60) }, `c${n}`)) }
  ]).flat()

/** One prompt and many calls: what the original cannot compress. */
const conversation: Array<Draft> = [
  { content: user(text("Make the build green. Never touch src/legacy.")) },
  ...pairs(12),
  { content: model(text("The build is green.")) }
]

const policy: Policy = { ...defaultPolicy, limit: TokenCount.make(4_000) }
const forced = { policy, forced: true }
const automatic = { policy, forced: false }

const filled = Effect.fnUntraced(function* (id: string, drafts: ReadonlyArray<Draft> = conversation) {
  const chat = yield* Chats.use((chats) => chats.open(id))
  yield* chat.append(drafts)
  return chat
})

type Written = Effect.Success<ReturnType<Summarizer["Service"]["summarize"]>>

const written = (text: string, calls: Written["calls"] = []): Written => ({ text, calls })

/** The runtime with another summarizer, or another counter. */
const withSummarizer = (
  summarize: Summarizer["Service"]["summarize"],
  count: TokenCounter["Service"]["count"] | undefined = undefined
) =>
  Chats.layer.pipe(
    Layer.provideMerge(Compression.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        count === undefined ? TokenCounter.layerEstimate : Layer.succeed(TokenCounter, { count }),
        Layer.succeed(Summarizer, {
          summarize,
          ask: () => Effect.die("unexpected call"),
          count: () => Effect.die("unexpected call")
        }),
        HookSystem.layer,
        Model.layerUnavailable,
        MemoryCalibrations.layer,
        Layer.provideMerge(MemorySessionStore.layer, MemoryTempStore.layer)
      )
    )
  )

layer(Offline.layer)("Chat", (it) => {
  it.effect("a single long prompt can be compressed between its calls, repeatedly", function* () {
    const chat = yield* filled("one-prompt")
    const before = yield* chat.conversation
    const outcome = yield* chat.compress(automatic)
    assert.strictEqual(outcome._tag, "Compressed")
    const after = yield* chat.conversation
    assert.isBelow(viewTokens(after), policy.limit * policy.threshold)
    assert.isBelow(view(after).length, view(before).length)
    assert.strictEqual((yield* chat.compress(automatic))._tag, "Noop")
  })

  it.effect(
    "after an undo to a view above the threshold, automatic compression waits for growth; a requested one runs",
    function* () {
      const chat = yield* filled("after-undo")
      yield* chat.compress(automatic)
      yield* chat.undo
      const waiting = yield* chat.compress(automatic)
      assert.deepStrictEqual([waiting._tag, waiting._tag === "Noop" && waiting.reason], ["Noop", "waiting for growth"])
      yield* chat.append(pairs(4))
      assert.strictEqual((yield* chat.compress(automatic))._tag, "Compressed")
    }
  )

  it.effect("gemini: a result that grew is remembered while the chat is open, not beyond (Gemini CLI)", function* () {
    const failed: SessionEvent = {
      _tag: "CompressionFailed",
      at: 1,
      status: "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
      forced: false,
      tokens: TokenCount.make(5_000),
      strategy: "gemini"
    }
    yield* Effect.scoped(filled("grew"))
    const stored = yield* Effect.scoped(
      Effect.gen(function* () {
        const { log } = yield* SessionStore.use((store) => store.open("grew"))
        yield* log.append(failed)
        return yield* log.whole
      })
    )
    assert.isTrue(stored.memory.failed)
    const chat = yield* Chats.use((chats) => chats.open("grew"))
    assert.isFalse((yield* chat.session).memory.failed)
    assert.isFalse((yield* chat.whole).memory.failed)
  })

  it.effect("everyone who opens an id shares one chat, closed with its last user", function* () {
    const chats = yield* Chats
    const [one, two] = yield* Effect.all([Scope.make(), Scope.make()])
    const first = yield* Scope.provide(chats.open("shared"), one)
    const second = yield* Scope.provide(chats.open("shared"), two)
    assert.strictEqual(first, second)
    yield* first.append(conversation)
    yield* Scope.close(one, Exit.void)
    yield* second.append([{ content: user(text("still open")) }])
    yield* Scope.close(two, Exit.void)
    assert.strictEqual((yield* Effect.exit(second.append(conversation)))._tag, "Failure")
    const again = yield* chats.open("shared")
    assert.strictEqual(view(yield* again.conversation).length, conversation.length + 1)
  })
})

describe("Chat", () => {
  it.effect(
    "a change during a compression fails with ChatBusy, reading does not wait, a cancel changes nothing",
    function* () {
      const asked = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const slow = withSummarizer(() =>
        Deferred.succeed(asked, undefined).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
        )
      )
      yield* Effect.gen(function* () {
        const chat = yield* filled("busy")
        const before = yield* chat.session
        const cancel = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(chat.compress({ ...forced, cancel: Deferred.await(cancel) }))
        yield* Deferred.await(asked)
        const busy = yield* Effect.flip(chat.append(conversation))
        assert.strictEqual(busy._tag, "ChatBusy")
        assert.include(busy.message, "a compression")
        assert.strictEqual(view(yield* chat.conversation).length, conversation.length)
        yield* Deferred.succeed(cancel, undefined)
        assert.strictEqual((yield* Fiber.join(fiber))._tag, "Cancelled")
        yield* Deferred.await(interrupted)
        assert.strictEqual(yield* chat.session, before)
        yield* chat.append([{ content: user(text("free again")) }])
      }).pipe(Effect.provide(slow))
    }
  )

  it.effect(
    "a summarizer that fails, or returns nothing, ends as a typed outcome and changes only the failure memory",
    function* () {
      const failing = withSummarizer(() =>
        Effect.fail(
          new SummarizerError({ reason: "RateLimitError", message: "too many requests", cause: "429", calls: [] })
        )
      )
      const silent = withSummarizer(() => Effect.succeed(written(" ")))
      for (const [services, tag] of [
        [failing, "FailedSummarizer"],
        [silent, "FailedEmptySummary"]
      ] as const) {
        yield* Effect.gen(function* () {
          const chat = yield* filled("fails")
          const before = yield* chat.conversation
          const outcome = yield* chat.compress({ policy: { ...policy, ladder: false }, forced: false })
          assert.strictEqual(outcome._tag, tag)
          assert.strictEqual(yield* chat.conversation, before)
          assert.isAbove((yield* chat.session).memory.waitUntil, viewTokens(before))
        }).pipe(Effect.provide(services))
      }
    }
  )

  it.effect("reports what was paid, whatever fallback it ended on, and the first failure", function* () {
    const answered = {
      purpose: "generate",
      model: "m",
      messages: 3,
      answer: "x",
      finishReason: "STOP",
      usage: null
    } as const
    // A snapshot so long that the first plan does not shrink anything; the stronger rungs go without the model.
    const wordy = withSummarizer((request) =>
      Effect.succeed(
        request.by === "model"
          ? written("word ".repeat(20_000), [answered])
          : written("<state_snapshot>short</state_snapshot>")
      )
    )
    yield* Effect.gen(function* () {
      const chat = yield* filled("paid")
      // Within a smaller budget the snapshot would be cut.
      const roomy = { ...policy, summarizer: "model", snapshotBudget: TokenCount.make(1_000_000) } as const
      const outcome = yield* chat.compress({ policy: roomy, forced: true })
      assert.strictEqual(outcome._tag, "Compressed")
      if (outcome._tag !== "Compressed") return
      assert.deepStrictEqual([outcome.by, outcome.degraded?.reason], ["ladder", "inflated"])
      assert.deepStrictEqual(outcome.calls, [answered])
    }).pipe(Effect.provide(wordy))
  })

  it.effect("an uncountable conversation ends as FailedTokenCountError, the seventh status", function* () {
    let counted = 0
    // What goes with every request is counted once, before the first result of a tool.
    const services = withSummarizer(
      () => Effect.succeed(written("<state_snapshot>short</state_snapshot>")),
      (parts) =>
        Effect.suspend(() =>
          (counted += 1) > conversation.length + 1
            ? Effect.fail(new TokenCountError({ message: "no answer", cause: "offline" }))
            : Effect.succeed(parts.map(() => 400))
        )
    )
    yield* Effect.gen(function* () {
      const chat = yield* filled("uncounted")
      const outcome = yield* chat.compress(forced)
      assert.strictEqual(outcome._tag, "FailedTokenCountError")
    }).pipe(Effect.provide(services))
  })
})

describe("recall", () => {
  layer(Chats.layer.pipe(Layer.provideMerge(Layer.merge(Offline.layer, MemoryCalibrations.layer))))((it) => {
    it.effect("reads only its own conversation, even from a shared store", function* () {
      const secret = `alpha ${"keeps this to itself. ".repeat(600)}`
      const alpha = yield* filled("recall-alpha")
      const [entry] = yield* alpha.append([{ content: user(text(secret)) }])
      const [handle = assert.fail("no handle")] = entry?.handles ?? []
      // As a strategy or a session on disk does with what is large.
      yield* TempStore.use((store) => store.put(encode(secret)))
      const beta = yield* filled("recall-beta")
      assert.strictEqual((yield* alpha.recall(handle)).text, secret)
      const refused = yield* Effect.flip(beta.recall(handle))
      assert.strictEqual(refused._tag === "TempStoreError" ? refused.reason._tag : "", "HandleNotHeld")
      assert.match(refused.message, /^this conversation holds nothing under h_.*repeat the call that returned it$/)
      // What leaves the window and comes back by an undo stays its own.
      yield* alpha.compress(forced)
      assert.strictEqual((yield* alpha.recall(handle)).text, secret)
      yield* alpha.undo
      assert.strictEqual((yield* alpha.recall(handle)).text, secret)
    })
  })
})

const said = "Remember the rules."
type Places = ReadonlyArray<readonly [author: string | undefined, fromEnd: number]>
it.effect.each<readonly [rule: string, more: ReadonlyArray<Draft>, message: string, places: Places]>([
  ["is appended", [], said, [["program", -1]]],
  ["is not appended twice", [{ content: user(text(said)), author: "program" }], said, [["program", -1]]],
  [
    "is appended where the user said the same",
    [{ content: user(text(said)) }],
    said,
    [
      [undefined, -2],
      ["program", -1]
    ]
  ],
  ["is not appended between a call and its answer", [{ content: model(call("f", {}, "c99")) }], said, []],
  ["is not appended where it takes too much room", [], said.repeat(1_000), []]
])("the message after a compression %s", Offline.layer, function* ([, more, message, places]) {
  const { chat } = yield* begin({ window: 20_000, afterCompression: Effect.succeed(message) })
  yield* chat.append([...conversation, ...more])
  assert.strictEqual((yield* chat.compress())._tag, "Compressed")
  const shown = view(yield* chat.conversation).map(({ entry: { author, content } }) => [author, ...content.parts])
  assert.deepStrictEqual<unknown>(
    shown.flatMap(([author, part], at) =>
      typeof part === "object" && part.text === message ? [[author, at - shown.length]] : []
    ),
    places
  )
})
