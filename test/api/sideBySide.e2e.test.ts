import { Context, Effect, Layer, Stream } from "effect"
import { Chat, LanguageModel } from "effect/ai"
import { KeyValueStore } from "effect/persistence"
import type { SqlClient } from "effect/sql"
import { mkdtempSync } from "node:fs"
import path from "node:path"
import {
  AgentRuntime,
  Chats,
  Compress,
  Compression,
  Content,
  ContextWindow,
  Hooks,
  Palimpsest,
  Session
} from "../../src/index.ts"
import { Home, KeyValueSessionStore, LiveRuntime, SqliteClient, SqliteSessionStore } from "../../src/node.ts"
import { SqlSessionStore } from "../../src/sql.ts"
import { MemorySessionStore, Offline, ScriptedLanguageModel, ScriptedModel } from "../../src/testing.ts"
import { newFolder } from "../support/paths.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** Two layers of one kind in one program, merged and one within the other: each has its own options, and only parts that both were given are shared. */

const scratch = newFolder("side-")
const database = SqliteClient.layer(":memory:")
const botOf = (name: string) => ScriptedModel.layer(() => `I am the bot of ${name}`)

interface Told {
  readonly answer: string
  readonly sent: ReadonlyArray<string>
}

const answerOf = <E, R>(events: Stream.Stream<Chats.ChatEvent, E, R>) =>
  Effect.map(Stream.runCollect(events), (all) =>
    all.flatMap((event) => (event._tag === "Content" ? [event.text] : [])).join("")
  )

/** Asks in the conversation `case-1` of the services around. */
const ask = (question: string): Effect.Effect<Told, unknown, Chats.Chats> =>
  Effect.gen(function* () {
    const chat = yield* Chats.open("case-1")
    const answer = yield* answerOf(chat.send(question))
    return { answer, sent: (yield* chat.contents).map(Content.plainText) }
  }).pipe(Effect.scoped)

const askAgent = (question: string): Effect.Effect<Told, unknown, AgentRuntime.Runtime> =>
  AgentRuntime.Runtime.use(({ chat, send }) =>
    Effect.gen(function* () {
      const answer = yield* answerOf(send(question))
      const sent = (yield* chat.contents).map(Content.plainText).filter((text) => text === question || text === answer)
      return { answer, sent }
    })
  )

const places = (name: string) => {
  const folder = mkdtempSync(path.join(scratch, `${name}-`))
  return { folder, home: path.join(folder, ".home") }
}

/** Asks a layer for each of two names, made by one function. */
const kind = <A>(
  layer: (name: string) => Layer.Layer<A, unknown, SqlClient.SqlClient>,
  asks: (question: string) => Effect.Effect<Told, unknown, A>
): ((how: "merged" | "nested") => Effect.Effect<ReadonlyArray<Told>, unknown>) => {
  class Acme extends Context.Service<Acme, (question: string) => Effect.Effect<Told, unknown>>()("Acme") {}
  class Globex extends Context.Service<Globex, (question: string) => Effect.Effect<Told, unknown>>()("Globex") {}
  const over = <I>(key: Context.Key<I, (question: string) => Effect.Effect<Told, unknown>>, name: string) =>
    Layer.effect(
      key,
      Effect.map(Effect.context<A>(), (context) => (question: string) => Effect.provideContext(asks(question), context))
    ).pipe(Layer.provide(layer(name)))
  return (how) =>
    how === "merged"
      ? Effect.gen(function* () {
          return [yield* (yield* Acme)("My password is hunter2"), yield* (yield* Globex)("Hello")]
        }).pipe(Effect.provide(Layer.merge(over(Acme, "acme"), over(Globex, "globex"))), Effect.provide(database))
      : Effect.gen(function* () {
          const outer = yield* asks("My password is hunter2")
          return [outer, yield* asks("Hello").pipe(Effect.provide(layer("globex")))]
        }).pipe(Effect.provide(layer("acme")), Effect.provide(database))
}

const kinds = {
  "Palimpsest.layer": kind((name) => Palimpsest.layer({ model: botOf(name) }), ask),
  "Palimpsest.layer with a home": kind(
    (name) => Palimpsest.layer({ model: botOf(name), home: Home.layer(places(name).home) }),
    ask
  ),
  "Palimpsest.layer over SqlSessionStore, a tenant each": kind(
    (name) => Palimpsest.layer({ model: botOf(name), store: SqlSessionStore.layer({ tenant: name }) }),
    ask
  ),
  "Palimpsest.layer over SqliteSessionStore": kind(
    (name) => Palimpsest.layer({ model: botOf(name), store: SqliteSessionStore.layer(":memory:") }),
    ask
  ),
  "Palimpsest.layer over KeyValueSessionStore": kind(
    (name) =>
      Palimpsest.layer({
        model: botOf(name),
        store: KeyValueSessionStore.layer().pipe(
          Layer.provide(KeyValueStore.layerFileSystem(places(name).folder)),
          Layer.provide(LiveRuntime.layer({ model: botOf(name) }))
        )
      }),
    ask
  ),
  "Offline.layerWithModel": kind((name) => Offline.layerWithModel(botOf(name)), ask),
  "LiveRuntime.layer": kind(
    // A constant of the program's own is shared, as anywhere in Effect.
    (name) =>
      Layer.fresh(Chats.Chats.layer).pipe(Layer.provide(LiveRuntime.layer({ model: botOf(name), ...places(name) }))),
    ask
  ),
  "AgentRuntime.layer": kind(
    (name) => AgentRuntime.layer().pipe(Layer.provide(LiveRuntime.layer({ model: botOf(name), ...places(name) }))),
    askAgent
  )
} as const

describe("two in one program", () => {
  for (const [name, run] of Object.entries(kinds)) {
    for (const how of ["merged", "nested"] as const) {
      it.live(`have their own options: ${name}, ${how}`, function* () {
        const bot = (of: string) => `I am the bot of ${of}`
        assert.deepStrictEqual(yield* run(how), [
          { answer: bot("acme"), sent: ["My password is hunter2", bot("acme")] },
          { answer: bot("globex"), sent: ["Hello", bot("globex")] }
        ])
      })
    }
  }

  it.effect("have their own summarizers, also one constant over two models", function* () {
    const messages = Array.from({ length: 60 }, (_, n) => ({
      role: n % 2 === 0 ? "user" : "assistant",
      content: `m${n} ${"word ".repeat(100)}`
    }))
    const goal = (name: string) => `<state_snapshot><overall_goal>written by ${name}</overall_goal></state_snapshot>`
    const written = Effect.map(Compress.openAi(messages, { limit: 4_000, summarizer: "model" }), ({ outcome }) =>
      outcome._tag === "Compressed" ? /written by \w+/.exec(outcome.snapshot)?.[0] : outcome._tag
    )
    const makers = [
      (name: string) =>
        Palimpsest.layer({ summarizer: Compression.Summarizer.layer(() => Effect.succeed(goal(name))) }),
      (name: string) =>
        Palimpsest.layer({ model: ScriptedModel.layer(() => goal(name)), summarizer: Compression.layerModelSummarizer })
    ]
    for (const made of makers) {
      const both = Effect.gen(function* () {
        return [yield* written, yield* Effect.provide(written, made("two"))]
      })
      assert.deepStrictEqual(yield* Effect.provide(both, made("one")), ["written by one", "written by two"])
    }
  })

  it.effect("share a part that both were given, and one layer that is used twice is one", function* () {
    const shared = Palimpsest.layer({ store: MemorySessionStore.layer })
    const other = Palimpsest.layer({ store: MemorySessionStore.layer })
    const begin = Effect.scoped(
      Effect.flatMap(Chats.open("kept"), (chat) => chat.append([{ content: Content.user(Content.text("a")) }]))
    )
    const ids = Session.SessionStore.use(({ list }) => list)
    class One extends Context.Service<One, ReadonlyArray<string>>()("One") {}
    const seen = <E, R>(layer: Layer.Layer<Session.SessionStore, E, R>) =>
      Layer.effect(One, ids).pipe(Layer.provide(layer))
    const after = Layer.effectDiscard(begin).pipe(Layer.provide(shared))
    for (const layer of [shared, other]) {
      const all = yield* One.pipe(Effect.provide(seen(layer).pipe(Layer.provideMerge(after))))
      assert.deepStrictEqual(all, ["kept"])
    }
    // Without a store in common, there is nothing to see.
    const none = yield* One.pipe(Effect.provide(seen(Palimpsest.layer()).pipe(Layer.provideMerge(after))))
    assert.deepStrictEqual(none, [])
  })

  it.effect("have their own hooks", function* () {
    const fired: Array<string> = []
    const heard = (name: string) =>
      Hooks.HookSystem.use((hooks) => hooks.subscribe(name, () => Effect.asVoid(Effect.sync(() => fired.push(name)))))
    const run = Effect.gen(function* () {
      yield* heard("outer")
      yield* heard("inner").pipe(
        Effect.andThen(Hooks.HookSystem.use((hooks) => hooks.fire({ _tag: "BeforeAgent", prompt: "x" }))),
        Effect.provide(Palimpsest.layer())
      )
    })
    yield* run.pipe(Effect.scoped, Effect.provide(Palimpsest.layer()))
    assert.deepStrictEqual(fired, ["inner"])
  })

  it.effect("recall from their own store: ContextWindow.layer", function* () {
    const provider = ScriptedLanguageModel.layer((request) =>
      JSON.stringify(request.prompt.content.at(-1)).includes("recall please")
        ? [{ type: "tool-call", id: "r1", name: "recall", params: { grep: "password" } }]
        : `Noted. ${"I keep it in mind for you. ".repeat(60)}`
    )
    type Bot = (what: string) => Effect.Effect<string, unknown>
    class Acme extends Context.Service<Acme, Bot>()("Acme") {}
    class Globex extends Context.Service<Globex, Bot>()("Globex") {}
    const bot = <I>(key: Context.Key<I, Bot>, name: string) =>
      Layer.effect(
        key,
        Effect.gen(function* () {
          const context = yield* Effect.context<ContextWindow.Services>()
          const chat = yield* Chat.empty
          return (what: string) =>
            Effect.gen(function* () {
              for (let n = 0; n < 12; n += 1) yield* chat.generateText({ prompt: `${what} ${n}` })
              const { toolResults } = yield* chat.generateText({
                prompt: "recall please",
                toolkit: ContextWindow.recallToolkit
              })
              return JSON.stringify(toolResults.map(({ result }) => result))
            }).pipe(ContextWindow.withConversation("customer-1"), Effect.provideContext(context))
        })
      ).pipe(
        Layer.provide(ContextWindow.layer({ window: 4_000, store: SqlSessionStore.layer({ tenant: name }) })),
        Layer.provide(provider)
      )
    const both = Effect.gen(function* () {
      const acme = yield* (yield* Acme)("The password of acme is hunter2")
      return { acme, globex: yield* (yield* Globex)("The password of globex is swordfish") }
    })
    const App = Layer.merge(bot(Acme, "acme"), bot(Globex, "globex")).pipe(Layer.provide(database))
    const { acme, globex } = yield* Effect.provide(both, App)
    assert.include(acme, "hunter2")
    assert.include(globex, "swordfish")
    assert.notInclude(globex, "hunter2")
  })

  it.effect("have their own windows: ContextWindow.layer", function* () {
    class Large extends Context.Service<Large, LanguageModel.LanguageModel>()("Large") {}
    class Small extends Context.Service<Small, LanguageModel.LanguageModel>()("Small") {}
    const sizes: Record<string, number> = {}
    const bounded = <I>(key: Context.Key<I, LanguageModel.LanguageModel>, name: string, window: number) =>
      Layer.effect(key, LanguageModel.LanguageModel).pipe(
        Layer.provide(ContextWindow.layer({ window })),
        Layer.provide(
          ScriptedLanguageModel.layer(({ prompt }) => {
            sizes[name] = JSON.stringify(prompt.content).length
            return "ok"
          })
        )
      )
    const prompt = Array.from({ length: 60 }, (_, n) => ({
      role: n % 2 === 0 ? ("user" as const) : ("assistant" as const),
      content: [{ type: "text" as const, text: `m${n} ${"word ".repeat(100)}` }]
    })).concat({ role: "user", content: [{ type: "text", text: "Go on." }] })
    yield* Effect.gen(function* () {
      yield* (yield* Large).generateText({ prompt })
      yield* (yield* Small).generateText({ prompt })
    }).pipe(Effect.provide(Layer.merge(bounded(Large, "large", 200_000), bounded(Small, "small", 4_000))))
    assert.isAbove(sizes["large"] ?? 0, 30_000)
    assert.isBelow(sizes["small"] ?? Infinity, 20_000)
  })
})
