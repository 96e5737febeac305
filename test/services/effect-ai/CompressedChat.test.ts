import { Cause, Context, Deferred, Effect, Exit, Fiber, Layer, Ref, Schema, Scope, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import * as AiChat from "effect/ai/Chat"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { plainText } from "../../../src/domain/content/Content.ts"
import { mentions } from "../../../src/domain/content/Handle.ts"
import { empty, entries, view } from "../../../src/domain/conversation/Conversation.ts"
import { recall, recallable } from "../../../src/domain/conversation/Recall.ts"
import { toContent } from "../../../src/domain/effect-ai/PromptContent.ts"
import { noResult } from "../../../src/domain/effect-ai/PromptRepair.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import * as ScriptedLanguageModel from "../../../src/layers/testing/ScriptedLanguageModel.ts"
import { Chats } from "../../../src/services/chat/Chats.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { CompressedChat, type Options } from "../../../src/services/effect-ai/CompressedChat.ts"
import { sharedMessages } from "../../../src/services/effect-ai/PromptNames.ts"
import { Recall } from "../../../src/services/effect-ai/RecallTool.ts"
import { SessionStore, SessionStoreError, SessionUnavailable } from "../../../src/services/session/SessionStore.ts"
import { thousand } from "../../support/generate.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { answers, boundOf, calls, illegalPrompt, says, snapshotOf, wordsOf } from "../../support/prompts.ts"
import { isUnitTier } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

type Messages = ReadonlyArray<Prompt.Message>
const { Script } = ScriptedLanguageModel

const over = (answers: ScriptedLanguageModel.Answers = () => "ok") =>
  Layer.mergeAll(ScriptedLanguageModel.layer(answers), Offline.layer, MemoryCalibrations.layer)

const system = Prompt.systemMessage({ content: "Be brief." })
const small: Options = { session: "talk", window: 4_000, reserve: 500, prompt: Prompt.fromMessages([system]) }
const open = (options: Partial<Options> = {}) => CompressedChat.make({ ...small, ...options })

const requests = Effect.map(
  Script.use((script) => script.requests),
  (all) => all.map(({ prompt }) => prompt.content)
)
const latest = Effect.map(requests, (all) => all.at(-1) ?? [])
const historyOf = (chat: AiChat.Chat) => Effect.map(Ref.get(chat.history), ({ content }) => content)

const page = (n: number) => `${n}: ${"the build of src/parser is red, see line 17. ".repeat(12)}`
const question = (n: number) => `Question ${page(n)}`
const talk = Effect.fnUntraced(function* (chat: AiChat.Chat, questions: number, from = 0) {
  for (let n = from; n < from + questions; n += 1) yield* chat.generateText({ prompt: question(n) })
})

const isPrefix = (one: Messages, other: Messages): boolean => sharedMessages(one, other) === one.length

const failing = (reason: AiError.AiErrorReason) => AiError.make({ module: "Fake", method: "generateText", reason })

/** Checks that the session shows the messages of the history, and no others. */
const agrees = Effect.fnUntraced(function* (chat: CompressedChat["Service"]) {
  const spoken = (yield* historyOf(chat)).flatMap((message) => (message.role === "system" ? [] : [toContent(message)]))
  const { conversation } = yield* chat.session
  assert.deepStrictEqual(
    view(conversation).map(({ entry }) => plainText(entry.content)),
    spoken.map(plainText)
  )
})

describe("a chat's history", () => {
  it.effect.skipIf(isUnitTier)(
    "shrinks on compression, with the exports, while the session keeps everything",
    over(),
    function* () {
      const chat = yield* open()
      const sizes: Array<number> = []
      for (let n = 0; n < 50; n += 1) {
        yield* chat.generateText({ prompt: question(n) })
        sizes.push((yield* historyOf(chat)).length)
      }
      assert.isBelow(Math.max(...sizes), 40)
      assert.isAbove(sizes.filter((size, n) => size < (sizes[n - 1] ?? 0)).length, 1)
      const history = yield* historyOf(chat)
      assert.strictEqual(history[0], system)
      assert.isDefined(snapshotOf(history))
      assert.isBelow((yield* chat.exportJson).length, 20_000)
      const read = yield* AiChat.fromJson(yield* chat.exportJson)
      assert.deepStrictEqual(yield* historyOf(read), history)

      const { conversation } = yield* chat.session
      assert.deepStrictEqual(
        entries(conversation).map(({ content }) => plainText(content)),
        Array.from({ length: 50 }, (_, n) => [question(n), "ok"]).flat()
      )
      for (const handle of mentions(wordsOf(history))) yield* chat.recall(handle)
    }
  )

  it.effect("keeps its original objects", over(), function* () {
    const chat = yield* open()
    yield* talk(chat, 12)
    const before = yield* historyOf(chat)
    yield* chat.compress()
    const kept = (yield* historyOf(chat)).filter((message) => before.includes(message))
    assert.isAbove(kept.length, 3)
    yield* chat.undo
    assert.deepStrictEqual(yield* historyOf(chat), before)
    assert.isTrue((yield* historyOf(chat)).every((message, index) => message === before[index]))
  })

  it.effect("can be compressed on request, restored by undo, and compressed again by redo", over(), function* () {
    const chat = yield* open()
    yield* talk(chat, 6)
    const before = yield* historyOf(chat)
    assert.isFalse(yield* chat.undo)
    const outcome = yield* chat.compress({ focus: "the parser" })
    assert.strictEqual(outcome._tag, "Compressed")
    const after = yield* historyOf(chat)
    assert.isBelow(after.length, before.length)
    yield* talk(chat, 1, 6)
    assert.isTrue(yield* chat.undo)
    assert.deepStrictEqual(yield* historyOf(chat), [...before, says(question(6)), answers("ok")])
    assert.isTrue(yield* chat.redo)
    assert.deepStrictEqual(yield* historyOf(chat), [...after, says(question(6)), answers("ok")])
    assert.isFalse(yield* chat.redo)
  })

  it.effect("is compressed on request as the request says", over(), function* () {
    const chat = yield* open()
    yield* talk(chat, 8)
    const kept = Effect.fnUntraced(function* (preserve: number) {
      yield* chat.compress({ preserve })
      const { length } = yield* historyOf(chat)
      assert.isTrue(yield* chat.undo)
      return length
    })
    assert.isBelow(yield* kept(0.1), yield* kept(0.7))
  })

  it.effect("keeps system messages in place, and dropped ones behind the first", over(), function* () {
    const chat = yield* open()
    const [mode = assert.fail("no modes"), other = assert.fail("no modes")] = ["Mode: act.", "Mode: talk."].map(
      (content) => Prompt.systemMessage({ content })
    )
    yield* talk(chat, 3)
    yield* chat.generateText({ prompt: Prompt.fromMessages([mode, says(question(3))]) })
    yield* chat.generateText({ prompt: Prompt.fromMessages([other, says(question(4))]) })
    yield* talk(chat, 19, 5)
    const late = Prompt.systemMessage({ content: "Mode: plan." })
    yield* chat.generateText({ prompt: Prompt.fromMessages([late, says("Now?")]) })
    yield* chat.compress()
    const history = yield* historyOf(chat)
    assert.deepStrictEqual(history.slice(0, 3), [system, mode, other])
    assert.deepStrictEqual(history.slice(-3), [late, says("Now?"), answers("ok")])
    const systems = Effect.map(historyOf(chat), (all) => all.filter(({ role }) => role === "system"))
    assert.deepStrictEqual(yield* systems, [system, mode, other, late])
    // Those that were moved are no others to the next compression.
    yield* talk(chat, 6, 24)
    yield* chat.compress()
    assert.deepStrictEqual(yield* systems, [system, mode, other, late])
    while (yield* chat.undo) {}
    const whole = yield* historyOf(chat)
    assert.deepStrictEqual([whole[7], whole[10]], [mode, other])
    assert.strictEqual(whole.length, 1 + 6 + 2 * 3 + 38 + 1 + 2 + 12)
  })
})

describe("system messages", () => {
  it.effect("removed by the caller do not return", over(), function* () {
    const chat = yield* open()
    yield* talk(chat, 3)
    yield* chat.generateText({
      prompt: Prompt.fromMessages([Prompt.systemMessage({ content: "Mode: act." }), says(question(3))])
    })
    yield* talk(chat, 6, 4)
    yield* Ref.update(chat.history, Prompt.setSystem("Be very brief."))
    yield* chat.compress()
    const history = yield* historyOf(chat)
    assert.isDefined(snapshotOf(history))
    assert.deepStrictEqual(
      history.filter(({ role }) => role === "system"),
      [Prompt.systemMessage({ content: "Be very brief." })]
    )
  })

  it.effect("sent with every call stay in place, the first in front", over(), function* () {
    const chat = yield* open()
    for (let n = 0; n < 10; n += 1) {
      yield* chat.generateText({ prompt: Prompt.fromMessages([system, says(question(n))]) })
    }
    for (let round = 0; round < 2; round += 1) {
      yield* chat.compress()
      const history = yield* historyOf(chat)
      assert.isDefined(snapshotOf(history))
      assert.strictEqual(history.filter((message) => message === system).length, 11 + round)
      assert.strictEqual(history[0], system)
      assert.deepStrictEqual(history.slice(-3), [system, says(question(9 + round)), answers("ok")])
      if (round === 0) yield* chat.generateText({ prompt: Prompt.fromMessages([system, says(question(10))]) })
    }
    while (yield* chat.undo) {}
    const turns = Array.from({ length: 11 }, (_, n) => [system, says(question(n)), answers("ok")]).flat()
    assert.deepStrictEqual(yield* historyOf(chat), [system, ...turns])
  })

  it.effect("at the end stay last", over(), function* () {
    const chat = yield* open()
    yield* talk(chat, 8)
    const last = Prompt.systemMessage({ content: "Mode: last." })
    yield* Ref.update(chat.history, ({ content }) => Prompt.fromMessages([...content, last]))
    yield* chat.compress()
    assert.isDefined(snapshotOf(yield* historyOf(chat)))
    assert.strictEqual((yield* historyOf(chat)).at(-1), last)
    yield* talk(chat, 1, 8)
    yield* chat.undo
    assert.strictEqual((yield* historyOf(chat)).at(-3), last)
  })

  it.effect("are not duplicated when the message behind them is edited", over(), function* () {
    const chat = yield* open()
    const mode = Prompt.systemMessage({ content: "Mode: act." })
    yield* talk(chat, 2)
    yield* chat.generateText({ prompt: Prompt.fromMessages([mode, says(question(2))]) })
    yield* Ref.update(chat.history, ({ content }) =>
      Prompt.fromMessages([...content.slice(0, -2), says("edited"), answers("ok")])
    )
    yield* talk(chat, 4, 3)
    yield* chat.compress()
    assert.strictEqual((yield* historyOf(chat)).filter((message) => message === mode).length, 1)
  })
})

describe("a session", () => {
  const inside = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.scoped(effect)

  /** A store that reads only the view of a session when it opens it. */
  const viewOnly = Layer.effect(
    SessionStore,
    Effect.map(SessionStore, (store) => ({
      ...store,
      open: (id: string) =>
        Effect.map(store.open(id), (opened) => ({
          ...opened,
          complete: false,
          session: { ...opened.session, conversation: empty }
        }))
    }))
  ).pipe(Layer.provideMerge(over()))

  it.effect.each([
    ["whole", over()],
    ["without what left its view", viewOnly]
  ] as const)(
    "is available after a restart, compressed as before, with the current system prompt (read %s)",
    ([, store]) =>
      Effect.gen(function* () {
        const mode = Prompt.systemMessage({ content: "Mode: act." })
        const before = yield* inside(
          Effect.gen(function* () {
            const chat = yield* open()
            yield* talk(chat, 9)
            yield* chat.generateText({ prompt: Prompt.fromMessages([mode, says("Now?")]) })
            yield* chat.compress()
            return yield* historyOf(chat)
          })
        )
        assert.isDefined(snapshotOf(before))
        const today = Prompt.systemMessage({ content: "Be very brief." })
        yield* inside(
          Effect.gen(function* () {
            const chat = yield* open({ prompt: Prompt.fromMessages([today, says("not said again")]) })
            assert.deepStrictEqual(yield* historyOf(chat), [today, ...before.slice(1)])
            yield* chat.generateText({ prompt: "More." })
            assert.isTrue(isPrefix([today, ...before.slice(1), says("More.")], yield* latest))
            assert.isTrue(yield* chat.undo)
            assert.strictEqual((yield* historyOf(chat)).length, 1 + 18 + 1 + 2 + 2)
            assert.strictEqual(entries((yield* chat.session).conversation).length, 22)
          })
        )
      }).pipe(Effect.provide(store))
  )

  it.effect("of another program can be continued, calls with their results", over(), function* () {
    yield* inside(
      Effect.gen(function* () {
        const chats = yield* Chats
        const chat = yield* chats.open("talk")
        yield* chat.append([
          { content: { role: "user", parts: [{ text: "Read it." }] } },
          { content: { role: "model", parts: [{ functionCall: { name: "read", args: { path: "a" } } }] } },
          {
            content: {
              role: "user",
              parts: [{ functionResponse: { name: "read", response: { output: "Body." } } }, { text: "And?" }]
            }
          }
        ])
      })
    )
    yield* inside(
      Effect.gen(function* () {
        const chat = yield* open()
        yield* talk(chat, 14)
        const [first] = yield* requests
        assert.deepStrictEqual(
          first?.map(({ role }) => role),
          ["system", "user", "assistant", "tool", "user", "user"]
        )
        for (const messages of yield* requests) assert.isUndefined(illegalPrompt(messages))
        assert.strictEqual(entries((yield* chat.session).conversation).length, 3 + 28)
        // Of an entry that is two messages, one is taken away: the other stays.
        while (yield* chat.undo) {}
        const history = yield* historyOf(chat)
        const edited = [...history.slice(0, 4), says("edited")]
        yield* Ref.set(chat.history, Prompt.fromMessages(edited))
        yield* chat.generateText({ prompt: "Next?" })
        assert.deepStrictEqual(yield* latest, [...edited, says("Next?")])
        // The session says the same.
        assert.isFalse(yield* chat.redo)
        assert.deepStrictEqual(yield* historyOf(chat), [...edited, says("Next?"), answers("ok")])
      })
    )
  })

  it.effect("begins with the messages that it is given, and with a prompt that was interrupted", function* () {
    yield* Effect.gen(function* () {
      const prompt = Prompt.fromMessages([system, says("a"), answers("b")])
      yield* inside(open({ prompt }))
      const chat = yield* open({ prompt: Prompt.fromMessages([system]) })
      assert.deepStrictEqual(yield* historyOf(chat), [system, says("a"), answers("b")])
      yield* chat.generateText({ prompt: Prompt.fromMessages([calls("c1", "c2"), says("Go on.")]) })
      assert.isUndefined(illegalPrompt(yield* latest))
      yield* agrees(chat)
    }).pipe(Effect.provide(over()))
  })

  it.effect("is locked while the chat is open", over(), function* () {
    yield* open()
    const error = yield* Effect.flip(open())
    assert.include(String(error.message), "in use")
  })

  /** A store that takes so many events more, and says when it has one. */
  const limited = Effect.gen(function* () {
    const room: { left: number; taken: Effect.Effect<void> } = { left: Infinity, taken: Effect.void }
    const real = yield* SessionStore
    const reason = new SessionUnavailable({ operation: "append", message: "disk full", cause: "test" })
    const store = Layer.succeed(SessionStore, {
      ...real,
      create: (started) =>
        Effect.map(real.create(started), (log) => ({
          ...log,
          append: (event) =>
            Effect.suspend(() => {
              room.left -= 1
              if (room.left < 0) return Effect.fail(new SessionStoreError({ reason }))
              return Effect.tap(log.append(event), () => room.taken)
            })
        }))
    })
    return { chat: yield* open().pipe(Effect.provide(store)), room }
  })

  it.effect("that fails in between continues where it stopped", over(), function* () {
    const { chat, room } = yield* limited
    const more = [says("a"), answers("b"), says("c"), answers("d")]
    yield* Ref.update(chat.history, ({ content }) => Prompt.fromMessages([...content, ...more]))
    room.left = 2
    assert.include((yield* Effect.flip(chat.generateText({ prompt: "e" }))).message, "disk full")
    room.left = Infinity
    yield* chat.generateText({ prompt: "e" })
    assert.deepStrictEqual(
      entries((yield* chat.session).conversation).map(({ content }) => plainText(content)),
      ["a", "b", "c", "d", "e", "ok"]
    )
    assert.deepStrictEqual(yield* historyOf(chat), [system, ...more, says("e"), answers("ok")])
  })

  it.effect("that is interrupted once it has a change of the history knows that", over(), function* () {
    const { chat, room } = yield* limited
    yield* talk(chat, 2)
    yield* Ref.update(chat.history, ({ content }) => Prompt.fromMessages(content.slice(0, -2)))
    const fiber = yield* Effect.forkChild(chat.generateText({ prompt: "e" }))
    let events = 0
    const interrupt = Effect.sync(() => {
      events += 1
      fiber.interruptUnsafe()
    })
    room.taken = Effect.andThen(interrupt, Effect.yieldNow)
    yield* Fiber.await(fiber)
    assert.deepStrictEqual([events, (yield* requests).length], [1, 2])
    yield* agrees(chat)
  })

  it.effect(
    "that cannot be written is reported before the next request, and nothing is lost once it can",
    over(),
    function* () {
      const { chat, room } = yield* limited
      yield* talk(chat, 1)
      room.left = 0
      // The answer came: it is not lost for want of a disk.
      assert.strictEqual((yield* chat.generateText({ prompt: question(1) })).text, "ok")
      const error = yield* Effect.flip(chat.generateText({ prompt: question(2) }))
      assert.include(error.message, "disk full")
      assert.strictEqual((yield* requests).length, 2)
      room.left = Infinity
      yield* chat.generateText({ prompt: question(2) })
      assert.deepStrictEqual(
        entries((yield* chat.session).conversation).map(({ content }) => plainText(content)),
        [question(0), "ok", question(1), "ok", question(2), "ok"]
      )
    }
  )
})

describe("a history changed by the caller", () => {
  const changes: ReadonlyArray<readonly [string, (history: Messages) => Messages, dropped: number]> = [
    ["cleared", () => [], 12],
    ["cut", (history) => history.slice(0, 7), 6],
    ["edited at its end", (history) => [...history.slice(0, -1), answers("edited")], 1],
    ["edited in its middle", (history) => history.map((each, n) => (n === 3 ? says("edited") : each)), 10],
    ["given another system prompt", (history) => Prompt.setSystem(Prompt.fromMessages(history), "Other.").content, 0],
    ["read anew from its export", (history) => JSON.parse(JSON.stringify(history)), 0],
    ["continued", (history) => [...history, says("x"), answers("y")], 0]
  ]
  for (const [name, change, dropped] of changes) {
    it.effect(`is used as it is: ${name}`, over(), function* () {
      const chat = yield* open()
      yield* talk(chat, 6)
      const before = yield* historyOf(chat)
      const changed = change(before)
      yield* Ref.set(chat.history, Prompt.fromMessages(changed))
      yield* chat.generateText({ prompt: "Next?" })
      assert.deepStrictEqual(yield* latest, [...changed, says("Next?")])
      const { conversation } = yield* chat.session
      // Nothing that was said is gone.
      const said = entries(conversation).map(({ content }) => plainText(content))
      for (let n = 0; n < 6; n += 1) assert.include(said, question(n))
      assert.strictEqual((yield* chat.undo) ? 12 : 0, dropped === 0 ? 0 : 12)
      yield* Ref.set(chat.history, Prompt.fromMessages(changed))
      yield* chat.generateText({ prompt: "Next?" })
      yield* agrees(chat)
      yield* talk(chat, 20, 6)
      assert.isDefined(snapshotOf(yield* historyOf(chat)))
      for (const messages of yield* requests) assert.isUndefined(illegalPrompt(messages))
    })
  }

  it.effect("is left as it is by a compression that would inflate it", over(), function* () {
    const chat = yield* open()
    yield* talk(chat, 1)
    const [first = system, ...others] = yield* historyOf(chat)
    const changed = [
      first,
      ...others.slice(0, 1),
      Prompt.systemMessage({ content: "Noted." }),
      ...others.slice(1),
      says("x")
    ]
    yield* Ref.set(chat.history, Prompt.fromMessages(changed))
    assert.strictEqual((yield* chat.compress())._tag, "FailedInflatedTokenCount")
    assert.deepStrictEqual(yield* historyOf(chat), changed)
  })
})

it.effect("system messages count towards the growth that a compression with little gain waits for", function* () {
  let tried = 0
  const counting = Layer.effect(
    Compression,
    Effect.map(Compression, (real) => ({
      ...real,
      compress: (request: Parameters<typeof real.compress>[0]) =>
        Effect.suspend(() => {
          tried += 1
          return real.compress(request)
        })
    }))
  )
  yield* Effect.gen(function* () {
    const chat = yield* open({
      window: 12_000,
      reserve: 0,
      threshold: 0.3,
      policy: { minGain: 0 },
      prompt: Prompt.fromMessages([Prompt.systemMessage({ content: page(1).repeat(16) })])
    })
    yield* Ref.update(chat.history, ({ content }) =>
      Prompt.fromMessages([
        ...content,
        ...[0, 1, 2].flatMap((n) => [says(question(n)), answers(`${n}`)]),
        says(page(0).repeat(24))
      ])
    )
    yield* chat.generateText({ prompt: "?" })
    assert.strictEqual(tried, 1)
    for (let n = 0; n < 4; n += 1) yield* chat.generateText({ prompt: "?" })
    assert.strictEqual(tried, 1)
    yield* talk(chat, 8)
    assert.isAbove(tried, 1)
  }).pipe(Effect.provide(Layer.provideMerge(counting, over())))
})

describe("a change of the history", () => {
  it.effect("is measured anew, although it has about as many estimated tokens", over(), function* () {
    const chat = yield* open({ window: 4_600, reserve: 0, threshold: 1 })
    yield* talk(chat, 13)
    const [first, ...before] = yield* historyOf(chat)
    // Up to twice as many real ones.
    const emoji = (message: Prompt.Message) => (message.role === "user" ? says("😀👩‍👩‍👧".repeat(23)) : message)
    yield* Ref.set(chat.history, Prompt.fromMessages([first ?? system, ...before.map(emoji)]))
    yield* chat.generateText({ prompt: "Next?" })
    assert.isAtMost(boundOf(yield* latest), 4_600)
    assert.isDefined(snapshotOf(yield* latest))
  })

  it.effect("of the tools is measured anew, although the messages only grew", over(), function* () {
    const chat = yield* open({ window: 4_600, reserve: 0, threshold: 1 })
    yield* talk(chat, 12)
    const asked = (description: string) =>
      chat
        .generateText({
          prompt: "Go on.",
          toolkit: Toolkit.make(Tool.make("wide", { description })),
          disableToolCallResolution: true
        })
        .pipe(Effect.andThen(latest), Effect.map(snapshotOf))
    assert.isUndefined(yield* asked("very ".repeat(700)))
    assert.isDefined(yield* asked("\u{1f600}\u{1f469}\u200d\u{1f469}\u200d\u{1f467}".repeat(110)))
  })

  it.effect("can be undone, and is not repeated: later turns may depend on what it removed", over(), function* () {
    const chat = yield* open()
    yield* talk(chat, 3)
    const before = yield* historyOf(chat)
    yield* Ref.set(chat.history, Prompt.fromMessages(before.slice(0, 3)))
    assert.isTrue(yield* chat.undo)
    assert.deepStrictEqual(yield* historyOf(chat), before)
    assert.isFalse(yield* chat.redo)
    assert.deepStrictEqual(yield* historyOf(chat), before)
  })
})

// --- tools and streams ----------------------------------------------------------------------------------------------------

let read = 0
const Reading = Toolkit.make(
  Tool.make("read", { parameters: Schema.Struct({ path: Schema.String }), success: Schema.String })
)
const layerReading = Reading.toLayer(
  Effect.succeed(
    Reading.of({
      read: ({ path }) =>
        Effect.sync(() => {
          read += 1
          return `${path}\n${page(read)}`
        })
    })
  )
)
const reads = (id: string): Response.PartEncoded => ({ type: "tool-call", id, name: "read", params: { path: id } })

describe("tools", () => {
  it.effect(
    "run once, and their results stay with their calls",
    Layer.merge(
      over((_, n) => [reads(`c${n}`)]),
      layerReading
    ),
    function* () {
      read = 0
      const chat = yield* open()
      for (let n = 0; n < 30; n += 1) yield* chat.generateText({ prompt: `Read ${n}.`, toolkit: Reading })
      assert.strictEqual(read, 30)
      for (const messages of yield* requests) {
        assert.isUndefined(illegalPrompt(messages))
        assert.isAtMost(boundOf(messages), 3_500)
      }
      assert.isDefined(snapshotOf(yield* latest))
      assert.strictEqual(entries((yield* chat.session).conversation).length, 90)
    }
  )

  it.effect(
    "can be answered by the caller",
    Layer.merge(
      over((_, n) => (n === 8 ? [reads("c8")] : "ok")),
      layerReading
    ),
    function* () {
      const chat = yield* open()
      yield* talk(chat, 8)
      yield* chat.generateText({ prompt: "Read.", toolkit: Reading, disableToolCallResolution: true })
      const answer = Prompt.toolResultPart({
        id: "c8",
        name: "read",
        isFailure: false,
        result: "Body.",
        providerExecuted: false
      })
      yield* chat.compress()
      yield* chat.generateText({ prompt: Prompt.fromMessages([Prompt.toolMessage({ content: [answer] })]) })
      const sent = yield* latest
      assert.isDefined(snapshotOf(sent))
      assert.isUndefined(illegalPrompt(sent))
      assert.include(wordsOf(sent), "Body.")
      assert.notInclude(wordsOf(sent), noResult)
    }
  )
})

describe("streamText", () => {
  it.effect(
    "yields chunks, and stores them in the history and in the session",
    over((_, n) => (n === 14 ? "one\ntwo\nthree" : "ok")),
    function* () {
      const chat = yield* open()
      yield* talk(chat, 14)
      const parts = yield* Stream.runCollect(chat.streamText({ prompt: "Tell." }))
      assert.deepStrictEqual(
        parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : [])),
        ["one\n", "two\n", "three"]
      )
      assert.deepStrictEqual((yield* historyOf(chat)).at(-1), answers("one\ntwo\nthree"))
      assert.strictEqual(
        plainText(entries((yield* chat.session).conversation).at(-1)?.content ?? { role: "user", parts: [] }),
        "one\ntwo\nthree"
      )
    }
  )

  it.effect("interrupted between a call and its result leaves a valid next request", () =>
    Effect.gen(function* () {
      const chat = yield* open()
      const called = yield* Deferred.make<void>()
      const fiber = yield* chat.streamText({ prompt: "Read.", toolkit: Reading, disableToolCallResolution: true }).pipe(
        Stream.runForEach((part) => (part.type === "tool-call" ? Deferred.succeed(called, undefined) : Effect.void)),
        Effect.forkChild
      )
      yield* Deferred.await(called)
      yield* Effect.yieldNow.pipe(Effect.repeat({ times: 20 }))
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* Script.use((script) => script.interrupted), 1)
      // What came until then is in the history and in the session.
      assert.strictEqual((yield* historyOf(chat)).at(-1)?.role, "assistant")
      assert.strictEqual(entries((yield* chat.session).conversation).length, 2)
      yield* chat.generateText({ prompt: "Go on." })
      const sent = yield* latest
      assert.isUndefined(illegalPrompt(sent))
      assert.include(wordsOf(sent), noResult)
      assert.deepStrictEqual(yield* historyOf(chat), [...sent, answers("ok")])
      assert.strictEqual(entries((yield* chat.session).conversation).length, 5)
    }).pipe(
      Effect.provide([over((_, n) => (n === 0 ? [reads("c1"), ScriptedLanguageModel.hang] : "ok")), layerReading])
    )
  )

  it.effect(
    "locks the conversation until its end or interruption",
    over((_, n) => (n === 0 ? [{ type: "text", text: "half" }, ScriptedLanguageModel.hang] : "ok")),
    function* () {
      const chat = yield* open()
      const came = yield* Deferred.make<void>()
      const stream = yield* chat.streamText({ prompt: "Tell." }).pipe(
        Stream.runForEach((part) => (part.type === "text-delta" ? Deferred.succeed(came, undefined) : Effect.void)),
        Effect.forkChild
      )
      yield* Deferred.await(came)
      const waiting = yield* Effect.forkChild(chat.generateText({ prompt: "Me too." }), { startImmediately: true })
      const impatient = yield* Effect.forkChild(Stream.runDrain(chat.streamText({ prompt: "Me not." })), {
        startImmediately: true
      })
      yield* Effect.yieldNow.pipe(Effect.repeat({ times: 20 }))
      yield* Fiber.interrupt(impatient)
      assert.strictEqual((yield* requests).length, 1)
      yield* Fiber.interrupt(stream)
      assert.strictEqual((yield* Fiber.join(waiting)).text, "ok")
      assert.deepStrictEqual(yield* latest, [system, says("Tell."), answers("half"), says("Me too.")])
    }
  )
})

it.effect("concurrent calls take turns, including their compressions", over(), function* () {
  const real = yield* SessionStore
  const slow = Layer.succeed(SessionStore, {
    ...real,
    create: (started) =>
      Effect.map(real.create(started), (log) => ({
        ...log,
        append: (event) => Effect.andThen(Effect.yieldNow, log.append(event))
      }))
  })
  const chat = yield* open().pipe(Effect.provide(slow))
  yield* talk(chat, 14)
  const more = Array.from({ length: 6 }, (_, n) => question(14 + n))
  yield* Effect.forEach(more, (prompt) => chat.generateText({ prompt }), { concurrency: "unbounded" })
  const said = entries((yield* chat.session).conversation).map(({ content }) => plainText(content))
  assert.strictEqual(said.length, 40)
  assert.sameMembers(
    said.filter((_, at) => at % 2 === 0),
    Array.from({ length: 20 }, (_, n) => question(n))
  )
  assert.isTrue(said.every((text, at) => at % 2 === 0 || text === "ok"))
  assert.isDefined(snapshotOf(yield* historyOf(chat)))
})

// --- limits ---------------------------------------------------------------------------------------------------------------

it.effect("a message that does not fit is refused before sending, with the history unchanged", over(), function* () {
  const chat = yield* open()
  yield* talk(chat, 2)
  const before = yield* historyOf(chat)
  const prompt = "unbelievable words ".repeat(3_000)
  for (const call of [chat.generateText({ prompt }), Stream.runDrain(chat.streamText({ prompt }))]) {
    const error = yield* Effect.flip<unknown, AiError.AiError, LanguageModel.LanguageModel>(call)
    assert.strictEqual(error.reason._tag, "InvalidUserInputError")
    assert.match(error.message, /too long: up to \d+ tokens/)
  }
  assert.strictEqual((yield* requests).length, 2)
  assert.notInclude(wordsOf(yield* historyOf(chat)), "unbelievable")
  yield* talk(chat, 1, 2)
  assert.deepStrictEqual((yield* historyOf(chat)).slice(0, 1), before.slice(0, 1))
})

describe("a provider's rejection as too long", () => {
  const tooLong = failing(new AiError.InvalidRequestError({ description: "prompt is too long: 7000 tokens" }))
  const refusing: ScriptedLanguageModel.Answers = (request) =>
    wordsOf(request.prompt.content).length > 7_000 ? tooLong : "fits"

  for (const way of ["generateText", "streamText"] as const) {
    it.effect(`is retried once with less, and the message is stored once (${way})`, over(refusing), function* () {
      const chat = yield* open({ window: 6_000 })
      for (let n = 0; n < 14; n += 1) {
        const prompt = question(n)
        yield* way === "generateText" ? chat.generateText({ prompt }) : Stream.runDrain(chat.streamText({ prompt }))
      }
      const sent = yield* requests
      const refused = sent.findIndex((messages) => wordsOf(messages).length > 7_000)
      assert.isAbove(refused, 0)
      assert.isDefined(snapshotOf(sent[refused + 1] ?? []))
      assert.strictEqual(
        sent.slice(refused + 1).find((messages) => wordsOf(messages).length > 7_000),
        undefined
      )
      assert.deepStrictEqual(
        entries((yield* chat.session).conversation).map(({ content }) => plainText(content)),
        Array.from({ length: 14 }, (_, n) => [question(n), "fits"]).flat()
      )
    })
  }

  it.effect(
    "or any other failure leaves the history as effect/ai's chat does",
    over([failing(new AiError.RateLimitError({}))]),
    function* () {
      const chat = yield* open()
      const error = yield* Effect.flip(chat.generateText({ prompt: "Hello." }))
      assert.strictEqual(error.reason._tag, "RateLimitError")
      assert.deepStrictEqual(yield* historyOf(chat), [system])
    }
  )
})

// --- over everything ------------------------------------------------------------------------------------------------------

const Step = Schema.Struct({
  does: Schema.Literals(["asks", "asks", "reads", "reads", "streams", "breaks off", "compress", "undo", "redo", "cut"]),
  words: Schema.Literals([1, 20, 120])
})

/** Plays steps and says what is wrong with what reached the model, or with what the session holds. */
const played = Effect.fnUntraced(function* (steps: ReadonlyArray<typeof Step.Type>) {
  const chat = yield* CompressedChat.make({ session: "talk", window: 3_000, prompt: Prompt.fromMessages([system]) })
  const said: Array<string> = []
  for (const [n, { does, words }] of steps.entries()) {
    const prompt = `${n} ${"the build of src/parser is red ".repeat(words)}`
    const sends = does === "asks" || does === "reads" || does === "streams" || does === "breaks off"
    const known = (yield* requests).length
    const work: Effect.Effect<
      unknown,
      AiError.AiError,
      LanguageModel.LanguageModel | Tool.HandlersFor<typeof Reading.tools>
    > =
      does === "asks"
        ? chat.generateText({ prompt })
        : does === "reads"
          ? chat.generateText({ prompt: `read ${prompt}`, toolkit: Reading })
          : does === "streams"
            ? Stream.runDrain(chat.streamText({ prompt }))
            : does === "breaks off"
              ? Stream.runDrain(
                  Stream.take(
                    chat.streamText({ prompt: `read ${prompt}`, toolkit: Reading, disableToolCallResolution: true }),
                    1
                  )
                )
              : does === "compress"
                ? chat.compress()
                : does === "undo"
                  ? chat.undo
                  : does === "redo"
                    ? chat.redo
                    : Ref.update(chat.history, ({ content }) =>
                        Prompt.fromMessages(content.slice(0, Math.max(1, content.length - 1)))
                      )
    const exit = yield* Effect.exit(work)
    if (Exit.isFailure(exit)) {
      const error = Cause.squash(exit.cause)
      const isRefusal = AiError.isAiError(error) && error.reason._tag === "InvalidUserInputError"
      if (!isRefusal) return `step ${n}: ${String(error)}`
    }
    const sent = (yield* requests).slice(known)
    if (sends && sent.length > 0) said.push(prompt)
    for (const messages of sent) {
      const illegal = illegalPrompt(messages)
      if (illegal !== undefined) return `step ${n}: ${illegal}`
      if (boundOf(messages) > 2_250) return `step ${n}: ${boundOf(messages)} tokens`
      if (messages[0] !== system || messages.filter(({ role }) => role === "system").length !== 1) {
        return `step ${n}: the system prompt is gone`
      }
    }
  }
  const { conversation } = yield* chat.session
  const words = entries(conversation).map(({ content }) => plainText(content))
  const lost = said.find((prompt) => !words.some((each) => each.endsWith(prompt)))
  if (lost !== undefined) return `lost: ${lost}`
  const all = recallable(conversation)
  for (const { content, handles } of entries(conversation)) {
    const [handle] = handles
    if (handle !== undefined && recall(all, handle) === undefined)
      return `${wordsOf([])}${handle} of ${content.role} is gone`
  }
  return undefined
})

describe("any history", () => {
  it.effect.prop(
    "sends valid requests that fit, and loses nothing",
    [Schema.Array(Step).check(Schema.isMaxLength(16))],
    ([steps]) =>
      Effect.scoped(played(steps)).pipe(
        Effect.provide(
          Layer.fresh(
            Layer.merge(
              over(({ prompt }, index) => {
                const last = wordsOf(prompt.content.slice(-1))
                return last.includes('"read ') ? [reads(`c${index}`)] : `answer ${index}`
              }),
              layerReading
            )
          )
        ),
        Effect.flatMap((found) => (found === undefined ? Effect.succeed(true) : Effect.fail(found)))
      ),
    { arbitrary: thousand("chats", 400) }
  )

  it.effect("an interruption anywhere leaves history and session before or after the call", function* () {
    const layer = over()
    type Built = Layer.Success<typeof layer>
    let context: Context.Context<Built | Scope.Scope> | undefined
    let chat: CompressedChat["Service"] | undefined
    const options: Options = { session: "talk", window: 1_200, reserve: 200, policy: { minGain: 0 } }
    const points = yield* interruptSweep(
      () =>
        Effect.gen(function* () {
          chat = undefined
          context = yield* Layer.build(Layer.fresh(layer)).pipe(
            Effect.flatMap((built) => Effect.map(Effect.scope, (scope) => Context.add(built, Scope.Scope, scope)))
          )
          const prompt = Prompt.fromMessages([says(question(0)), answers("a"), says(question(1)), answers("b")])
          chat = yield* CompressedChat.make({ ...options, prompt }).pipe(Effect.provideContext(context))
          yield* chat.generateText({ prompt: question(2) }).pipe(Effect.provideContext(context))
        }),
      () =>
        Effect.gen(function* () {
          if (chat === undefined || context === undefined) return
          const mine = chat
          yield* Effect.gen(function* () {
            const history = yield* historyOf(mine)
            assert.include([2, 4, 6], history.filter((message) => snapshotOf([message]) === undefined).length)
            yield* mine.generateText({ prompt: "Go on." })
            assert.isUndefined(illegalPrompt(yield* latest))
            assert.isAtMost(boundOf(yield* latest), 1_000)
            const said = entries((yield* mine.session).conversation).map(({ content }) => plainText(content))
            assert.strictEqual(new Set(said.slice(0, 4)).size, 4)
            assert.deepStrictEqual(said.slice(-2), ["Go on.", "ok"])
            assert.include([6, 8], said.length)
          }).pipe(Effect.provideContext(context))
        })
    )
    assert.isAbove(points, 10)
  })
})

it.effect(
  "the layer provides effect/ai's Chat to programs that use only that",
  Layer.provideMerge(CompressedChat.layer(small), over()),
  function* () {
    const chat = yield* AiChat.Chat
    yield* talk(chat, 16)
    const history = yield* historyOf(chat)
    assert.isDefined(snapshotOf(history))
    const [handle = assert.fail("no handle")] = mentions(wordsOf(history))
    assert.include((yield* Recall.use((service) => service.recall(handle))).text, "Question ")
    assert.isTrue(yield* CompressedChat.use((service) => service.undo))
  }
)
