import { Duration, Effect, Layer, Schema, Stream } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { model, type Part, text } from "../../../src/domain/content/Content.ts"
import { layerLanguageModel } from "../../../src/services/effect-ai/ModelLanguageModel.ts"
import * as Models from "../../../src/services/model/Model.ts"
import { isRetryable } from "../../../src/services/model/Retry.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Every reason of a failure, as `effect/ai` calls it. */
const reasons: ReadonlyArray<readonly [Models.ModelErrorReason, string]> = [
  [new Models.NetworkError({ detail: "gone" }), "NetworkError"],
  [new Models.TimeoutError({ seconds: 3 }), "InternalProviderError"],
  [new Models.RateLimitError({ retryAfter: Duration.seconds(7) }), "RateLimitError"],
  [new Models.QuotaExhaustedError({ detail: "all" }), "QuotaExhaustedError"],
  [new Models.AuthenticationError({ kind: "InvalidKey" }), "AuthenticationError"],
  [new Models.ContentPolicyError({ finishReason: "SAFETY" }), "ContentPolicyError"],
  [new Models.InvalidRequestError({ detail: "no" }), "InvalidRequestError"],
  [new Models.ContextLengthError({}), "InvalidRequestError"],
  [new Models.RequestBytesError({}), "InvalidRequestError"],
  [new Models.InternalProviderError({ status: 500 }), "InternalProviderError"],
  [new Models.InvalidResponseError({ detail: "no" }), "InvalidResponseError"],
  [new Models.AnswerTooLargeError({ unit: "bytes", limit: 1 }), "InvalidResponseError"]
]

describe("a failure of a model", () => {
  it("has a case for every reason", () => {
    assert.lengthOf(new Set(reasons.map(([{ _tag }]) => _tag)), Models.ModelErrorReason.members.length)
  })

  it.effect.each(reasons)("%s is %s of effect/ai, and can be retried as before", function* ([reason, tag]) {
    const failure = new Models.ModelError({ reason })
    const failing = Layer.mock(Models.Model, {
      generate: () => Effect.fail(failure),
      stream: () => Stream.fail(failure)
    })
    const layer = layerLanguageModel({ model: "m" }).pipe(Layer.provide(failing))
    for (const call of [
      LanguageModel.generateText({ prompt: "?" }),
      Stream.runDrain(LanguageModel.streamText({ prompt: "?" }))
    ]) {
      const { reason: given } = yield* Effect.flip(Effect.provide(Effect.asVoid(call), layer))
      assert.strictEqual(given._tag, tag)
      if (isRetryable(failure)) assert.isTrue(given.isRetryable)
      if ("description" in given) assert.strictEqual(given.description, reason.message)
      if (given._tag === "RateLimitError") assert.deepStrictEqual(given.retryAfter, Duration.seconds(7))
      if (given._tag === "AuthenticationError") assert.strictEqual(given.kind, "InvalidKey")
    }
  })
})

/** What a model answers: thoughts and texts in pieces, signed and not, calls with and without ids, and a file. */
const answered: ReadonlyArray<Part> = [
  { text: "Let me ", thought: true },
  { text: "see.", thought: true, thoughtSignature: "s1" },
  text("I look. "),
  text("Twice."),
  { functionCall: { id: "c1", name: "look", args: { at: 1 } }, thoughtSignature: "s2" },
  { functionCall: { name: "read", args: { at: 2 } } },
  { inlineData: { mimeType: "image/png", data: "aGk=" } },
  { inlineData: {} }
]
const usage = { prompt: 100, answer: 7, thoughts: 3, cached: 40, cacheWrite: 25 }

const tools = Toolkit.make(
  Tool.make("look", {
    description: "Looks.",
    parameters: Schema.Struct({ at: Schema.Finite }),
    success: Schema.String
  }),
  Tool.make("read", { parameters: Schema.Struct({ at: Schema.Finite }), success: Schema.String })
)

/** A model that gives parts and notes what it is asked. */
const answering = (parts: ReadonlyArray<Part>, finishReason: string | undefined, isCounted = true) => {
  const asked: Array<Models.ModelRequest> = []
  const ending = { ...(finishReason === undefined ? {} : { finishReason }), ...(isCounted ? { usage } : {}) }
  const layer = Layer.mock(Models.Model, {
    generate: (request) => {
      asked.push(request)
      return Effect.succeed({
        content: model(...parts),
        finishReason: finishReason ?? "",
        usage: isCounted ? usage : null
      })
    },
    stream: (request) => {
      asked.push(request)
      return Stream.make(...parts.map((part) => ({ parts: [part] })), { parts: [], ...ending })
    }
  })
  return { asked, layer: Layer.provide(layerLanguageModel({ model: "m", generation: { topK: 3 } }), layer) }
}

/** A part in short: its type, what it says and our metadata. */
const told = (part: Response.AnyPart): string => {
  const {
    "~effect/ai/Response/Part": _,
    id,
    metadata,
    providerExecuted: _own,
    type,
    ...rest
  } = { id: undefined, providerExecuted: undefined, ...part }
  const more = Object.entries({ ...rest, id, ...metadata }).filter(([, value]) => value !== undefined)
  return `${type} ${JSON.stringify(Object.fromEntries(more))}`
}

const counts =
  '"usage":{"inputTokens":{"uncached":35,"total":100,"cacheRead":40,"cacheWrite":25},"outputTokens":{"total":10,"text":7,"reasoning":3}}'

describe("an answer of a model", () => {
  const options = { toolkit: tools, prompt: "Look.", disableToolCallResolution: true } as const

  it.effect("comes whole and in pieces, and goes back as it came", function* () {
    const { asked, layer } = answering(answered, "STOP")
    const { content } = yield* Effect.provide(LanguageModel.generateText(options), layer)
    const streamed = yield* Effect.provide(Stream.runCollect(LanguageModel.streamText(options)), layer)
    const last = [
      'file {"mediaType":"image/png","data":{"0":104,"1":105}}',
      'file {"mediaType":"application/octet-stream","data":{}}',
      `finish {"reason":"tool-calls",${counts}}`
    ]
    assert.deepStrictEqual(content.map(told), [
      'reasoning {"text":"Let me "}',
      'reasoning {"text":"see.","palimpsest":{"signature":"s1"}}',
      'text {"text":"I look. "}',
      'text {"text":"Twice."}',
      'tool-call {"name":"look","params":{"at":1},"id":"c1","palimpsest":{"signature":"s2"}}',
      'tool-call {"name":"read","params":{"at":2},"id":"call_5"}',
      ...last
    ])
    assert.deepStrictEqual(streamed.map(told), [
      'reasoning-start {"id":"1"}',
      'reasoning-delta {"delta":"Let me ","id":"1"}',
      'reasoning-end {"id":"1"}',
      'reasoning-start {"id":"2","palimpsest":{"signature":"s1"}}',
      'reasoning-delta {"delta":"see.","id":"2"}',
      'reasoning-end {"id":"2"}',
      'text-start {"id":"3"}',
      'text-delta {"delta":"I look. ","id":"3"}',
      'text-delta {"delta":"Twice.","id":"3"}',
      'text-end {"id":"3"}',
      'tool-call {"name":"look","params":{"at":1},"id":"c1","palimpsest":{"signature":"s2"}}',
      'tool-call {"name":"read","params":{"at":2},"id":"call_4"}',
      ...last
    ])
    const parametersJsonSchema = Tool.getJsonSchema(tools.tools.look)
    const request = {
      model: "m",
      contents: [{ role: "user", parts: [{ text: "Look." }] }],
      systemInstruction: undefined,
      tools: [
        {
          functionDeclarations: [
            { name: "look", description: "Looks.", parametersJsonSchema },
            { name: "read", parametersJsonSchema }
          ]
        }
      ],
      mustCall: false,
      generation: { topK: 3 }
    }
    assert.deepStrictEqual(asked, [request, request] as typeof asked)
    const prompt = Prompt.concat(
      Prompt.make([
        { role: "system", content: "one" },
        { role: "system", content: "two" },
        { role: "user", content: "q" }
      ]),
      Prompt.fromResponseParts(content)
    )
    yield* Effect.provide(LanguageModel.generateText({ ...options, prompt }), layer)
    assert.strictEqual(asked[2]?.systemInstruction, "one\n\ntwo")
    // With the id and the bytes that `effect/ai` made of none.
    assert.deepStrictEqual(JSON.parse(JSON.stringify(asked[2]?.contents.at(-1)?.parts)), [
      ...answered.slice(0, 5),
      { functionCall: { id: "call_5", name: "read", args: { at: 2 } } },
      answered[6],
      { inlineData: { mimeType: "application/octet-stream", data: "" } }
    ])
  })

  it.effect("begins another text after a signed one", function* () {
    const { layer } = answering([{ text: "a", thoughtSignature: "s" }, text("b"), text("c")], "STOP")
    const streamed = yield* Effect.provide(Stream.runCollect(LanguageModel.streamText({ prompt: "?" })), layer)
    assert.deepStrictEqual(streamed.map(told).slice(0, -1), [
      'text-start {"id":"1","palimpsest":{"signature":"s"}}',
      'text-delta {"delta":"a","id":"1"}',
      'text-end {"id":"1"}',
      'text-start {"id":"2"}',
      'text-delta {"delta":"b","id":"2"}',
      'text-delta {"delta":"c","id":"2"}',
      'text-end {"id":"2"}'
    ])
  })

  it.effect.each([
    ["auto", "look read", false],
    ["none", "", false],
    ["required", "look read", true],
    [{ tool: "read" }, "read", true],
    [{ oneOf: ["look"] }, "look", false],
    [{ mode: "required", oneOf: ["look"] }, "look", true]
  ] as const)("is asked for with the tools of the choice %j", function* ([toolChoice, names, mustCall]) {
    const { asked, layer } = answering([text("a")], "STOP")
    yield* Effect.provide(LanguageModel.generateText({ ...options, toolChoice }), layer)
    const declared = JSON.stringify(asked[0]?.tools ?? "").match(/(?<="name":")\w+/g) ?? []
    assert.deepStrictEqual([declared.join(" "), asked[0]?.mustCall], [names, mustCall])
    assert.strictEqual(asked[0]?.tools === undefined, names === "")
  })

  it.effect.each([
    ["STOP", "stop"],
    ["MAX_TOKENS", "length"],
    ["SAFETY", "other"]
  ] as const)("that ends with %s ends with %s, and without counts has none", function* ([reason, expected]) {
    const { layer } = answering([text("a")], reason, false)
    const prompt = { prompt: "?" }
    const { content } = yield* Effect.provide(LanguageModel.generateText(prompt), layer)
    const streamed = yield* Effect.provide(Stream.runCollect(LanguageModel.streamText(prompt)), layer)
    for (const last of [content.map(told).at(-1), streamed.map(told).at(-1)]) {
      assert.strictEqual(last, `finish {"reason":"${expected}","usage":{"inputTokens":{},"outputTokens":{}}}`)
    }
  })

  it.effect("that is an object is a call that has to be made, and no other words", function* () {
    const { asked, layer } = answering([text("Here: "), { functionCall: { name: "Tide", args: { at: 3 } } }], "STOP")
    const schema = Schema.Struct({ at: Schema.Finite })
    const { value } = yield* Effect.provide(
      LanguageModel.generateObject({ prompt: "?", objectName: "Tide", schema }),
      layer
    )
    assert.deepStrictEqual(value, { at: 3 })
    assert.strictEqual(asked[0]?.mustCall, true)
    assert.include(JSON.stringify(asked[0]?.tools), '"name":"Tide"')
    assert.include(JSON.stringify(asked[0]?.tools), '"at"')
    const plain = answering([text('{"at":4}')], "STOP")
    const given = yield* Effect.provide(LanguageModel.generateObject({ prompt: "?", schema }), plain.layer)
    assert.deepStrictEqual(given.value, { at: 4 })
  })
})
