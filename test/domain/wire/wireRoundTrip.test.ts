import { Schema } from "effect"
import type { Content, Part } from "../../../src/domain/content/Content.ts"
import { responseContent } from "../../../src/domain/content/MediaBlocks.ts"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { isJson, type Json } from "../../../src/domain/text/JsonObject.ts"
import { wellFormedJson } from "../../../src/domain/text/JsonText.ts"
import { requestBody } from "../../../src/domain/wire/anthropic/Request.ts"
import { chatBody } from "../../../src/domain/wire/chat/Request.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { geminiContent } from "../../../src/domain/wire/gemini/Request.ts"
import { carriedState, type Target } from "../../../src/domain/wire/ModelState.ts"
import { responsesBody } from "../../../src/domain/wire/responses/Request.ts"
import { toolNames } from "../../../src/domain/wire/ToolDeclarations.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const Words = Schema.String.check(Schema.isPattern(/\S/))
// Not any key: V8 (Node 24.21) sometimes reads a key of one escaped character, such as "\\u0000", as a backslash.
const Key = Schema.String.check(Schema.isPattern(/^\w+$/))
const Value = Schema.Union([
  Schema.Null,
  Schema.Boolean,
  Schema.Finite,
  Schema.String,
  Schema.Array(Schema.String),
  Schema.Record(Key, Schema.String)
])
const Turn = Schema.Struct({
  question: Words,
  hasImage: Schema.Boolean,
  words: Schema.Literals(["", "so it is"]),
  /** Unknown fields of a state that the model wants back. */
  state: Schema.NullOr(Schema.Record(Key, Value)),
  calls: Schema.Array(
    Schema.Struct({
      name: Schema.Literals(["look", "run_it"]),
      args: Schema.Record(Key, Value),
      result: Words,
      hasImage: Schema.Boolean
    })
  ).check(Schema.isMaxLength(3))
})

const image: Part = { inlineData: { mimeType: "image/png", data: "aGVsbG8=" } }
/** Keys that the state or its message has anyway. */
const ownKeys = new Set(["type", "signature", "content", "role", "tool_calls"])
const server = "api.example"
const names = toolNames([])

/** A conversation of these turns. Each model's turn may begin with a state that is for the target alone. */
const conversationOf = (turns: ReadonlyArray<typeof Turn.Type>, target: Target) =>
  turns.flatMap(({ calls, hasImage, question, state, words }, turn): ReadonlyArray<Content> => {
    const said = words === "" && calls.length === 0 ? "nothing" : words
    const states: ReadonlyArray<Part> =
      state === null || target.dialect === "gemini"
        ? []
        : [{ text: "", thoughtSignature: carriedState(target, { ...state, type: "reasoning", signature: "s" }) }]
    const id = (at: number) => `call_${turn}_${at}`
    const [results, images] = [calls.map(({ result }) => result), calls.map((call) => call.hasImage)]
    return [
      { role: "user", parts: [{ text: question }, ...(hasImage ? [image] : [])] },
      {
        role: "model",
        parts: [
          ...states,
          ...(said === "" ? [] : [{ text: said }]),
          ...calls.map(({ args, name }, at) => ({ functionCall: { id: id(at), name, args } }))
        ]
      },
      ...(calls.length === 0
        ? []
        : [
            {
              role: "user" as const,
              parts: calls.map(({ name }, at) => ({
                functionResponse: {
                  id: id(at),
                  name,
                  response:
                    images[at] === true
                      ? { output: results[at], content: [{ type: "image", data: "aGVsbG8=", mimeType: "image/png" }] }
                      : { output: results[at] }
                }
              }))
            },
            { role: "model" as const, parts: [{ text: "I see." }] }
          ])
    ]
  })

/** The messages of a request. */
const messagesOf = (contents: ReadonlyArray<Content>, target: Target): ReadonlyArray<Json> => {
  const request = { ...target, contents, tools: [] }
  const bodies: Readonly<Record<Dialect, () => Json>> = {
    anthropic: () => requestBody({ ...request, maxOutputTokens: 1_000 }, names),
    chat: () => chatBody(request, names, false),
    responses: () => responsesBody(request, names),
    gemini: () => ({ contents: contents.map((content) => geminiContent(content, target)) })
  }
  const messages = bodies[target.dialect]()[wire[target.dialect].request.messagesKey]
  return Array.isArray(messages) ? messages.filter(isJson) : []
}

/** What is said in a conversation: texts, calls, results and media, without states and the borders of messages. */
const saidIn = (contents: ReadonlyArray<Content>): ReadonlyArray<unknown> =>
  contents.flatMap(({ parts, role }) =>
    parts.flatMap((part): ReadonlyArray<unknown> => {
      if (part.functionCall !== undefined) return [{ role, call: part.functionCall }]
      if (part.functionResponse !== undefined) {
        const { id, name } = part.functionResponse
        const { media, text } = responseContent(part)
        return [{ role, id, name, text }, ...media.map(({ inlineData }) => ({ role, inlineData }))]
      }
      if (part.inlineData !== undefined) return [{ role, inlineData: part.inlineData }]
      return part.thought === true || part.text === undefined || part.text === "" ? [] : [{ role, text: part.text }]
    })
  )

/** As it is once lone surrogates, which no server takes, are replaced. */
const wellFormed = (said: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  JSON.parse(wellFormedJson(JSON.stringify(said)))

/** Those of a kind in their order: where a result is a text, its media stands behind all results of the turn. */
const sorted = (said: ReadonlyArray<unknown>) => ({
  words: said.filter((one) => isJson(one) && !("inlineData" in one)),
  media: said.filter((one) => isJson(one) && "inlineData" in one)
})

describe.each(dialects)("a conversation in the dialect %s", (dialect) => {
  const target: Target = { dialect, server, model: "m" }
  it.prop(
    "is the same after it was written and read, and a state goes back with every field",
    [Schema.NonEmptyArray(Turn).check(Schema.isMaxLength(5))],
    ([turns]) => {
      const contents = conversationOf(turns, target)
      const asked: ReadonlyArray<Content> = [...contents, { role: "user", parts: [{ text: "and now?" }] }]
      const messages = messagesOf(asked, target)
      const read = wire[dialect].messages.read(messages).map(({ content }) => content)
      assert.deepStrictEqual(sorted(wellFormed(saidIn(read))), sorted(wellFormed(saidIn(asked))))
      const carriers = messages
        .flatMap((message) => [message, ...(Array.isArray(message["content"]) ? message["content"] : [])])
        .filter((one) => isJson(one) && one["signature"] === "s")
      const states = turns.flatMap(({ calls, state }) =>
        state === null || dialect === "gemini" || (dialect === "chat" && calls.length === 0) ? [] : [state]
      )
      assert.strictEqual(carriers.length, states.length)
      for (const [at, state] of states.entries()) {
        for (const [key, value] of Object.entries(state)) {
          if (ownKeys.has(key)) continue
          assert.strictEqual(JSON.stringify(carriers[at]?.[key]), JSON.stringify(value))
        }
      }
    },
    { arbitrary: { runs: runsOf(1_000), seed: dialect } }
  )
})

describe("messages that clients write in another form", () => {
  const readIn = (dialect: Dialect, messages: ReadonlyArray<object>) =>
    wire[dialect].messages.read(messages).map(({ content }) => content)

  it("contents of the Gemini API have the names of Python, and may name no role", () => {
    const camel: ReadonlyArray<Content> = [
      { role: "user", parts: [{ text: "look" }, image] },
      { role: "model", parts: [{ functionCall: { name: "look", args: { a_b: 1 } }, thoughtSignature: "s" }] },
      { role: "user", parts: [{ functionResponse: { name: "look", response: { is_so: true } } }] }
    ]
    const snake = [
      { parts: [{ text: "look" }, { inline_data: { mime_type: "image/png", data: "aGVsbG8=" } }] },
      { role: "model", parts: [{ function_call: { name: "look", args: { a_b: 1 } }, thought_signature: "s" }] },
      { role: "function", parts: [{ function_response: { name: "look", response: { is_so: true } } }] }
    ]
    assert.deepStrictEqual<unknown>(readIn("gemini", snake), camel)
    assert.strictEqual(readIn("gemini", camel)[0], camel[0])
  })

  it("answers of Chat Completions have reasoning, refusals and arguments as an object", () => {
    const answer = {
      role: "assistant",
      content: null,
      reasoning_content: "I think.",
      refusal: "no",
      tool_calls: [{ id: "c", type: "function", function: { name: "look", arguments: { a: 1 } } }]
    }
    assert.deepStrictEqual<unknown>(readIn("chat", [answer]), [
      {
        role: "model",
        parts: [
          { text: "I think.", thought: true },
          { text: "no" },
          { functionCall: { id: "c", name: "look", args: { a: 1 } } }
        ]
      }
    ])
  })

  it("answers of Chat Completions have the calls of its first form, and may begin with their thought", () => {
    const messages = [
      {
        role: "assistant",
        content: "<think>hm</think>\n\nI look.",
        function_call: { name: "look", arguments: '{"a":1}' }
      },
      { role: "function", name: "look", content: "seen" },
      { role: "user", content: "<think>mine</think>" }
    ]
    assert.deepStrictEqual<unknown>(readIn("chat", messages), [
      {
        role: "model",
        parts: [{ text: "hm", thought: true }, { text: "I look." }, { functionCall: { name: "look", args: { a: 1 } } }]
      },
      { role: "user", parts: [{ functionResponse: { name: "look", response: "seen" } }] },
      { role: "user", parts: [{ text: "<think>mine</think>" }] }
    ])
  })

  it("what Anthropic's server compacted is a text, where it can be read", () => {
    const content = [
      { type: "compaction", content: "The user built a site." },
      { type: "compaction", content: null, encrypted_content: "x" },
      { type: "text", text: "Done." }
    ]
    const [group] = wire.anthropic.messages.read([{ role: "assistant", content }])
    assert.deepStrictEqual<unknown>(group?.content.parts, [
      { text: "The user built a site." },
      { text: JSON.stringify(content[1]), thought: true },
      { text: "Done." }
    ])
    // It goes back as it came.
    assert.deepStrictEqual(
      group?.slots.map((slot) => slot !== undefined),
      [false, false, true]
    )
  })
})
