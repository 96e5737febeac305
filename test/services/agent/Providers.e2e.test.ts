import { Effect, Layer, Schema, Stream } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { plainText } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import { layerLanguageModel } from "../../../src/services/effect-ai/ModelLanguageModel.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import { tool } from "../../support/agents.ts"
import { chat, type Dialect, dialects } from "../../support/ProviderDialects.ts"
import * as Server from "../../support/ProviderServer.ts"
import { begin } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The loop of the agent, and `effect/ai`, over each provider's dialect. */

const key = "sk-key"

describe.each(dialects.map((dialect) => [dialect.name, dialect] as const))("%s", (_, dialect) => {
  const { answer } = dialect

  it.live("an agent calls tools in parallel, and its thinking goes back", function* () {
    const server = yield* Server.make((_, index) =>
      index === 0
        ? answer([
            { thought: "I need both" },
            { text: "I look." },
            { call: "look", args: { word: "a" }, id: "call_a" },
            { call: "look", args: { word: "b" }, id: "call_b" }
          ])
        : index === 1
          ? answer([{ thought: "one more" }, { call: "look", args: { word: "c" }, id: "call_c" }])
          : answer([{ text: "I saw all." }])
    )
    const services = yield* Layer.build(
      Layer.merge(Offline.layerWithModel(dialect.layer(server.url, key)), Approval.layer({ mode: "all", granted: [] }))
    )
    const { chat: conversation } = yield* Effect.provide(begin({ model: dialect.model }), services)
    const look = tool("look", "read", (word) => Effect.succeed(`seen ${word}`))
    const events = yield* Agent.run({ name: "main", chat: conversation, tools: [look] }, "Look at a, b and c.").pipe(
      Stream.runCollect,
      Effect.provide(services)
    )
    assert.lengthOf(
      events.filter(({ _tag }) => _tag === "ToolCallResponse"),
      3
    )
    const all = entries(yield* conversation.conversation)
    assert.strictEqual(plainText(all.at(-1)?.content ?? assert.fail("no answer")), "I saw all.")
    assert.lengthOf(server.requests, 3)
    const last = JSON.stringify(server.requests[2]?.body)
    for (const word of ["Look at a, b and c.", "I look.", "seen a", "seen b", "seen c"]) assert.include(last, word)
    for (const thought of ["signed I need both", "signed one more"]) {
      assert.strictEqual(last.includes(thought), dialect !== chat)
    }
    for (const id of ["call_a", "call_b", "call_c"]) assert.lengthOf(last.split(`"${id}"`), 3)
    // What was sent stays as it was, but for the marks.
    const list = ({ body }: Server.ProviderRequest) =>
      JSON.stringify(body["messages"] ?? body["input"]).replaceAll(',"cache_control":{"type":"ephemeral"}', "")
    const sent = server.requests.map(list)
    for (const [at, one] of sent.slice(1).entries()) assert.isTrue(one.startsWith((sent[at] ?? "").slice(0, -1)))
  })

  const languageModel = Effect.fnUntraced(function* (script: Server.ProviderScript) {
    const server = yield* Server.make(script)
    const made = layerLanguageModel({ model: dialect.model }).pipe(Layer.provide(dialect.layer(server.url, key)))
    const context = yield* Layer.build(made)
    return { server, context }
  })

  it.live("a language model of effect/ai runs tools and carries thinking", function* () {
    const { context, server } = yield* languageModel((_, index) =>
      index === 0
        ? answer([{ thought: "hm" }, { call: "look", args: { word: "a" }, id: "call_a" }])
        : answer([{ text: "done" }])
    )
    const look = Tool.make("look", {
      description: "Looks",
      parameters: Schema.Struct({ word: Schema.String }),
      success: Schema.String
    })
    const toolkit = Toolkit.make(look)
    const handlers = toolkit.toLayer({ look: ({ word }) => Effect.succeed(`seen ${word}`) })
    const first = yield* LanguageModel.generateText({ prompt: "go", toolkit }).pipe(
      Effect.provide(handlers),
      Effect.provide(context)
    )
    assert.deepStrictEqual(
      first.toolResults.map(({ result }) => result),
      ["seen a"]
    )
    assert.strictEqual(first.finishReason, "tool-calls")
    assert.strictEqual(first.usage.inputTokens.total, 100)
    assert.strictEqual(first.usage.inputTokens.cacheRead, 60)
    const prompt = [{ role: "user" as const, content: "go" }, ...Prompt.fromResponseParts(first.content).content]
    const second = yield* LanguageModel.generateText({ prompt, toolkit }).pipe(
      Effect.provide(handlers),
      Effect.provide(context)
    )
    assert.strictEqual(second.text, "done")
    const sent = JSON.stringify(server.requests[1]?.body)
    assert.include(sent, "seen a")
    assert.strictEqual(sent.includes("signed hm"), dialect !== chat)
  })

  it.live("a language model of effect/ai streams, and gives objects of a schema", function* () {
    const { context, server } = yield* languageModel((_, index) =>
      index === 0
        ? answer([{ thought: "hm" }, { text: "Hello" }])
        : answer([{ text: "Here:" }, { call: "person", args: { name: "Ada", age: 36 }, id: "call_o" }])
    )
    const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "go" })).pipe(Effect.provide(context))
    const words = parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : []))
    assert.strictEqual(words.join(""), "Hello")
    const kinds = parts.map(({ type }) => type)
    for (const kind of ["text", "reasoning"]) {
      assert.strictEqual(
        kinds.filter((type) => type === `${kind}-start`).length,
        kinds.filter((type) => type === `${kind}-end`).length
      )
    }
    assert.strictEqual(kinds.at(-1), "finish")
    const person = yield* LanguageModel.generateObject({
      prompt: "who?",
      objectName: "person",
      schema: Schema.Struct({ name: Schema.String, age: Schema.Int })
    }).pipe(Effect.provide(context))
    assert.deepStrictEqual(person.value, { name: "Ada", age: 36 })
    assert.property(server.requests[1]?.body, "tool_choice")
  })

  it.live("a failure is an error of effect/ai that says whether to retry", function* () {
    const failing: Dialect["error"] = dialect.error
    const { context } = yield* languageModel(() =>
      Server.json(failing("rate_limit_error", "slow"), 429, { "retry-after": "3" })
    )
    const error = yield* Effect.flip(LanguageModel.generateText({ prompt: "go" }).pipe(Effect.provide(context)))
    assert.strictEqual(error.reason._tag, "RateLimitError")
    assert.isTrue(error.isRetryable)
  })
})
