import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Deferred, Duration, Effect, Fiber, FileSystem, Layer, Queue, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { execFile } from "node:child_process"
import { execPath } from "node:process"
import { pathToFileURL } from "node:url"
import { inspect } from "node:util"
import { gzipSync } from "node:zlib"
import { Part, user } from "../../../src/domain/content/Content.ts"
import { nativeContent } from "../../../src/domain/wire/ModelState.ts"
import * as GoogleModel from "../../../src/layers/model/GoogleModel.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import {
  Model,
  ModelAnswer,
  ModelError,
  type ModelErrorReason,
  type ModelRequest
} from "../../../src/services/model/Model.ts"
import { listening } from "../../support/loopback.ts"
import { root } from "../../support/paths.ts"
import { assert, describe, it, vi } from "../../support/vitest.ts"

const key = "AIza-the-key-nobody-may-see"
const variable = "GEMINI_API_KEY"
const question: ModelRequest = { model: "gemini-2.5-flash", contents: [user({ text: "hello" })] }
const hello = Fake.response([{ text: "Hello" }])

type Environment = Readonly<Record<string, string>>

const provided = (environment: Environment, timeouts: Partial<GoogleModel.Timeouts> = {}) =>
  GoogleModel.layerConfigWith(timeouts).pipe(
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ GEMINI_API_KEY: key, ...environment })))
  )

/** The model that talks to a server with this script. */
const against = Effect.fnUntraced(function* (script: Fake.Script, timeouts: Partial<GoogleModel.Timeouts> = {}) {
  const fake = yield* Fake.make(script)
  const context = yield* Layer.build(provided({ GOOGLE_GEMINI_BASE_URL: fake.url }, timeouts))
  return { fake, model: yield* Effect.provide(Model, context) }
})

const always =
  (answer: Fake.Answer): Fake.Script =>
  () =>
    answer

/** The three ways to ask, each as one effect. */
const ways = (model: Model["Service"]) => ({
  generate: Effect.asVoid(model.generate(question)),
  countTokens: Effect.asVoid(model.countTokens(question)),
  stream: Stream.runDrain(model.stream(question))
})
type Way = keyof ReturnType<typeof ways>
const everyWay: ReadonlyArray<Way> = ["generate", "countTokens", "stream"]

const order = (fake: Fake.FakeGemini) =>
  Effect.map(fake.sightings, (sightings) => sightings.map(({ _tag, index }) => `${_tag} ${index}`))

/** The reason of the one failure a call ends with, and that it made one request. */
const reasonOf = Effect.fnUntraced(function* (script: Fake.Script, way: Way) {
  const { fake, model } = yield* against(script)
  const error = yield* Effect.flip(ways(model)[way])
  assert.instanceOf(error, ModelError)
  assert.lengthOf(yield* fake.requests, 1)
  return error.reason
})

const plain = (reason: ModelErrorReason): object => {
  const shown = "retryAfter" in reason && reason.retryAfter !== undefined ? Duration.toSeconds(reason.retryAfter) : null
  const { _tag, ...rest } = reason
  return { _tag, ...rest, ...(shown === null ? {} : { retryAfter: shown }) }
}

describe("responses", () => {
  it.live("missing counts are null, not zero", function* () {
    const { usageMetadata: _, ...bare } = hello
    const { model } = yield* against(always(Fake.json(bare)))
    assert.isNull((yield* model.generate(question)).usage)
  })

  it.live("countTokens returns the count of the contents", function* () {
    const { fake, model } = yield* against(always(Fake.tokens(42)))
    assert.strictEqual(yield* model.countTokens({ ...question, systemInstruction: "be brief", tools: [{}] }), 42)
    assert.deepStrictEqual((yield* fake.requests)[0]?.body, { contents: question.contents })
  })

  it.live("stream yields every chunk, also those without candidates", function* () {
    const { model } = yield* against(
      always(
        Fake.sse(
          { candidates: [{ content: { parts: [{ text: "a" }] } }] },
          { usageMetadata: { promptTokenCount: 3 } },
          { candidates: [{ content: { role: "model" }, finishReason: "STOP" }] }
        )
      )
    )
    assert.deepStrictEqual(yield* Stream.runCollect(model.stream(question)), [
      { parts: [{ text: "a" }] },
      { parts: [], usage: { prompt: 3, answer: 0, thoughts: 0, cached: 0 } },
      { parts: [], finishReason: "STOP" }
    ])
  })

  it.live("unknown keys of parts survive, in both directions", function* () {
    const parts = [
      { text: "x", thoughtSignature: "c2ln", cacheHint: { ttl: 1 } },
      { functionCall: { name: "f", args: { a: null }, id: "1", later: true }, thoughtSignature: "c2ln" },
      { hologram: { depth: 3 } }
    ]
    const response = Fake.response(parts)
    const { fake, model } = yield* against(Fake.queue(Fake.json(response), Fake.sse(response)))
    const contents = [{ role: "model" as const, parts, era: "late" }]
    const answer = yield* model.generate({ ...question, contents })
    const chunks = yield* Stream.runCollect(model.stream({ ...question, contents }))
    assert.deepStrictEqual(nativeContent(answer.content).parts, parts)
    assert.deepStrictEqual(nativeContent({ role: "model", parts: chunks[0]?.parts ?? [] }).parts, parts)
    for (const { body } of yield* fake.requests) assert.deepStrictEqual(body, { contents, generationConfig: {} })
  })

  it.live("the whole request has the API's form", function* () {
    const { fake, model } = yield* against(always(Fake.json(hello)))
    const tools = [{ functionDeclarations: [{ name: "f", parametersJsonSchema: { type: "object" } }], newKind: {} }]
    yield* model.generate({
      ...question,
      systemInstruction: "be brief",
      tools,
      mustCall: true,
      generation: { temperature: 0, topP: 0.5, maxOutputTokens: 9, thinkingBudget: -1 }
    })
    const [request] = yield* fake.requests
    assert.deepStrictEqual(request?.body, {
      contents: question.contents,
      systemInstruction: { parts: [{ text: "be brief" }] },
      tools,
      toolConfig: { functionCallingConfig: { mode: "ANY" } },
      generationConfig: { temperature: 0, topP: 0.5, maxOutputTokens: 9, thinkingConfig: { thinkingBudget: -1 } }
    })
    assert.strictEqual(request?.path, "/v1beta/models/gemini-2.5-flash:generateContent")
  })
})

describe("failures", () => {
  const failures: ReadonlyArray<readonly [name: string, answer: Fake.Answer, expected: object]> = [
    ["400 for a key that is none", Fake.keyInvalid, { _tag: "AuthenticationError", kind: "InvalidKey", variable }],
    [
      "429 with a date",
      Fake.json(Fake.failureBody(429, "slow down"), 429, {
        date: "Wed, 21 Oct 2015 07:28:00 GMT",
        "retry-after": "Wed, 21 Oct 2015 07:29:00 GMT"
      }),
      { _tag: "RateLimitError", retryAfter: 60 }
    ],
    [
      "429 with a Retry-After that is neither",
      Fake.failure(429, "", { retryAfter: "soon" }),
      { _tag: "RateLimitError" }
    ]
  ]
  for (const [name, answer, expected] of failures) {
    for (const way of ["generate", "stream"] as const) {
      it.live(`${name} (${way})`, function* () {
        assert.deepStrictEqual(plain(yield* reasonOf(always(answer), way)), expected)
      })
    }
  }

  it.live("redirections are not followed: the key goes to no other server", function* () {
    const elsewhere = yield* Fake.make(always(Fake.json(hello)))
    const location = `${elsewhere.url}/v1beta/models/x:generateContent`
    const reason = yield* reasonOf(always(Fake.json({}, 307, { location })), "generate")
    assert.deepStrictEqual(plain(reason), { _tag: "InvalidResponseError", detail: "a redirection (307)" })
    assert.deepStrictEqual(yield* elsewhere.requests, [])
  })

  const refused: ReadonlyArray<readonly [name: string, response: unknown, finishReason: string]> = [
    ["SAFETY", { candidates: [{ finishReason: "SAFETY" }] }, "SAFETY"],
    ["RECITATION", Fake.response([{ text: "once upon" }], { finishReason: "RECITATION" }), "RECITATION"]
  ]
  it.live.each(refused)("%s", function* ([, response, finishReason]) {
    const expected = { _tag: "ContentPolicyError", finishReason }
    assert.deepStrictEqual(plain(yield* reasonOf(always(Fake.json(response)), "generate")), expected)
    assert.deepStrictEqual(plain(yield* reasonOf(always(Fake.sse(response)), "stream")), expected)
  })

  const broken: ReadonlyArray<readonly [name: string, way: Way, answer: Fake.Answer]> = [
    ["no candidates", "generate", Fake.json({ usageMetadata: { promptTokenCount: 1 } })],
    ["parts that are none", "generate", Fake.json({ candidates: [{ content: { parts: [{ text: 1 }] } }] })],
    ["an invalid count", "countTokens", Fake.json({ totalTokens: "many" })],
    ["no count", "countTokens", Fake.json({})],
    ["a clean close in the middle of a piece", "stream", [...Fake.sse(hello), Fake.write("data: {")]],
    ["a page instead of a stream", "stream", [Fake.head(200), Fake.write("<h1>hi</h1>\n\n")]]
  ]
  it.live.each(broken)("%s is an InvalidResponseError (%s)", function* ([, way, answer]) {
    assert.strictEqual((yield* reasonOf(always(answer), way))._tag, "InvalidResponseError")
  })

  it.live("a refused connection, an unknown host and missing TLS are NetworkErrors that name the host", function* () {
    const gone = yield* Effect.scoped(Effect.map(Fake.make(always([])), ({ url }) => url))
    const noTls = (yield* Fake.make(always([]))).url.replace("http:", "https:")
    for (const [url, detail] of [
      [gone, /^ECONNREFUSED, 127\.0\.0\.1:\d+$/],
      ["http://nowhere.invalid", /^(ENOTFOUND|EAI_AGAIN), nowhere\.invalid$/],
      [noTls, /SSL|EPROTO/]
    ] as const) {
      const error = yield* Model.use((model) => ways(model).countTokens).pipe(
        Effect.provide(provided({ GOOGLE_GEMINI_BASE_URL: url })),
        Effect.flip
      )
      assert.instanceOf(error, ModelError)
      assert.strictEqual(error.reason._tag, "NetworkError")
      assert.match("detail" in error.reason ? error.reason.detail : "", detail)
    }
  })

  it.live("a model name that the SDK refuses is an InvalidRequestError", function* () {
    const { fake, model } = yield* against(always([]))
    const error = yield* Effect.flip(model.generate({ ...question, model: "../up" }))
    assert.strictEqual(error.reason._tag, "InvalidRequestError")
    assert.deepStrictEqual(yield* fake.requests, [])
  })
})

describe("endless responses", () => {
  const block = "x".repeat(1_048_576)
  const endless = (begin: string, head: Fake.Step): Fake.Answer => [
    head,
    Fake.write(begin),
    ...Array.from({ length: 33 }, () => Fake.write(block)),
    Fake.stall
  ]
  const jsonHead = Fake.head(200, { "content-type": "application/json" })
  it.live("a count is cut off at 32 MiB, and the socket closed", function* () {
    const { fake, model } = yield* against(always(endless('{"totalTokens":1,"x":"', jsonHead)))
    const { reason } = yield* Effect.flip(model.countTokens(question))
    assert.deepStrictEqual(plain(reason), { _tag: "AnswerTooLargeError", unit: "bytes", limit: 33_554_432 })
    assert.match(reason.message, /^the model's answer was ended and thrown away: it has more than 32 MiB; try again/)
    assert.isFalse(yield* fake.closed(0))
  })

  it.live.each(["countTokens", "stream"] as const)(
    "an error body is cut off at 1 MiB, and its status reported (%s)",
    function* (way) {
      const head = Fake.head(400, { "content-type": "application/json" })
      const { fake, model } = yield* against(always(endless('{"error":{"message":"', head)))
      const { reason } = yield* Effect.flip(ways(model)[way])
      const detail = "HTTP 400, and its body cannot be read"
      assert.deepStrictEqual(plain(reason), { _tag: "InvalidRequestError", detail })
      assert.isFalse(yield* fake.closed(0))
    }
  )

  it.live("compressed bytes count at their unpacked size", function* () {
    const url = yield* listening((_, outgoing) => {
      outgoing.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" })
      outgoing.end(gzipSync(Buffer.alloc(64 * 1024 * 1024, "x")))
    })
    const context = yield* Layer.build(provided({ GOOGLE_GEMINI_BASE_URL: url }))
    const model = yield* Effect.provide(Model, context)
    const error = yield* Effect.flip(Stream.runDrain(model.stream(question)))
    assert.deepStrictEqual(plain(error.reason), { _tag: "AnswerTooLargeError", unit: "bytes", limit: 33_554_432 })
  })

  it.live("chunks and parts are limited, without counting empty ones", function* () {
    const idle = Fake.write(": still there\n\n".repeat(300_000))
    const pieces = Fake.write("data: {}\n\n".repeat(128_001))
    const { model } = yield* against(
      Fake.queue(
        [Fake.streamHead, idle, Fake.event(hello)],
        [Fake.streamHead, pieces],
        Fake.sse(Fake.response(Array.from({ length: 128_001 }, () => ({ text: "" }))))
      )
    )
    assert.lengthOf(yield* Stream.runCollect(model.stream(question)), 1)
    for (const _ of [1, 2]) {
      const { reason } = yield* Effect.flip(Stream.runDrain(model.stream(question)))
      assert.deepStrictEqual(plain(reason), { _tag: "AnswerTooLargeError", unit: "parts", limit: 128_000 })
    }
  })
})

describe("interruption", () => {
  const stalls: ReadonlyArray<readonly [name: string, steps: Fake.Answer]> = [
    ["before the head", []],
    ["in the body of an error", [Fake.head(503, { "content-type": "application/json" }), Fake.write("{")]]
  ]
  for (const [name, steps] of stalls) {
    for (const way of ["countTokens", "stream"] as const) {
      it.live(`trap: ${way} stalled ${name} closes the socket, and nothing follows`, function* () {
        const reached = yield* Deferred.make<void>()
        const { fake, model } = yield* against(({ index }) =>
          index === 0
            ? [...steps, Fake.wait(Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))]
            : Fake.failure(404, "")
        )
        const fiber = yield* Effect.forkChild(ways(model)[way], { startImmediately: true })
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        assert.isFalse(yield* fake.closed(0))
        // A retry would come before the next request, or beside it.
        yield* Effect.ignore(ways(model)[way])
        yield* fake.closed(1)
        assert.deepStrictEqual(yield* order(fake), ["Received 0", "Closed 0", "Received 1", "Closed 1"])
      })
    }
  }

  it.live("a stream can be run again, each time with its own request", function* () {
    const { fake, model } = yield* against(always(Fake.sse(hello)))
    const stream = model.stream(question)
    assert.lengthOf(yield* fake.requests, 0)
    assert.deepStrictEqual(yield* Stream.runCollect(stream), yield* Stream.runCollect(stream))
    assert.lengthOf(yield* fake.requests, 2)
  })
})

describe("traps of the SDK", () => {
  const continued = Fake.response([{ text: "a" }], { finishReason: "CONTINUATION", continuationToken: "t" })
  const checkpoint = Fake.response([{ text: "a" }], { finishReason: null, continuationToken: "t" })

  it.live("automatic continuation: one call is one request", function* () {
    const { fake, model } = yield* against(
      Fake.queue(Fake.json(continued), Fake.sse(continued), Fake.json(checkpoint), Fake.sse(checkpoint))
    )
    assert.strictEqual((yield* model.generate(question)).finishReason, "CONTINUATION")
    const chunks = yield* Stream.runCollect(model.stream(question))
    assert.deepStrictEqual(
      chunks.map(({ finishReason }) => finishReason),
      ["CONTINUATION"]
    )
    yield* Effect.flip(model.generate(question))
    yield* Effect.flip(Stream.runDrain(model.stream(question)))
    assert.lengthOf(yield* fake.requests, 4)
  })

  it.live("its timeout is not used, nor announced to the server", function* () {
    const { fake, model } = yield* against(always(Fake.json(hello)))
    yield* model.generate(question)
    assert.notProperty((yield* fake.requests)[0]?.headers, "x-server-timeout")
  })

  /** Lets what a socket delivered be worked on, whatever clock the test has. */
  const turns = Effect.promise(async () => {
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  })

  it.effect.each(everyWay)("our timeout is a TimeoutError, and closes the socket (%s)", function* (way) {
    const timeouts = { generate: "50 millis", chunk: "50 millis", countTokens: "50 millis" } as const
    const { fake, model } = yield* against(always([Fake.stall]), timeouts)
    const asking = yield* Effect.forkChild(Effect.flip(ways(model)[way]))
    yield* fake.received(0)
    yield* TestClock.adjust("50 millis")
    const { reason } = yield* Fiber.join(asking)
    assert.deepStrictEqual(plain(reason), { _tag: "TimeoutError", seconds: 0.05 })
    assert.isFalse(yield* fake.closed(0))
    assert.lengthOf(yield* fake.requests, 1)
  })

  it.effect("a stream that stalls after a chunk times out after yielding it", function* () {
    const { fake, model } = yield* against(always([...Fake.sse(checkpoint), Fake.stall]), { chunk: "200 millis" })
    const taken = yield* Queue.unbounded<unknown>()
    const asking = yield* model.stream(question).pipe(
      Stream.runForEach((chunk) => Queue.offer(taken, chunk)),
      Effect.flip,
      Effect.forkChild
    )
    yield* Queue.take(taken)
    yield* turns
    yield* TestClock.adjust("200 millis")
    const { reason } = yield* Fiber.join(asking)
    assert.strictEqual(reason._tag, "TimeoutError")
    assert.strictEqual(yield* Queue.size(taken), 0)
    assert.isFalse(yield* fake.closed(0))
  })

  it.effect("each chunk has the whole timeout, and the consumer's own time does not count", function* () {
    const gates = yield* Effect.all([Deferred.make<void>(), Deferred.make<void>(), Deferred.make<void>()])
    const [one, two, three] = gates.map((gate) => Fake.wait(Deferred.await(gate)))
    const piece = Fake.event(checkpoint)
    const script = [...Fake.sse(), piece, one, piece, two, piece, three, Fake.event(hello)]
    const { model } = yield* against(always(script.flatMap((step) => step ?? [])), { chunk: "400 millis" })
    const taken = yield* Queue.unbounded<unknown>()
    const asking = yield* model.stream(question).pipe(
      Stream.tap((chunk) => Queue.offer(taken, chunk)),
      Stream.tap(({ finishReason }) => (finishReason === "STOP" ? Effect.sleep("450 millis") : Effect.void)),
      Stream.runCollect,
      Effect.forkChild
    )
    for (const gate of gates) {
      yield* Queue.take(taken)
      yield* turns
      yield* TestClock.adjust("399 millis")
      yield* Deferred.succeed(gate, undefined)
    }
    yield* Queue.take(taken)
    yield* turns
    yield* TestClock.adjust("450 millis")
    assert.lengthOf(yield* Fiber.join(asking), 4)
  })

  it.live("its environment variables: only Config is read, and nothing is printed", () =>
    Effect.gen(function* () {
      const printed = (["warn", "debug", "log", "error"] as const).map((name) => vi.spyOn(console, name))
      vi.stubEnv("GOOGLE_API_KEY", "from the environment")
      vi.stubEnv("GEMINI_API_KEY", "from the environment as well")
      vi.stubEnv("GOOGLE_GENAI_USE_VERTEXAI", "true")
      vi.stubEnv("GOOGLE_CLOUD_PROJECT", "project")
      vi.stubEnv("GOOGLE_GEMINI_BASE_URL", "http://nowhere.invalid")
      const fake = yield* Fake.make(always(Fake.json(hello)), { key })
      yield* Model.use((model) => model.generate(question)).pipe(
        Effect.provide(provided({ GOOGLE_GEMINI_BASE_URL: `${fake.url}/`, GOOGLE_API_KEY: "second" }))
      )
      assert.strictEqual((yield* fake.requests)[0]?.path, "/v1beta/models/gemini-2.5-flash:generateContent")
      for (const spy of printed) assert.strictEqual(spy.mock.calls.length, 0)
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          vi.unstubAllEnvs()
          vi.restoreAllMocks()
        })
      )
    )
  )

  it.live(
    "it is loaded at the first call, not with the layer",
    () =>
      Effect.gen(function* () {
        const source = pathToFileURL(`${root}/src/`).href
        const program = `
          import { registerHooks } from "node:module"
          registerHooks({
            resolve: (name, context, next) => {
              if (name.startsWith("@google/genai")) console.log("loaded " + name)
              return next(name, context)
            }
          })
          const { Effect, Layer } = await import("effect")
          const { layerConfig } = await import("${source}layers/model/GoogleModel.ts")
          const { Model } = await import("${source}services/model/Model.ts")
          const call = Effect.flip(Model.use((model) => model.countTokens({ model: "m", contents: [] })))
          const program = Effect.gen(function* () {
            const context = yield* Layer.build(layerConfig)
            console.log("built")
            console.log((yield* Effect.provide(call, context)).reason._tag)
          })
          await Effect.runPromise(Effect.scoped(program))
        `
        const gone = yield* Effect.scoped(Effect.map(Fake.make(always([])), ({ url }) => url))
        const printed = yield* Effect.callback<string>((resume) => {
          execFile(
            execPath,
            ["--no-warnings", "--input-type=module", "--eval", program],
            { env: { GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: gone }, cwd: import.meta.dirname },
            (_error, stdout, stderr) => resume(Effect.succeed(`${stdout}${stderr}`))
          )
        })
        assert.deepStrictEqual(printed.trim().split("\n"), ["built", "loaded @google/genai/web", "NetworkError"])
      }),
    30_000
  )
})

describe("the key", () => {
  const asked = (environment: Environment) => {
    const layer = GoogleModel.layerConfig.pipe(
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(environment)))
    )
    return Model.use((model) => model.generate(question)).pipe(Effect.provide(layer))
  }

  it.live.each([
    ["GEMINI_API_KEY wins", { GEMINI_API_KEY: "right", GOOGLE_API_KEY: "wrong" }],
    ["GOOGLE_API_KEY is the second", { GOOGLE_API_KEY: "right" }],
    ["a blank one counts as none", { GEMINI_API_KEY: " ", GOOGLE_API_KEY: "right" }],
    ["space around it is not part of it", { GEMINI_API_KEY: " right\n" }]
  ] as const)("%s", function* ([, keys]) {
    const fake = yield* Fake.make(always(Fake.json(hello)), { key: "right" })
    const answer = yield* asked({ ...keys, GOOGLE_GEMINI_BASE_URL: fake.url })
    assert.strictEqual(answer.finishReason, "STOP")
  })

  it.live("options take the place of the environment, and one model answers every request", function* () {
    const fake = yield* Fake.make(always(Fake.json(hello)), { key: "right" })
    const layer = GoogleModel.layer({ apiKey: " right", baseUrl: fake.url, model: "gemini-3-pro" })
    const model = yield* Effect.provide(Model, layer)
    yield* model.generate(question)
    const [request] = yield* fake.requests
    assert.strictEqual(request?.model, "gemini-3-pro")
    assert.strictEqual(model.fixedModel, "gemini-3-pro")
  })

  it.effect("a missing key fails every call, not the layer", function* () {
    for (const environment of [{}, { GEMINI_API_KEY: "" }]) {
      const layer = provided({ GEMINI_API_KEY: "", ...environment })
      const model = yield* Effect.provide(Model, layer)
      for (const way of everyWay) {
        const { reason } = yield* Effect.flip(ways(model)[way])
        assert.deepStrictEqual(plain(reason), { _tag: "AuthenticationError", kind: "MissingKey", variable })
      }
    }
  })

  it.effect("a key that no header can hold is rejected without showing it", function* () {
    const error = yield* Effect.flip(asked({ GEMINI_API_KEY: "two\nlines" }))
    assert.instanceOf(error, ModelError)
    assert.notInclude(inspect(error), "lines")
    assert.strictEqual(error.message, "the key is not accepted; check GEMINI_API_KEY")
  })

  it.effect("an endpoint that is not an http URL fails the layer; a blank one is ignored", function* () {
    for (const url of ["not a URL", "localhost:8080"]) {
      const error = yield* Effect.flip(Layer.build(provided({ GOOGLE_GEMINI_BASE_URL: url })))
      assert.strictEqual(error._tag, "ConfigError")
      assert.include(error.message, "GOOGLE_GEMINI_BASE_URL")
    }
    yield* Layer.build(provided({ GOOGLE_GEMINI_BASE_URL: "" }))
  })
})

describe("the recordings of gemini-cli", () => {
  const Line = Schema.fromJsonString(Schema.Struct({ method: Schema.String, response: Schema.Unknown }))
  const Wire = Schema.Struct({
    candidates: Schema.optionalKey(
      Schema.Array(Schema.Struct({ content: Schema.optionalKey(Schema.Struct({ parts: Schema.Array(Part) })) }))
    )
  })
  const partsOf = (response: unknown) =>
    Effect.map(Schema.decodeUnknownEffect(Schema.Union([Schema.Array(Wire), Wire]))(response), (decoded) =>
      [decoded].flat().flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
    )

  it.live.each([
    "api-resilience",
    "context-compress-interactive.compress-failure",
    "context-compress-interactive.compress",
    "json-output.france",
    "parallel-tools"
  ])("%s", NodeServices.layer, function* (name) {
    const fs = yield* FileSystem.FileSystem
    const file = yield* fs.readFileString(`${import.meta.dirname}/../../fixtures/recordings/${name}.responses`)
    const { fake, model } = yield* against(yield* Fake.replay(file))
    const lines = file.split("\n").filter((line) => line !== "")
    for (const line of lines) {
      const { method, response } = yield* Schema.decodeEffect(Line)(line)
      const parts =
        method === "generateContent"
          ? (yield* Effect.tap(model.generate(question), Schema.encodeUnknownEffect(ModelAnswer))).content.parts
          : (yield* Stream.runCollect(model.stream(question))).flatMap((chunk) => chunk.parts)
      assert.deepStrictEqual(nativeContent({ role: "model", parts }).parts, yield* partsOf(response))
    }
    assert.lengthOf(yield* fake.requests, lines.length)
  })
})

describe("the API's description of a model", () => {
  const describing = Effect.fnUntraced(function* (
    answer: (name: string) => Fake.Answer,
    timeouts: Partial<GoogleModel.Timeouts> = {}
  ) {
    const fake = yield* Fake.make(Fake.queue(), { describe: answer })
    const context = yield* Layer.build(provided({ GOOGLE_GEMINI_BASE_URL: fake.url }, timeouts))
    const { describe: ask } = yield* Effect.provide(Model, context)
    return { fake, ask: ask ?? (() => Effect.die(new Error("it cannot be asked"))) }
  })

  it.live("is requested once per model", function* () {
    const { ask, fake } = yield* describing((name) => Fake.description(name, 1_048_576, 65_536))
    const said = { window: 1_048_576, output: 65_536 }
    assert.deepStrictEqual(yield* ask("gemini-9-pro"), said)
    assert.deepStrictEqual(yield* ask("gemini-9-pro"), said)
    assert.deepStrictEqual(yield* ask("models/gemini-9-flash"), said)
    assert.deepStrictEqual(yield* fake.lookups, ["gemini-9-pro", "gemini-9-flash"])
    assert.isEmpty(yield* fake.requests)
  })

  it.live("is absent for an unknown model and for an invalid name", function* () {
    const { ask, fake } = yield* describing((name) =>
      name === "a b" ? Fake.failure(400, "* GetModelRequest.name: unexpected model name format") : Fake.noModel(name)
    )
    assert.isUndefined(yield* ask("nope"))
    assert.isUndefined(yield* ask("nope"))
    assert.isUndefined(yield* ask("a b"))
    assert.deepStrictEqual(yield* fake.lookups, ["nope", "a b"])
  })

  const failures: ReadonlyArray<readonly [what: string, answer: Fake.Answer, reason: ModelErrorReason["_tag"]]> = [
    ["a gateway that knows no such path", [Fake.head(404), Fake.write("<html>not here</html>")], "InvalidRequestError"],
    ["a gateway with an error of its own", Fake.json({ detail: "Not Found" }, 404), "InvalidRequestError"],
    ["a key that is refused", Fake.keyInvalid, "AuthenticationError"],
    ["a server that fails", Fake.failure(503, "overloaded"), "InternalProviderError"],
    ["a connection that breaks", [Fake.drop], "NetworkError"],
    ["an answer without limits", Fake.json({ name: "models/x" }), "InvalidResponseError"]
  ]
  it.live.each(failures)("is unknown after %s, and requested again", function* ([, answer, reason]) {
    const { ask, fake } = yield* describing(() => answer)
    for (const _ of [1, 2]) assert.strictEqual((yield* Effect.flip(ask("gemini-x"))).reason._tag, reason)
    assert.lengthOf(yield* fake.lookups, 2)
  })

  it.live("closes its socket when interrupted or late", function* () {
    const asked = yield* Deferred.make<void>()
    const closed = yield* Deferred.make<void>()
    const hanging = Effect.onInterrupt(Effect.andThen(Deferred.succeed(asked, undefined), Effect.never), () =>
      Deferred.succeed(closed, undefined)
    )
    const { ask } = yield* describing(() => [Fake.wait(hanging)])
    const fiber = yield* Effect.forkChild(ask("gemini-x"))
    yield* Deferred.await(asked)
    yield* Fiber.interrupt(fiber)
    yield* Deferred.await(closed)
    const late = yield* describing(() => [Fake.stall], { describe: "50 millis" })
    assert.strictEqual((yield* Effect.flip(late.ask("gemini-x"))).reason._tag, "TimeoutError")
  })
})
