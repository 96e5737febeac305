import * as everyEffect from "effect"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Schema, Scope, Stream } from "effect"
import * as everyAi from "effect/ai"
import { Chat, type LanguageModel, Model, Prompt, Telemetry, Tool, Toolkit } from "effect/ai"
import path from "node:path"
import * as entry from "../../src/index.ts"
import {
  Chats,
  Compression,
  Content,
  ContextWindow,
  Models,
  Palimpsest,
  Records,
  Session,
  Tokens,
  Tools
} from "../../src/index.ts"
import * as Home from "../../src/layers/assembly/Home.ts"
import * as AnthropicModel from "../../src/layers/model/AnthropicModel.ts"
import * as OpenAiModel from "../../src/layers/model/OpenAiModel.ts"
import * as PostgresSessionStore from "../../src/layers/session/PostgresSessionStore.ts"
import * as ScriptedLanguageModel from "../../src/layers/testing/ScriptedLanguageModel.ts"
import * as ScriptedModel from "../../src/layers/testing/ScriptedModel.ts"
import { newFolder } from "../support/paths.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** The entry of the package, beside `effect/ai` in one file. */

/** Whether a type is `never`. */
type IsNever<T> = [T] extends [never] ? true : false
const isTrue = <T extends true>(value: T): T => value

const opened = Chats.Chats.use((chats) => chats.open("one"))

it("the entry has no name of effect or effect/ai", () => {
  const taken = new Set([...Object.keys(everyEffect), ...Object.keys(everyAi)])
  assert.deepStrictEqual(
    Object.keys(entry).filter((name) => taken.has(name)),
    []
  )
  // Imported beside each other.
  const theirs = [Chat, Model, Prompt, Telemetry, Tool, Toolkit]
  const ours = [Chats, Models, Content, Records, Tools, Session]
  assert.isFalse(ours.some((one) => theirs.some((other) => Object.is(one, other))))
})

describe("Palimpsest.layer", () => {
  it.effect("needs nothing, and keeps a conversation", function* () {
    const layer = Palimpsest.layer()
    isTrue<IsNever<Layer.Error<typeof layer>>>(true)
    isTrue<IsNever<Layer.Services<typeof layer>>>(true)
    const entries = yield* Effect.flatMap(opened, (chat) =>
      chat.append([{ content: Content.user(Content.text("a")) }])
    ).pipe(Effect.scoped, Effect.provide(layer))
    assert.strictEqual(entries[0]?.id, "e1")
  })

  it.effect("takes a model, a counter, a summarizer and settings", function* () {
    let summaries = 0
    const layer = Palimpsest.layer({
      model: ScriptedModel.layer(() => "a".repeat(400)),
      counter: Layer.succeed(Tokens.TokenCounter, { count: (parts) => Effect.succeed(parts.map(() => 1_000)) }),
      summarizer: Layer.succeed(Compression.Summarizer, {
        summarize: () =>
          Effect.sync(() => {
            summaries += 1
            return { text: "- all is well" }
          })
      }),
      chat: { model: "scripted", window: 8_000, reserve: 500 }
    })
    isTrue<IsNever<Layer.Services<typeof layer>>>(true)
    const tokens = yield* Effect.gen(function* () {
      const chat = yield* opened
      for (let n = 0; n < 12; n += 1) {
        const say = n % 2 === 0 ? Content.user : Content.model
        yield* chat.append([{ content: say(Content.text(`message ${n}`)) }])
      }
      const { _tag } = yield* chat.compress({ forced: true })
      assert.strictEqual(_tag, "Compressed")
      return (yield* chat.settings).window
    }).pipe(Effect.scoped, Effect.provide(layer))
    assert.strictEqual(tokens, 8_000)
    assert.strictEqual(summaries, 1)
  })

  it.effect("opens a chat by any text, each its own", Palimpsest.layer(), function* () {
    const keys = ["one", "tenant/42", "tenant 42", "", "日本", "x".repeat(500), "../../etc"]
    for (const key of keys) {
      yield* Effect.scoped(
        Effect.flatMap(Chats.open(key), (chat) => chat.append([{ content: Content.user(Content.text(`of ${key}`)) }]))
      )
    }
    for (const key of keys) {
      const contents = yield* Effect.scoped(Effect.flatMap(Chats.open(key), (chat) => chat.contents))
      assert.deepStrictEqual(contents.map(Content.plainText), [`of ${key}`])
    }
    const ids = yield* Session.SessionStore.use(({ list }) => list)
    assert.lengthOf(ids, keys.length)
    assert.include(ids, "one")
  })

  it.effect("asks the model of a chat for its snapshots, also one of no known maker", function* () {
    const layer = Palimpsest.layer({
      model: ScriptedModel.layer(() => "a".repeat(400)),
      chat: { model: "own:8b", window: 8_000, policy: { summarizer: "model" } }
    })
    yield* Effect.gen(function* () {
      const chat = yield* opened
      for (let n = 0; n < 12; n += 1) {
        const say = n % 2 === 0 ? Content.user : Content.model
        yield* chat.append([{ content: say(Content.text(`message ${n} ${"about it ".repeat(20)}`)) }])
      }
      yield* chat.compress({ forced: true })
      const calls = yield* Effect.flatMap(ScriptedModel.Script, (all) => all.calls)
      assert.isNotEmpty(calls)
      for (const { request } of calls) assert.strictEqual(request.model, "own:8b")
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  const impossible: ReadonlyArray<readonly [change: object, told: string]> = [
    [{ window: -1 }, "window is -1; expected a number of tokens, 1 or more"],
    [{ window: "8000" }, 'window is "8000"; expected a number of tokens, 1 or more'],
    [{ window: null }, "window is null; expected a number of tokens, 1 or more"],
    [{ threshold: 7 }, "threshold is 7; expected a fraction from 0 to 1"],
    [{ overflowFactor: Number.NaN }, "overflowFactor is NaN; expected a number, 0 or more"],
    [{ model: "" }, 'model is ""; expected the name of a model'],
    [{ cwd: 5 }, "cwd is 5; expected a text"],
    [{ systemInstruction: {} }, "systemInstruction is of the type object; expected a text"],
    [{ refreshEnvironment: () => "now" }, "refreshEnvironment is of the type function; expected an effect"],
    [{ tools: {} }, "tools is of the type object; expected a list of declarations"],
    [{ generation: { temperature: "hot" } }, 'generation.temperature is "hot"; expected a number'],
    [
      { generation: { maxOutputTokens: -1 } },
      "generation.maxOutputTokens is -1; expected a number of tokens, 0 or more"
    ],
    [{ toolOutput: { most: Number.NaN } }, "toolOutput.most is NaN; expected a number, 0 or more"],
    [{ masking: true }, "masking is true; expected an object"],
    [{ masking: { least: -1 } }, "masking.least is -1; expected a number, 0 or more"],
    [{ unmaskedTools: "grep" }, 'unmaskedTools is "grep"; expected a list of names'],
    [{ models: { own: { window: 0 } } }, "models.own.window is 0; expected a number of tokens, 1 or more"],
    [{ models: { own: null } }, "models.own is null; expected an object"],
    [
      { retries: { call: { attempts: Number.NaN } } },
      "retries is of the type object; expected attempts, 1 or more, and delays, 0 or more, of `call` and of `answer`"
    ],
    [{ policy: 5 }, "policy is 5; expected an object"],
    [{ policy: { preserve: 4 } }, "preserve is 4; expected a fraction from 0 to 1"],
    [{ policy: { strategy: "none" } }, "no strategy is called none; expected palimpsest or gemini or pi or openclaw"]
  ]
  it.effect("refuses settings of a chat that none can have", Palimpsest.layer(), function* () {
    const chat = yield* opened
    const { model, session } = { ...(yield* chat.settings), session: yield* chat.session }
    for (const [change, told] of impossible) {
      const settings = { model, ...change }
      const log = { append: () => Effect.void }
      const runs: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        chat.configure(change),
        Effect.provide(Effect.scoped(Chats.Chat.make({ log, session, settings })), Palimpsest.layer()),
        Effect.scoped(Effect.provide(opened, Palimpsest.layer({ chat: change })))
      ]
      for (const run of runs) assert.strictEqual(String(yield* Effect.flip(run)), `InvalidOption: ${told}`)
    }
    assert.include(String(yield* Effect.flip(chat.configure(null as never))), "settings is null; expected an object")
    assert.include(String(yield* Effect.flip(Chats.open(5 as never))), "the key is 5; expected a text")
  })

  it.effect("refuses parts that are no layers, and a home at the root of the disk", function* () {
    for (const [options, told] of [
      [{ model: {} }, "a part is of the type object; expected a layer"],
      [{ store: 5 }, "a part is 5; expected a layer"],
      [{ home: Home.layer("") }, 'the home is ""; expected the path of a folder'],
      [{ home: Home.layer(undefined as never) }, "the home is undefined; expected the path of a folder"]
    ] as const) {
      const exit = yield* Effect.exit(Effect.scoped(Effect.provide(opened, Palimpsest.layer(options as {}))))
      assert.include(String(exit._tag === "Failure" ? Cause.squash(exit.cause) : exit), told)
    }
  })

  it.effect("fails each call of a model whose options cannot be, and opens no pool without connections", function* () {
    for (const [model, told] of [
      [OpenAiModel.layer({ baseUrl: "localhost:11434" }), 'baseUrl is "localhost:11434"'],
      [OpenAiModel.layer({ baseUrl: "" }), 'baseUrl is ""'],
      [AnthropicModel.layer({ baseUrl: "ftp://a" }), 'baseUrl is "ftp://a"'],
      [AnthropicModel.layer({ apiKey: 5 as never }), "apiKey is not what it has to be"]
    ] as const) {
      const asked = Models.Model.use(({ generate }) => generate({ model: "m", contents: [] }))
      const { reason } = yield* Effect.flip(Effect.provide(asked, model))
      assert.strictEqual(reason._tag, "InvalidRequestError")
      assert.include(reason.message, told)
    }
    for (const maxConnections of [0, -1, Number.NaN]) {
      const store = PostgresSessionStore.layer("postgres://me@127.0.0.1:1/db", { maxConnections })
      const error = yield* Effect.flip(Effect.scoped(Effect.provide(opened, Palimpsest.layer({ store }))))
      assert.include(error.message, `maxConnections is ${maxConnections}; expected a number, 1 or more`)
    }
  })

  it.effect.each(["chat", "layer"])("ends the turn of a chat whose scope closes: that of the %s", function* (which) {
    const scopes = { chat: yield* Scope.make(), layer: yield* Scope.make() }
    const asked = yield* Deferred.make<void>()
    const layer = Palimpsest.layer({ model: ScriptedModel.layer([ScriptedModel.hang]) })
    const services = yield* Layer.buildWithScope(layer, scopes.layer)
    const chat = yield* Scope.provide(Effect.provideContext(opened, services), scopes.chat)
    const turn = yield* chat.send("Hello").pipe(
      Stream.runForEach(() => Deferred.succeed(asked, undefined)),
      Effect.flip,
      Effect.forkChild
    )
    yield* Deferred.await(asked)
    yield* Scope.close(scopes[which === "chat" ? "chat" : "layer"], Exit.void)
    assert.strictEqual((yield* Fiber.join(turn)).message, "session one was closed; open it again")
    assert.deepStrictEqual(yield* chat.contents, [])
    yield* Scope.close(scopes.chat, Exit.void)
  })

  it.effect("states the errors and the needs of its parts", () =>
    Effect.sync(() => {
      class Down extends Schema.TaggedError<Down>()("Down", {}) {}
      const failing = Layer.effect(Models.Model, Effect.fail(new Down({})))
      const layer = Palimpsest.layer({ model: failing, summarizer: Compression.layerModelSummarizer })
      const typed: Layer.Layer<Palimpsest.Services, Down> = layer
      assert.strictEqual(typed, layer)
      const needing = Palimpsest.layer({ model: Models.layerFromLanguageModel({}) })
      const needed: LanguageModel.LanguageModel extends Layer.Services<typeof needing> ? true : false = true
      assert.isTrue(needed)
    })
  )

  it.effect("gives chats the name and the window of a layer's one model", function* () {
    const limitOf = (chat?: Partial<Chats.ChatSettings>) =>
      Effect.gen(function* () {
        const { settings, usage } = yield* opened
        return { limit: (yield* usage).limit, model: (yield* settings).model }
      }).pipe(
        Effect.scoped,
        Effect.provide(
          Palimpsest.layer({ model: OpenAiModel.layer({ baseUrl: "http://127.0.0.1:1", model: "own:8b" }), chat })
        )
      )
    assert.deepStrictEqual(yield* limitOf(), { limit: Tokens.assumedWindow, model: "own:8b" })
    // The window is that of the model that answers, not of the one that a chat names.
    const other = { limit: Tokens.assumedWindow, model: "gemini-2.5-pro" }
    assert.deepStrictEqual(yield* limitOf({ model: "gemini-2.5-pro" }), other)
    assert.strictEqual((yield* limitOf({ window: 8_000 })).limit, 8_000)
  })

  it.effect("keeps sessions in a home, also for the next process", function* () {
    const home = path.join(newFolder("home-"), "new")
    const run = <A, E>(effect: Effect.Effect<A, E, Palimpsest.Services>) =>
      effect.pipe(Effect.provide(Palimpsest.layer({ home: Home.layer(home) })))
    yield* run(
      Effect.scoped(Effect.flatMap(opened, (chat) => chat.append([{ content: Content.user(Content.text("kept")) }])))
    )
    const ids = yield* run(Session.SessionStore.use(({ list }) => list))
    assert.deepStrictEqual(ids, ["one"])
  })
})

const page = (turn: number) => `turn ${turn}: ${"the build of src/parser is red, see line 17. ".repeat(20)}`

describe("ContextWindow.layer", () => {
  it.effect("bounds a language model in one line, and recalls in its tool", function* () {
    const layer = ContextWindow.layer({ window: 4_000 })
    isTrue<IsNever<Layer.Error<typeof layer>>>(true)
    const largest = yield* Effect.gen(function* () {
      const chat = yield* Chat.fromPrompt([])
      for (let turn = 0; turn < 30; turn += 1) {
        yield* chat.generateText({ prompt: page(turn), toolkit: ContextWindow.recallToolkit })
      }
      const all = yield* (yield* ScriptedLanguageModel.Script).requests
      assert.isTrue(all.some(({ prompt }) => Content.mentions(JSON.stringify(prompt.content)).length > 0))
      return Math.max(...all.map(({ prompt }) => Tokens.estimateText(JSON.stringify(prompt.content))))
    }).pipe(
      ContextWindow.withConversation("tenant/42"),
      Effect.provide(layer.pipe(Layer.provideMerge(ScriptedLanguageModel.layer(() => "ok"))))
    )
    assert.isBelow(largest, 6_000)
  })

  it.effect("has the language model write the snapshots on request", function* () {
    let snapshots = 0
    const inner = ScriptedLanguageModel.layer(({ prompt }) => {
      if (!JSON.stringify(prompt.content).includes("state_snapshot>")) return "ok"
      snapshots += 1
      return "<state_snapshot><key_knowledge>- it is red</key_knowledge></state_snapshot>"
    })
    yield* Effect.gen(function* () {
      const chat = yield* Chat.fromPrompt([])
      for (let turn = 0; turn < 12; turn += 1) yield* chat.generateText({ prompt: page(turn) })
    }).pipe(Effect.provide(ContextWindow.layer({ window: 4_000, snapshots: "model" }).pipe(Layer.provide(inner))))
    assert.isAbove(snapshots, 0)
  })
})
