import { ConfigProvider, Effect, Layer, Logger, Stream } from "effect"
import { OwnStrategyName, type StrategyName } from "../../../src/domain/compression/strategies/Strategies.ts"
import { assumedWindow } from "../../../src/domain/model/ModelLimits.ts"
import { emptySession } from "../../../src/domain/session/Session.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as GoogleModel from "../../../src/layers/model/GoogleModel.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import type { ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import * as PromptWindow from "../../../src/services/effect-ai/PromptWindow.ts"
import {
  Model,
  type ModelDescription,
  ModelError,
  NetworkError,
  unavailableModel
} from "../../../src/services/model/Model.ts"
import * as ModelWindows from "../../../src/services/model/ModelWindows.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const offline = new ModelError({ reason: new NetworkError({ detail: "none" }) })

/** A provider that says this of every model. */
const saying = (said: Effect.Effect<ModelDescription | undefined, ModelError>) =>
  Layer.succeed(Model, { ...unavailableModel, describe: () => said })
const served = saying(Effect.succeed({ window: 65_536, output: 8_192 }))
const missing = saying(Effect.undefined)
const failing = saying(Effect.fail(offline))
/** One that cannot be asked. */
const mute = Layer.succeed(Model, unavailableModel)
/** One that must not be asked. */
const never = saying(Effect.die(new Error("nobody was to be asked")))

const window = (name: string, provider: Layer.Layer<Model>, own?: ModelWindows.WindowOverrides) =>
  Effect.map(ModelWindows.resolve(name, own), (found) => [found.source, found.window] as const).pipe(
    Effect.provide(provider)
  )
const standing = (name: string, provider: Layer.Layer<Model>, own?: ModelWindows.WindowOverrides) =>
  Effect.provide(ModelWindows.availability(name, own), provider)

describe("the window of a model", () => {
  it.effect("comes from the settings or the table, without a request", function* () {
    const own = { "gemini-x": { window: 1_000 }, "gemini-2.5-pro": { window: 2_000 }, "claude-opus-4-5": {} }
    assert.deepStrictEqual(yield* window("gemini-x", never, own), ["settings", 1_000])
    assert.deepStrictEqual(yield* window("gemini-2.5-pro", never, own), ["settings", 2_000])
    assert.deepStrictEqual(yield* window("claude-opus-4-5-20251101", never, own), ["table", 200_000])
    assert.deepStrictEqual(yield* window("toString", mute, own), ["assumed", assumedWindow])
    // One model answers, whichever is named.
    const fixed = Layer.succeed(Model, { ...unavailableModel, fixedModel: "gemini-2.5-pro" })
    assert.deepStrictEqual(yield* window("claude-opus-4-5", fixed, own), ["settings", 2_000])
    const set = window("gemini-x", never)
    assert.deepStrictEqual(yield* Effect.provideService(set, ModelWindows.Overrides, own), ["settings", 1_000])
  })

  it.effect("comes from the provider for an unknown model, else is small", function* () {
    assert.deepStrictEqual(yield* window("gemini-9-pro", served), ["provider", 65_536])
    assert.deepStrictEqual(yield* window("gemini-9-pro", missing), ["missing", assumedWindow])
    assert.deepStrictEqual(yield* window("gemini-9-pro", failing), ["assumed", assumedWindow])
    assert.deepStrictEqual(yield* window("gemini-9-pro", mute), ["assumed", assumedWindow])
  })
})

describe("whether a model exists", () => {
  it.effect("needs no request for configured models and Google's in the table", function* () {
    assert.deepStrictEqual(yield* standing("gemini-2.5-pro", never), { _tag: "Known" })
    assert.deepStrictEqual(yield* standing("models/gemma-4-31b-it", never), { _tag: "Known" })
    assert.deepStrictEqual(yield* standing("mine", never, { mine: { window: 9_000 } }), { _tag: "Known" })
  })

  it.effect("is answered by the provider otherwise, or unknown when it cannot be asked", function* () {
    assert.deepStrictEqual(yield* standing("gemini-9-pro", served), { _tag: "Known" })
    assert.deepStrictEqual(yield* standing("nope", missing), { _tag: "Missing", text: "there is no model nope" })
    assert.deepStrictEqual(yield* standing("gemini-2.5-prro", missing), {
      _tag: "Missing",
      text: "there is no model gemini-2.5-prro; did you mean gemini-2.5-pro?"
    })
    // In the table, and not Google's to serve.
    assert.strictEqual((yield* standing("claude-opus-4-5", missing))._tag, "Missing")
    assert.strictEqual((yield* standing("claude-opus-4-5", mute))._tag, "Known")
    assert.deepStrictEqual(yield* standing("nope", mute), { _tag: "Unknown", window: assumedWindow })
    assert.deepStrictEqual(yield* standing("nope", failing), { _tag: "Unknown", window: assumedWindow })
  })
})

describe("a chat", () => {
  const limitOf = (settings: ChatSettings) =>
    Effect.gen(function* () {
      const chat = yield* Chat.make({ log: { append: () => Effect.void }, session: emptySession, settings })
      return (yield* chat.usage).limit
    })

  const rows: ReadonlyArray<readonly [what: string, settings: ChatSettings, limit: number]> = [
    ["an unknown model has the small window", { model: "nope" }, assumedWindow],
    ["a window can be set for one model", { model: "nope", models: { nope: { window: 1_048_576 } } }, 1_048_576],
    ["or for all", { model: "nope", window: 1_048_576 }, 1_048_576],
    ["Gemini keeps nothing for the answer", { model: "gemini-2.5-flash" }, 1_048_576],
    ["Claude's answer shares the window", { model: "claude-sonnet-4-5" }, 200_000 - 16_384],
    [
      "and takes what the request asks for",
      { model: "claude-sonnet-4-5", generation: { maxOutputTokens: 64_000 } },
      136_000
    ],
    ["or what was set", { model: "claude-sonnet-4-5", reserve: 0 }, 200_000],
    ["GPT-5 has a limit of input of its own", { model: "gpt-5-codex" }, 272_000]
  ]
  it.effect.each(rows)("%s", Offline.layerWithModel(ScriptedModel.layer([])), function* ([, settings, limit]) {
    assert.strictEqual(yield* limitOf(settings), limit)
  })

  it.live("asks the API once about an unknown model, and never about a known one", function* () {
    const fake = yield* Fake.make(
      () => Fake.sse(Fake.response([{ text: "fine" }], { usage: { promptTokenCount: 5, totalTokenCount: 5 } })),
      { describe: (name) => Fake.description(name, 48_000, 8_192) }
    )
    const google = GoogleModel.layerConfig.pipe(
      Layer.provide(
        ConfigProvider.layer(ConfigProvider.fromUnknown({ GEMINI_API_KEY: "k", GOOGLE_GEMINI_BASE_URL: fake.url }))
      )
    )
    yield* Effect.gen(function* () {
      const chat = yield* Chat.make({
        log: { append: () => Effect.void },
        session: emptySession,
        settings: { model: "gemini-9-pro" }
      })
      for (const message of ["one", "two", "three"]) yield* Stream.runDrain(chat.send(message))
      assert.strictEqual((yield* chat.usage).limit, 48_000)
      assert.strictEqual(yield* limitOf({ model: "gemini-9-pro" }), 48_000)
      yield* chat.configure({ model: "gemini-2.5-pro" })
      assert.strictEqual((yield* chat.usage).limit, 1_048_576)
    }).pipe(Effect.provide(Offline.layerWithModel(google)))
    assert.deepStrictEqual(yield* fake.lookups, ["gemini-9-pro"])
  })
})

describe("a bounded language model", () => {
  const roomOf = Effect.fnUntraced(function* (options: PromptWindow.WindowOptions) {
    const lines: Array<string> = []
    const logged = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
    const { guard } = yield* Effect.provide(PromptWindow.make(options), Layer.merge(Offline.layer, logged))
    return { room: guard.maxRequestTokens, lines }
  })

  it.effect("assumes a small window for an unknown model, with a warning", function* () {
    const { lines, room } = yield* roomOf({ model: "nope" })
    assert.strictEqual(room, assumedWindow - assumedWindow / 4)
    assert.deepStrictEqual(lines, ["the window of nope is not known: 32768 tokens are assumed; set the option window"])
    assert.strictEqual((yield* roomOf({})).lines.length, 1)
  })

  it.effect(
    "compresses from the size at which its strategy does, unless a threshold is set",
    Offline.layer,
    function* () {
      const triggerOf = (strategy: StrategyName, threshold?: number) =>
        Effect.map(
          PromptWindow.make({ window: 40_000, policy: { strategy }, threshold }),
          ({ guard: { trigger } }) => trigger
        )
      const triggers = yield* Effect.forEach(["palimpsest", "gemini", "pi", "openclaw"] as const, (name) =>
        Effect.all([triggerOf(name), triggerOf(name, 0.25)])
      )
      assert.deepStrictEqual(triggers, [
        [20_000, 10_000],
        [20_000, 10_000],
        [30_001, 10_000],
        [30_000, 10_000]
      ])
      const failed = yield* Effect.flip(
        PromptWindow.make({ window: 40_000, policy: { strategy: OwnStrategyName.make("none") } })
      )
      assert.include(failed.message, "no strategy is called none")
    }
  )

  it.effect("takes window and reserve from the table, without a warning", function* () {
    assert.deepStrictEqual(yield* roomOf({ model: "claude-opus-4-5" }), { room: 200_000 - 16_384, lines: [] })
    assert.deepStrictEqual(yield* roomOf({ model: "gemini-2.5-pro" }), { room: 1_048_576, lines: [] })
    assert.deepStrictEqual(yield* roomOf({ window: 1_048_576 }), { room: 1_048_576 - 16_384, lines: [] })
  })
})
