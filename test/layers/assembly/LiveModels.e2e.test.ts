import { ConfigProvider, Effect, Layer, Stream } from "effect"
import { text, user } from "../../../src/domain/content/Content.ts"
import * as LiveModels from "../../../src/layers/assembly/LiveModels.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import { Model } from "../../../src/services/model/Model.ts"
import * as ModelWindows from "../../../src/services/model/ModelWindows.ts"
import { anthropic, chat } from "../../support/ProviderDialects.ts"
import * as Server from "../../support/ProviderServer.ts"
import { assert, it } from "../../support/vitest.ts"

const built = (environment: Readonly<Record<string, string>>) =>
  Layer.build(
    LiveModels.layer.pipe(
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ GEMINI_API_KEY: "g", ...environment })))
    )
  )

it.live("routes each model to the provider in its name", function* () {
  const gemini = yield* Fake.make(() => Fake.json(Fake.response([{ text: "from Google" }])))
  const claude = yield* Server.make(() => anthropic.answer([{ text: "from Anthropic" }]))
  const gpt = yield* Server.make(() => chat.answer([{ text: "from OpenAI" }]))
  const context = yield* built({
    GOOGLE_GEMINI_BASE_URL: gemini.url,
    ANTHROPIC_API_KEY: "a",
    ANTHROPIC_BASE_URL: claude.url,
    OPENAI_BASE_URL: gpt.url
  })
  const ask = (model: string) =>
    Effect.map(
      Model.use((service) => service.generate({ model, contents: [user(text("q"))] })),
      ({ content }) => content.parts[0]?.text
    ).pipe(Effect.provide(context))
  assert.strictEqual(yield* ask("gemini-2.5-flash"), "from Google")
  assert.strictEqual(yield* ask("google/gemini-2.5-flash"), "from Google")
  assert.strictEqual(yield* ask("claude-sonnet-4-5"), "from Anthropic")
  assert.strictEqual(yield* ask("anthropic/claude-sonnet-4-5"), "from Anthropic")
  assert.strictEqual(yield* ask("openai/llama3.1"), "from OpenAI")
  assert.strictEqual(yield* ask("gpt-5.1"), "from OpenAI")
  // A gateway at Google's address may serve it.
  assert.strictEqual(yield* ask("google/gpt-5.1"), "from Google")
  assert.deepStrictEqual(
    claude.requests.map(({ body }) => body["model"]),
    ["claude-sonnet-4-5", "claude-sonnet-4-5"]
  )
  const streamed = yield* Model.use((service) =>
    Stream.runCollect(service.stream({ model: "openai/llama3.1", contents: [user(text("q"))] }))
  ).pipe(Effect.provide(context))
  assert.strictEqual(streamed.flatMap(({ parts }) => parts.map((part) => part.text)).join(""), "from OpenAI")
  // Whoever asks for it, such as a file of an agent: it goes to nobody.
  for (const name of ["foo/bar", "openai"]) {
    const refused = yield* Effect.flip(ask(name))
    assert.match(refused.message, /there is no provider foo|name a model of openai/)
    const stream = Stream.unwrap(
      Model.use((service) => Effect.succeed(service.stream({ model: name, contents: [user(text("q"))] })))
    )
    assert.strictEqual((yield* Effect.flip(Effect.provide(Stream.runDrain(stream), context))).message, refused.message)
    assert.strictEqual((yield* Effect.provide(ModelWindows.resolve(name), context)).source, "assumed")
  }
  const asked = (yield* gemini.requests).map(({ model }) => model)
  assert.deepStrictEqual(asked, ["gemini-2.5-flash", "gemini-2.5-flash", "gpt-5.1"])
})

it.live("a model in the table is known at its own provider, any other has the assumed window", function* () {
  const context = yield* built({})
  const availability = (name: string) => Effect.provide(ModelWindows.availability(name), context)
  assert.deepStrictEqual(yield* availability("anthropic/claude-sonnet-4-5"), { _tag: "Known" })
  assert.deepStrictEqual(yield* availability("ollama/qwen3:8b"), { _tag: "Unknown", window: 32_768 })
  assert.strictEqual((yield* Effect.provide(ModelWindows.resolve("openai/gpt-5"), context)).window, 272_000)
})

it.live("an invalid address fails its own provider's calls only", function* () {
  const context = yield* built({ OPENAI_BASE_URL: "nonsense" })
  const error = yield* Effect.flip(
    Model.use((service) => service.generate({ model: "openai/x", contents: [user(text("q"))] }))
  ).pipe(Effect.provide(context))
  assert.strictEqual(error.reason._tag, "InvalidRequestError")
})

it.live("names the key of a model's maker, and asks nobody else", function* () {
  const context = yield* built({ GEMINI_API_KEY: "" })
  const variable = (model: string) =>
    Effect.map(
      Effect.flip(Model.use((service) => service.generate({ model, contents: [user(text("q"))] }))),
      ({ reason }) => (reason._tag === "AuthenticationError" ? reason.variable : reason._tag)
    ).pipe(Effect.provide(context))
  assert.strictEqual(yield* variable("claude-opus-4-6"), "ANTHROPIC_API_KEY")
  assert.strictEqual(yield* variable("gpt-5"), "OPENAI_API_KEY")
  assert.strictEqual(yield* variable("gemini-2.5-flash"), "GEMINI_API_KEY")
})
