import { Context, Deferred, Effect, Exit, Layer, Logger, Ref, Scope, Stream } from "effect"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { InvalidOption } from "../../../src/domain/compression/InvalidOption.ts"
import { defaultPolicy } from "../../../src/domain/compression/strategies/Policy.ts"
import { OwnStrategyName } from "../../../src/domain/compression/strategies/Strategies.ts"
import { call, isResponse, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { entries, entryId, view } from "../../../src/domain/conversation/Conversation.ts"
import {
  applyEvent,
  emptySession,
  logVersion,
  type SessionEvent,
  startedWith
} from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { InvalidAnswer, StoppedByHook } from "../../../src/services/chat/AskModel.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import { Chats } from "../../../src/services/chat/Chats.ts"
import { ChatDefaults, type ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import type { ChatOptions } from "../../../src/services/chat/ChatState.ts"
import { ChatBusy } from "../../../src/services/chat/Commit.ts"
import { ContextOverflow } from "../../../src/services/chat/FitRequest.ts"
import { failureEvent, NothingToAsk, type TurnError } from "../../../src/services/chat/Turn.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { InvalidRequestError, ModelError } from "../../../src/services/model/Model.ts"
import { sessionError, SessionNotFound, SessionStore } from "../../../src/services/session/SessionStore.ts"
import { described } from "../../support/generate.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { strideOf } from "../../support/runs.ts"
import { taken } from "../../support/sending.ts"
import { assert, describe, it, layer } from "../../support/vitest.ts"

const words = "a story of a river and a bridge, told at length. ".repeat(60)
const offline = Offline.layerWithModel(
  ScriptedModel.layer(({ contents }) => {
    const last =
      contents
        .at(-1)
        ?.parts.map((part) => part.text ?? "")
        .join("") ?? ""
    if (last.includes("fail")) return new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })
    return last === "" ? { content: model(text("from the result")), finishReason: "STOP", usage: null } : words
  })
)

const settings = { model: "gemini-2.5-flash", window: 4_000, policy: { summarizer: "extractive" as const } }
const handle = Handle.make("h_aaaaaaaaaa")
const nowhere = { append: () => Effect.void }
const begun = (options: Partial<ChatOptions> = {}) =>
  Chat.make({ log: nowhere, session: emptySession, settings, ...options })
const sent = (chat: Chat["Service"], message: Parameters<Chat["Service"]["send"]>[0]) =>
  Effect.exit(Stream.runCollect(chat.send(message)))
const failureOf = <A, E>(exit: Exit.Exit<A, E>): E | undefined =>
  Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error : undefined
const contentsOf = (chat: Chat["Service"]) =>
  Effect.map(chat.conversation, (conversation) => entries(conversation).map(({ content }) => content))

layer(offline)("a turn", (it) => {
  it.effect("without a message and an open question is refused; nothing is sent", function* () {
    const chat = yield* begun()
    assert.strictEqual(failureOf(yield* sent(chat, ""))?._tag, "NothingToAsk")
    yield* sent(chat, "hello")
    const { calls } = yield* ScriptedModel.Script
    const before = (yield* calls).length
    assert.strictEqual(failureOf(yield* sent(chat, "  \n"))?._tag, "NothingToAsk")
    assert.strictEqual((yield* calls).length, before)
    assert.strictEqual((yield* contentsOf(chat)).length, 2)
  })

  it.effect("that fails keeps its tool results, and nothing attached to them", function* () {
    const chat = yield* begun()
    yield* chat.append([{ content: user(text("look")) }, { content: model(call("read", {}, "c1")) }])
    const exit = yield* sent(chat, [response("read", { output: "x" }, "c1"), text("and fail")])
    assert.strictEqual(failureOf(exit)?._tag, "ModelError")
    const kept = yield* contentsOf(chat)
    assert.strictEqual(kept.length, 3)
    assert.isTrue(kept[2]?.parts.every(isResponse))
    yield* sent(chat, "and tell me")
    const { calls } = yield* ScriptedModel.Script
    const last = (yield* calls).at(-1)?.request.contents ?? []
    assert.isFalse(JSON.stringify(last).includes("and fail"))
  })

  it.effect("cancelled during the commit of its compression reports the compression", function* () {
    const cancel = yield* Deferred.make<void>()
    const committed = yield* Ref.make(0)
    const append = (event: SessionEvent) =>
      event._tag === "Compressed"
        ? Effect.all([Ref.update(committed, (n) => n + 1), Deferred.succeed(cancel, undefined), Effect.yieldNow])
        : Effect.void
    const chat = yield* begun({ log: { append: (event) => Effect.asVoid(append(event)) } })
    let tags: ReadonlyArray<string> = []
    for (let n = 0; n < 12 && (yield* Ref.get(committed)) === 0; n += 1) {
      const events = yield* Stream.runCollect(chat.send(`chapter ${n}`, { cancel: Deferred.await(cancel) }))
      tags = events.map(({ _tag }) => _tag)
    }
    assert.deepStrictEqual(tags, ["ModelInfo", "ChatCompressed", "UserCancelled"])
    assert.isTrue(view(yield* chat.conversation).some(({ entry }) => entry.author === "summary"))
  })

  for (const [rule, begins, asked, isUnavailable] of [
    [
      "of another agent's session asks its own model where that has a key",
      { model: "claude-sonnet-4-5", importedFrom: { format: "claude" } },
      "claude-sonnet-4-5",
      () => false
    ],
    [
      "of a session whose model has no key any more asks the default",
      { model: "gpt-5.1" },
      "gemini-2.5-flash",
      (name: string) => name === "gpt-5.1"
    ],
    ["of a session that was begun here asks its own model", { model: "my-model" }, "my-model"],
    [
      "of another agent's session asks a model that can be asked here",
      { model: "claude-sonnet-4-5", importedFrom: { format: "claude" } },
      "gemini-2.5-flash"
    ],
    [
      "of a session of Gemini CLI goes on with its model",
      { model: "gemini-2.5-pro", importedFrom: { format: "gemini" } },
      "gemini-2.5-pro"
    ]
  ] as const) {
    it.effect(rule, function* () {
      const started = {
        _tag: "Started",
        version: logVersion,
        session: "s",
        at: 0,
        estimator: "test",
        ...begins
      } as const
      const chat = yield* begun({ session: applyEvent(emptySession, started) })
      if (isUnavailable !== undefined) yield* chat.configure({ isUnavailable })
      yield* sent(chat, "hello")
      const { calls } = yield* ScriptedModel.Script
      assert.strictEqual((yield* calls).at(-1)?.request.model, asked)
    })
  }

  it.effect("of a user who chooses the model that a router had chosen is logged as a choice", function* () {
    const events: Array<SessionEvent> = []
    const chat = yield* begun({ log: { append: (event) => Effect.sync(() => void events.push(event)) } })
    yield* chat.configure({ routed: "gemini-2.5-pro" })
    yield* chat.configure({ model: "gemini-2.5-pro" })
    assert.deepInclude(events.at(-1), { _tag: "ModelSwitched", model: "gemini-2.5-pro" })
  })

  it.effect("blank text cannot be pinned", function* () {
    const chat = yield* begun()
    yield* sent(chat, "keep this")
    assert.isUndefined(yield* chat.pin(" "))
    assert.strictEqual((yield* chat.pin("this"))?.start, 5)
  })

  it.effect("pinned text from nowhere becomes a pinned message of the user", function* () {
    const chat = yield* begun()
    yield* sent(chat, "keep this")
    const before = (yield* chat.conversation).next
    const found = yield* chat.pin("always use tabs")
    const all = entries(yield* chat.conversation)
    assert.strictEqual(all.at(-1)?.id, found?.entry)
    assert.deepStrictEqual(all.at(-1)?.content, user(text("always use tabs")))
    // No author: the user wrote it.
    assert.isUndefined(all.at(-1)?.author)
    assert.deepStrictEqual([found?.start, found?.end], [0, "always use tabs".length])
    // The same words once more are a span of that message.
    assert.deepStrictEqual(yield* chat.pin("use tabs"), { entry: all.at(-1)?.id, part: 0, start: 7, end: 15 })
    assert.strictEqual((yield* chat.conversation).next, before + 1)
    yield* sent(chat, "go on")
    const { calls } = yield* ScriptedModel.Script
    const asked = (yield* calls).at(-1)?.request.contents ?? []
    assert.include(JSON.stringify(asked), "always use tabs")
  })
})

const overflow = {
  what: "message",
  estimated: TokenCount.make(30),
  remaining: TokenCount.make(10),
  limit: TokenCount.make(20),
  stubborn: [],
  text: "words"
} as const
it.each<readonly [error: TurnError, event: object]>([
  [new InvalidAnswer({ fault: "NO_FINISH_REASON", detail: "x" }), { _tag: "InvalidStream", fault: "NO_FINISH_REASON" }],
  [new StoppedByHook({ reason: "no" }), { _tag: "HookStopped", refused: true }],
  [new ContextOverflow(overflow), { _tag: "ContextWindowWillOverflow", ...overflow }],
  [
    new ModelError({ reason: new InvalidRequestError({ detail: "no" }) }),
    { _tag: "Error", reason: "InvalidRequestError" }
  ],
  [sessionError(new SessionNotFound({ id: "s" })), { _tag: "Error", reason: "SessionNotFound" }],
  [new NothingToAsk({}), { _tag: "Error", reason: "NothingToAsk" }],
  [new ChatBusy({ doing: "a turn" }), { _tag: "Error", reason: "ChatBusy" }]
])("the last event of a turn that failed says why: %s", (error, event) =>
  assert.deepStrictEqual(failureEvent(error), { ...event, message: error.message } as ChatEvent)
)

describe("a change interrupted anywhere is in the log and in the conversation, or in neither", () => {
  const talk = Array.from({ length: 12 }, (_, n) => [
    { content: user(text(`chapter ${n}`)) },
    { content: model(text(words)) }
  ]).flat()
  const changes: Readonly<Record<string, (chat: Chat["Service"]) => Effect.Effect<unknown, unknown>>> = {
    append: (chat) => chat.append([{ content: user(text("one")) }, { content: user(text("two")) }]),
    compress: (chat) => chat.compress(),
    undo: (chat) => chat.undo,
    redo: (chat) => Effect.andThen(chat.undo, chat.redo),
    pin: (chat) => chat.pin("always use tabs"),
    branch: (chat) => chat.branch({ to: entryId(1) }),
    label: (chat) => chat.label(entryId(1), "the beginning"),
    "change its model": (chat) => chat.configure({ model: "gemini-2.5-pro" }),
    send: (chat) => Effect.exit(Stream.runDrain(chat.send("and then?")))
  }

  /** Compressions and turns have many points. */
  const long: ReadonlySet<string> = new Set(["compress", "send"])

  it.effect.each(Object.entries(changes))("%s", offline, function* ([name, change]) {
    const session = yield* Effect.gen(function* () {
      const chat = yield* begun()
      yield* chat.append(talk)
      yield* chat.compress()
      return yield* chat.session
    })
    let events: Array<SessionEvent> = []
    let chat: Chat["Service"] | undefined
    // A log takes time before and after it has a line.
    const append = (event: SessionEvent) =>
      Effect.andThen(
        Effect.yieldNow,
        Effect.andThen(
          Effect.sync(() => events.push(event)),
          Effect.yieldNow
        )
      )
    const points = yield* interruptSweep(
      () =>
        Effect.gen(function* () {
          events = []
          chat = yield* Effect.uninterruptible(
            begun({ session, log: { append: (event) => Effect.asVoid(append(event)) } })
          )
          yield* change(chat)
        }),
      () =>
        Effect.gen(function* () {
          if (chat === undefined) return
          assert.strictEqual(described(yield* chat.session), described(events.reduce(applyEvent, session)))
          const before = events.length
          // The words and their pin.
          if (name === "pin") assert.include([0, 2], before)
          yield* chat.append([{ content: user(text("free to go on")) }])
          assert.strictEqual(events.length, before + 1)
        }),
      long.has(name) ? strideOf(31) : 1
    )
    assert.isAbove(points, 5)
    assert.isNotEmpty(events)
  })
})

describe("a turn interrupted anywhere leaves a complete conversation", () => {
  it.effect("loading omitted entries is done, or still to do", offline, function* () {
    const full = yield* Effect.gen(function* () {
      const chat = yield* begun()
      yield* sent(chat, "one")
      return yield* chat.session
    })
    let chat: Chat["Service"] | undefined
    const read = Effect.andThen(Effect.yieldNow, Effect.succeed(full))
    const points = yield* interruptSweep(
      () =>
        Effect.gen(function* () {
          const log = { ...nowhere, whole: read }
          chat = yield* Effect.uninterruptible(begun({ log, complete: false }))
          return yield* chat.whole
        }),
      () =>
        Effect.gen(function* () {
          if (chat !== undefined) assert.strictEqual(yield* chat.whole, full)
        }),
      1
    )
    assert.isAbove(points, 5)
  })

  it.effect("changing model and window is atomic", offline, function* () {
    let chat: Chat["Service"] | undefined
    let changed = 0
    const points = yield* interruptSweep(
      () =>
        Effect.gen(function* () {
          chat = yield* Effect.uninterruptible(begun())
          return yield* chat.configure({ model: "gemini-2.5-pro", window: 9_000 })
        }),
      () =>
        Effect.gen(function* () {
          if (chat === undefined) return
          const now = yield* chat.settings
          assert.strictEqual(now.model === "gemini-2.5-pro", now.window === 9_000)
          if (now.window === 9_000) changed += 1
        }),
      1
    )
    assert.isAbove(points, 5)
    assert.isAbove(changed, 0)
  })
})

const failure = sessionError(new SessionNotFound({ id: "s" }))
it.effect.each([
  [Effect.fail(failure), "SessionStoreError"],
  [Effect.die(new Error("a bug")), "died"]
] as const)("a part of a session that cannot be read ends with %$", offline, function* ([whole, ends]) {
  const chat = yield* begun({ log: { ...nowhere, whole }, complete: false })
  const reads: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
    chat.recall(handle),
    chat.search({ pattern: "x", maxTokens: 9, isRedacted: true }),
    chat.compress(),
    chat.plan()
  ]
  for (const read of reads) {
    const exit = yield* Effect.exit(read)
    assert.strictEqual(Exit.hasDies(exit) ? "died" : Object(failureOf(exit))._tag, ends)
  }
})

describe("Chats", () => {
  it.effect("needs nothing where it is used", function* () {
    const chats = Context.get(yield* Layer.build(Layer.fresh(offline)), Chats)
    const chat = yield* chats.open("elsewhere")
    yield* sent(chat, "hello")
    assert.lengthOf(yield* contentsOf(chat), 2)
  })

  it.effect("says what was removed of a session that ends in an incomplete line", Layer.fresh(offline), function* () {
    const store = yield* SessionStore
    yield* Effect.scoped(Effect.andThen(Chats, (chats) => Effect.andThen(chats.open("whole"), chats.open("cut"))))
    const open = (id: string) => Effect.map(store.open(id), (opened) => ({ ...opened, torn: id === "cut" ? 7 : 0 }))
    const warnings: Array<string> = []
    const logged = Logger.layer([Logger.make(({ message }) => void warnings.push(String(message)))])
    const layer = Layer.provide(Chats.layer, Layer.succeed(SessionStore, { ...store, open }))
    yield* Effect.flatMap(Layer.build(layer), (built) =>
      Effect.forEach(["whole", "cut", "new"], (id) => Context.get(built, Chats).open(id))
    ).pipe(Effect.provide(logged))
    assert.match(warnings.join(), /^session cut ends [^,]*, .* its last 7 bytes [^\n]*$/)
    assert.lengthOf(warnings, 1)
  })

  it.effect("can open a session after a failed attempt, in the same scope too", Layer.fresh(offline), function* () {
    const chats = yield* Chats
    const store = yield* SessionStore
    yield* Effect.scoped(chats.open("taken"))
    const holder = yield* Scope.make()
    yield* Scope.provide(store.open("taken"), holder)
    const refused = yield* Effect.exit(chats.open("taken"))
    assert.isTrue(Exit.isFailure(refused))
    yield* Scope.close(holder, Exit.void)
    const chat = yield* chats.open("taken")
    assert.strictEqual((yield* chat.contents).length, 0)
  })
})

const strategy = OwnStrategyName.make("nobody's")
it.effect.each<[Partial<ChatSettings>, string]>([
  [{ window: -1 }, "window is -1; expected a number of tokens, 1 or more"],
  [{ window: NaN }, "window is NaN; expected a number of tokens, 1 or more"],
  [{ threshold: 7 }, "threshold is 7; expected a fraction from 0 to 1"],
  [{ reserve: -1 }, "reserve is -1; expected a number of tokens, 0 or more"],
  [{ prepareAt: NaN }, "prepareAt is NaN; expected a fraction from 0 to 1"],
  [{ overflowFactor: -1 }, "overflowFactor is -1; expected a number, 0 or more"],
  [{ models: { m: { window: 0 } } }, "models.m.window is 0; expected a number of tokens, 1 or more"],
  [{ models: { m: { threshold: 2 } } }, "models.m.threshold is 2; expected a fraction from 0 to 1"],
  [{ policy: { preserve: -1 } }, "preserve is -1; expected a fraction from 0 to 1"],
  [{ policy: { strategy } }, "no strategy is called nobody's; expected palimpsest or gemini or pi or openclaw"]
])("a setting that no conversation can have is refused: %j", ([wrong, message]) =>
  Effect.gen(function* () {
    const chat = yield* begun()
    const chats = Context.get(yield* Layer.build(Layer.fresh(offline)), Chats)
    const { policy } = wrong
    const refused = [
      chats.open("a"),
      chat.configure(wrong),
      ...(policy === undefined
        ? []
        : [chat.compress, chat.plan].map((use) => use({ policy: { ...defaultPolicy, ...policy } })))
    ]
    for (const each of refused) {
      assert.deepStrictEqual(
        failureOf(yield* Effect.exit<unknown, unknown, Scope.Scope>(each)),
        new InvalidOption({ message })
      )
    }
  }).pipe(Effect.provideService(ChatDefaults, { ...settings, ...wrong }), Effect.provide(offline))
)

it.effect("a message may take no more than all of the free window, whatever share is set", offline, function* () {
  const chat = yield* begun()
  yield* chat.configure({ overflowFactor: 2 })
  assert.strictEqual((yield* chat.settings).overflowFactor, 2)
})

describe("an answer with a call", () => {
  const answering = (...parts: ReadonlyArray<Part>) =>
    Effect.gen(function* () {
      const chat = yield* begun({ settings: { ...settings, window: 2_000 } })
      return (yield* taken(chat.send("go on"))).events.map(({ _tag }) => _tag)
    }).pipe(
      Effect.provide(
        Offline.layerWithModel(
          ScriptedModel.layer([{ content: model(...parts), finishReason: "STOP", usage: null }, "never asked"])
        )
      )
    )
  const long = "a long story ".repeat(600)

  it.effect("may say more than the window holds beside it, as a compression shortens what is said", function* () {
    assert.strictEqual((yield* answering(text(long), call("f", {}))).at(-1), "Finished")
  })

  it.effect("is refused where its calls alone are more than the window holds", function* () {
    assert.strictEqual((yield* answering(text("It is so."), call("f", { long }))).at(-1), "Error")
  })
})

describe("the hooks of a session", () => {
  it.effect("run in the folder in which it began, and in the one that is set for it now", offline, function* () {
    const folders = new Set<string | undefined>()
    const { subscribe } = yield* HookSystem
    yield* subscribe("watch", (_, { cwd }) => Effect.sync(() => void folders.add(cwd)))
    const session = applyEvent(emptySession, startedWith({ model: settings.model, cwd: "/began" }, "s1", 0))
    for (const cwd of [undefined, "/now"]) {
      const chat = yield* begun({ session, settings: { ...settings, ...(cwd === undefined ? {} : { cwd }) } })
      yield* taken(chat.send("hello"))
    }
    assert.deepStrictEqual([...folders], ["/began", "/now"])
  })
})
