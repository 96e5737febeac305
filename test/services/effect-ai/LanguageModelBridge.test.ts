import { Deferred, Duration, Effect, Fiber, Layer, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { layerLanguageModel, toModelError, toPrompt } from "../../../src/services/effect-ai/LanguageModelBridge.ts"
import { Model, type ModelRequest } from "../../../src/services/model/Model.ts"
import { isRetryable } from "../../../src/services/model/Retry.ts"
import { assert, describe, it } from "../../support/vitest.ts"

type Fake = Parameters<typeof LanguageModel.make>[0]

/** Our model over a pretended provider. */
const over = (fake: Partial<Fake>, name?: string): Layer.Layer<Model> =>
  layerLanguageModel(name === undefined ? {} : { model: name }).pipe(
    Layer.provide(
      Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({
          generateText: () => Effect.die("unexpected generateText"),
          streamText: () => Stream.die("unexpected streamText"),
          ...fake
        })
      )
    )
  )

const finish = (reason: Response.FinishReason): Response.FinishPartEncoded => ({
  type: "finish",
  reason,
  usage: { inputTokens: { total: 50, cacheRead: 10, cacheWrite: 7 }, outputTokens: { total: 25, reasoning: 5 } }
})
const usage = { prompt: 50, answer: 20, thoughts: 5, cached: 10, cacheWrite: 7 }

const request: ModelRequest = {
  model: "any",
  contents: [user(text("Why is the build red?"))],
  systemInstruction: "Be brief.",
  tools: [
    {
      functionDeclarations: [
        {
          name: "read_file",
          description: "Reads a file.",
          parameters: { type: "OBJECT", properties: { path: { type: "STRING" } }, required: ["path"] }
        },
        { name: "list", parametersJsonSchema: { type: "object", properties: {} } }
      ]
    }
  ]
}

const generate = (asked = request) => Model.use((service) => service.generate(asked))
const answering = (...parts: ReadonlyArray<Response.PartEncoded>) =>
  over({ generateText: () => Effect.succeed([...parts]) })
const streaming = (...parts: ReadonlyArray<Response.StreamPartEncoded>) =>
  over({ streamText: () => Stream.fromIterable(parts) })
const streamed = Model.use((service) => Stream.runCollect(service.stream(request)))

const failing = (reason: AiError.AiErrorReason) => AiError.make({ module: "Fake", method: "generateText", reason })

describe("a request as a prompt", () => {
  it("has roles, and results with the ids of their calls", () => {
    const prompt = toPrompt({
      model: "any",
      systemInstruction: "Be brief.",
      contents: [
        user(text("Read both."), { inlineData: { mimeType: "image/png", data: "AAAA" } }, { inlineData: {} }),
        model(text("Yes."), call("read", { path: "a" }), call("read", { path: "b" }), call("stat", {}, "s1")),
        user(
          response("read", { output: "A" }),
          response("stat", { error: "no" }, "s1"),
          response("read", { output: "B" }),
          text("Go on.")
        ),
        model(call("list", { all: true }), call("read", {}), { executableCode: { code: "1" } }),
        // The first call that waits; none that waits; a name that nobody called.
        user({ functionResponse: { response: { output: "C" } } }, response("read", {}, "s1"), response("stat", {})),
        user(
          { fileData: { fileUri: "https://a.b/c.pdf", mimeType: "application/pdf" } },
          { fileData: { fileUri: "x" } }
        )
      ]
    })
    const shown = (part: Prompt.Part): string =>
      part.type === "file"
        ? `file ${part.mediaType} ${String(part.data)}`
        : part.type === "tool-call"
          ? `call ${part.id} ${part.name} ${JSON.stringify(part.params)}`
          : part.type === "tool-result"
            ? `result ${part.id} ${part.name} ${JSON.stringify(part.result)}${part.isFailure ? " failed" : ""}`
            : "text" in part
              ? part.text
              : part.type
    const parts = prompt.content.map(({ content, role }) => [
      role,
      ...(typeof content === "string" ? [content] : content.map(shown))
    ])
    assert.deepStrictEqual(parts, [
      ["system", "Be brief."],
      ["user", "Read both.", "file image/png AAAA", "file application/octet-stream "],
      ["assistant", "Yes.", 'call call_1 read {"path":"a"}', 'call call_2 read {"path":"b"}', "call s1 stat {}"],
      [
        "tool",
        'result call_1 read {"output":"A"}',
        'result s1 stat {"error":"no"} failed',
        'result call_2 read {"output":"B"}'
      ],
      ["user", "Go on."],
      ["assistant", 'call call_3 list {"all":true}', "call call_4 read {}", '{"executableCode":{"code":"1"}}'],
      ["tool", 'result call_3  {"output":"C"}', "result s1 read {}", "result call_5 stat {}"],
      ["user", "file application/pdf https://a.b/c.pdf"]
    ])
  })

  it("joins the chunks of a thought to its signature, and drops unsigned thoughts", () => {
    const prompt = toPrompt({
      model: "any",
      contents: [
        model(
          { text: "Let me ", thought: true },
          { text: "see.", thought: true },
          { text: "", thought: true, providerMetadata: { fake: { signature: "xyz" } } },
          { text: "unsigned", thought: true },
          text("Done.")
        )
      ]
    })
    const [message] = prompt.content
    const content = message?.role === "assistant" ? message.content : []
    assert.deepStrictEqual(
      content.map((part) => [part.type, "text" in part ? part.text : "", part.options]),
      [
        ["reasoning", "Let me see.", { fake: { signature: "xyz" } }],
        ["text", "Done.", {}]
      ]
    )
  })
})

describe("generate", () => {
  it.effect(
    "maps parts, finish reason and usage",
    answering(
      { type: "reasoning", text: "Hm.", metadata: { fake: { signature: "s" } } },
      { type: "text", text: "Reading." },
      { type: "tool-call", id: "c1", name: "read_file", params: { path: "a.ts" } },
      { type: "tool-call", id: "c2", name: "unknown", params: { any: 1 } },
      { type: "file", mediaType: "image/png", data: "AQID" },
      finish("tool-calls")
    ),
    function* () {
      const answer = yield* generate()
      assert.deepStrictEqual(answer, {
        content: model(
          { text: "Hm.", thought: true, providerMetadata: { fake: { signature: "s" } } },
          text("Reading."),
          call("read_file", { path: "a.ts" }, "c1"),
          // Nobody declared this one: whoever runs tools decides.
          call("unknown", { any: 1 }, "c2"),
          { inlineData: { mimeType: "image/png", data: "AQID" } }
        ),
        finishReason: "STOP",
        usage
      })
    }
  )

  it.effect("declares the tools, as JSON Schema", () => {
    const seen: Array<LanguageModel.ProviderOptions> = []
    const layer = over({
      generateText: (options) => {
        seen.push(options)
        return Effect.succeed([finish("stop")])
      }
    })
    return Effect.gen(function* () {
      yield* generate()
      const tools = seen[0]?.tools ?? []
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        ["read_file", "list"]
      )
      const [first] = tools
      if (first === undefined) return
      assert.strictEqual(Tool.getDescription(first), "Reads a file.")
      assert.deepInclude(Tool.getJsonSchema(first), {
        type: "object",
        properties: { path: { type: "string" } },
        required: ["path"]
      })
    }).pipe(Effect.provide(layer))
  })

  const ends: ReadonlyArray<readonly [Response.FinishReason, string]> = [
    ["stop", "STOP"],
    ["length", "MAX_TOKENS"],
    ["pause", "OTHER"],
    ["unknown", "OTHER"]
  ]
  for (const [reason, ours] of ends) {
    it.effect(`ends with ${ours} for ${reason}`, answering({ type: "text", text: "x" }, finish(reason)), function* () {
      assert.strictEqual((yield* generate()).finishReason, ours)
    })
  }

  const noAnswers: ReadonlyArray<readonly [string, ReadonlyArray<Response.PartEncoded>, string]> = [
    ["a filtered answer", [finish("content-filter")], "ContentPolicyError"],
    ["a failed answer", [finish("error")], "InternalProviderError"],
    ["an answer without an end", [{ type: "text", text: "x" }], "InvalidResponseError"]
  ]
  for (const [name, parts, reason] of noAnswers) {
    it.effect(`fails with ${name}`, answering(...parts), function* () {
      assert.strictEqual((yield* Effect.flip(generate())).reason._tag, reason)
    })
  }

  it.effect.each([
    ["has no usage where none was counted", {}, {}, null],
    ["counts thoughts alone", {}, { reasoning: 5 }, { prompt: 0, answer: 0, thoughts: 5, cached: 0 }],
    ["counts an answer alone", {}, { text: 5 }, { prompt: 0, answer: 5, thoughts: 0, cached: 0 }],
    [
      "counts what was read from a cache, written to one, and neither",
      { uncached: 30, cacheRead: 10, cacheWrite: 5 },
      { text: 7, reasoning: 2 },
      { prompt: 45, answer: 7, thoughts: 2, cached: 10, cacheWrite: 5 }
    ],
    [
      "takes a total as it is",
      { total: 50, uncached: 30, cacheRead: 10, cacheWrite: 5 },
      { total: 9 },
      { prompt: 50, answer: 9, thoughts: 0, cached: 10, cacheWrite: 5 }
    ]
  ] as const)("%s", ([, inputTokens, outputTokens, expected]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* generate()).usage, expected)
    }).pipe(Effect.provide(answering({ type: "finish", reason: "stop", usage: { inputTokens, outputTokens } })))
  )

  it.effect(
    "refuses another model than its own, and tools that are not functions",
    over({ generateText: () => Effect.succeed([finish("stop")]) }, "fake-1"),
    function* () {
      const other = yield* Effect.flip(generate())
      assert.strictEqual(other.reason._tag, "InvalidRequestError")
      assert.include(other.message, "fake-1")
      const search = { ...request, model: "fake-1", tools: [{ googleSearch: {} }] }
      assert.strictEqual((yield* Effect.flip(generate(search))).reason._tag, "InvalidRequestError")
      assert.strictEqual((yield* generate({ ...request, model: "fake-1" })).finishReason, "STOP")
    }
  )

  it.effect("interrupts the provider", function* () {
    const stopped = yield* Deferred.make<void>()
    const hanging = over({
      generateText: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopped, undefined)),
      streamText: () => Stream.never
    })
    const fiber = yield* Effect.forkChild(Effect.provide(generate(), hanging), { startImmediately: true })
    yield* Effect.yieldNow
    yield* Fiber.interrupt(fiber)
    yield* Deferred.await(stopped)
  })

  it.effect("counts with the estimator", over({}), function* () {
    const tokens = yield* Model.use((service) => service.countTokens(request))
    assert.isAbove(tokens, 3)
    assert.isBelow(tokens, 12)
  })
})

describe("stream", () => {
  it.effect(
    "yields texts, thoughts and calls as they arrive, then the end",
    streaming(
      { type: "reasoning-start", id: "r" },
      { type: "reasoning-delta", id: "r", delta: "Hm." },
      { type: "reasoning-end", id: "r", metadata: { fake: { signature: "s" } } },
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "Read" },
      { type: "text-delta", id: "t", delta: "ing." },
      { type: "text-end", id: "t" },
      { type: "tool-call", id: "c1", name: "read_file", params: { path: "a.ts" } },
      finish("tool-calls")
    ),
    function* () {
      assert.deepStrictEqual(yield* streamed, [
        { parts: [{ text: "Hm.", thought: true }] },
        { parts: [{ text: "", thought: true, providerMetadata: { fake: { signature: "s" } } }] },
        { parts: [text("Read")] },
        { parts: [text("ing.")] },
        { parts: [call("read_file", { path: "a.ts" }, "c1")] },
        { parts: [], finishReason: "STOP", usage }
      ])
    }
  )

  it.effect(
    "fails without a finish reason, after yielding the chunks so far",
    streaming({ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: "half" }),
    function* () {
      const seen: Array<string> = []
      const error = yield* Model.use((service) =>
        Stream.runForEach(service.stream(request), ({ parts }) =>
          Effect.sync(() => seen.push(...parts.map((part) => part.text ?? "")))
        )
      ).pipe(Effect.flip)
      assert.deepStrictEqual([seen, error.reason._tag], [["half"], "InvalidResponseError"])
    }
  )

  it.effect(
    "fails on the provider's failure within it",
    over({ streamText: () => Stream.fail(failing(new AiError.RateLimitError({}))) }),
    function* () {
      assert.strictEqual((yield* Effect.flip(streamed)).reason._tag, "RateLimitError")
    }
  )

  it.effect("fails on an error part", streaming({ type: "error", error: "boom" }), function* () {
    assert.strictEqual((yield* Effect.flip(streamed)).reason._tag, "InvalidResponseError")
  })

  it.effect("releases the provider when its scope closes", function* () {
    const stopped = yield* Deferred.make<void>()
    const endless = over({
      streamText: () =>
        Stream.make<Array<Response.StreamPartEncoded>>(
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: "x" }
        ).pipe(Stream.concat(Stream.never), Stream.ensuring(Deferred.succeed(stopped, undefined)))
    })
    const [first] = yield* Model.use((service) => Stream.runCollect(Stream.take(service.stream(request), 1))).pipe(
      Effect.provide(endless)
    )
    assert.deepStrictEqual(first, { parts: [text("x")] })
    yield* Deferred.await(stopped)
  })
})

describe("failures", () => {
  const network = { method: "POST", url: "https://example.com" }
  const cases: ReadonlyArray<readonly [AiError.AiErrorReason, string, boolean]> = [
    [new AiError.NetworkError({ reason: "TransportError", ...network }), "NetworkError", true],
    [new AiError.NetworkError({ reason: "InvalidUrlError", ...network }), "InvalidRequestError", false],
    [new AiError.RateLimitError({ retryAfter: Duration.seconds(3) }), "RateLimitError", true],
    [new AiError.QuotaExhaustedError({}), "QuotaExhaustedError", false],
    [new AiError.AuthenticationError({ kind: "ExpiredKey" }), "AuthenticationError", false],
    [new AiError.ContentPolicyError({ description: "violence" }), "ContentPolicyError", false],
    [new AiError.InvalidRequestError({ description: "temperature is too high" }), "InvalidRequestError", false],
    [
      new AiError.InvalidRequestError({ description: "This model's maximum context length is 8192 tokens" }),
      "ContextLengthError",
      false
    ],
    [
      new AiError.InvalidRequestError({ description: "prompt is too long: 210000 tokens" }),
      "ContextLengthError",
      false
    ],
    [new AiError.InternalProviderError({ description: "overloaded" }), "InternalProviderError", true],
    [new AiError.InvalidResponseError({ description: "no JSON" }), "InvalidResponseError", false],
    [new AiError.InvalidOutputError({ description: "no JSON" }), "InvalidResponseError", false],
    [new AiError.UnknownError({}), "InternalProviderError", true],
    [new AiError.UnknownError({ http: { response: { status: 500, headers: {} } } }), "InternalProviderError", true],
    [new AiError.UnknownError({ http: { response: { status: 499, headers: {} } } }), "InvalidRequestError", false],
    ...[
      new AiError.UnsupportedSchemaError({ description: "no" }),
      new AiError.ToolConfigurationError({ toolName: "t", description: "no" }),
      new AiError.ToolkitRequiredError({ pendingApprovals: ["a"] }),
      new AiError.ToolResultEncodingError({ toolName: "t", toolResult: 1, description: "no" }),
      new AiError.InvalidToolResultError({ toolName: "t", description: "no" }),
      new AiError.InvalidUserInputError({ description: "no" })
    ].map((reason) => [reason, "InvalidRequestError", false] as const),
    ...[
      new AiError.StructuredOutputError({ description: "no", responseText: "x" }),
      new AiError.ToolParameterValidationError({ toolName: "t", description: "no" })
    ].map((reason) => [reason, "InvalidResponseError", false] as const)
  ]
  for (const [reason, ours, retryable] of cases) {
    it(`${reason._tag}: ${ours}`, () => {
      const error = toModelError(failing(reason))
      assert.deepStrictEqual([error.reason._tag, isRetryable(error)], [ours, retryable])
    })
  }

  it.each([
    ["MissingKey", "MissingKey"],
    ["InsufficientPermissions", "InsufficientPermissions"],
    ["InvalidKey", "InvalidKey"],
    ["ExpiredKey", "InvalidKey"],
    ["Unknown", "InvalidKey"]
  ] as const)("of a key say what is wrong with it: %s", (kind, ours) => {
    assert.deepInclude(toModelError(failing(new AiError.AuthenticationError({ kind }))).reason, { kind: ours })
  })

  it.each([
    [new AiError.RateLimitError({ retryAfter: Duration.seconds(3) }), { retryAfter: Duration.seconds(3) }],
    [new AiError.ContentPolicyError({ description: "violence" }), { finishReason: "violence" }],
    [
      new AiError.InternalProviderError({ description: "x", http: { response: { status: 503, headers: {} } } }),
      { status: 503 }
    ],
    [new AiError.NetworkError({ reason: "TransportError", ...network }), { detail: "TransportError" }],
    [new AiError.InvalidRequestError({ description: "Could not process image" }), { refused: "image" }],
    [
      new AiError.InvalidRequestError({ description: "Invalid `signature` in `thinking` block" }),
      { refused: "signature" }
    ],
    [
      new AiError.InvalidRequestError({ description: "Invalid schema for function 'look': no." }),
      { refused: "tool", tool: "look" }
    ]
  ])("keep what is known of them: %s", (reason, known) => {
    assert.deepInclude<object>(toModelError(failing(reason)).reason, known)
  })

  it.effect(
    "of a call are mapped",
    over({ generateText: () => Effect.fail(failing(new AiError.QuotaExhaustedError({}))) }),
    function* () {
      assert.strictEqual((yield* Effect.flip(generate())).reason._tag, "QuotaExhaustedError")
    }
  )
})
