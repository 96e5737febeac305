import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { call, type Content, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { wellFormedJson } from "../../../src/domain/text/JsonText.ts"
import * as Anthropic from "../../../src/domain/wire/anthropic/Request.ts"
import { chatBody } from "../../../src/domain/wire/chat/Request.ts"
import { dialects as everyDialect } from "../../../src/domain/wire/Dialect.ts"
import { dialogueOf } from "../../../src/domain/wire/Dialogue.ts"
import { geminiContent } from "../../../src/domain/wire/gemini/Request.ts"
import { takesSchema } from "../../../src/domain/wire/gemini/Request.ts"
import {
  formOf,
  learnedFrom,
  learnedFromFailure,
  nothingLearned,
  withLearned
} from "../../../src/domain/wire/LearnedForm.ts"
import { carriedState, isCarried, nativeContent } from "../../../src/domain/wire/ModelState.ts"
import { responsesBody } from "../../../src/domain/wire/responses/Request.ts"
import { toolDeclarations, toolNames } from "../../../src/domain/wire/ToolDeclarations.ts"
import { codecs, type DialectCodec, signatureOf as signed } from "../../support/GatewayDialects.ts"
import { runsOf } from "../../support/runs.ts"
import { strict } from "../../support/StrictProviders.ts"

/** Requests of every dialect, from conversations that a history may hold: with and without ids, out of order, with holes. */

type Json = Readonly<Record<string, unknown>>
const Messages = Schema.decodeUnknownSync(
  Schema.Array(
    Schema.Struct({ role: Schema.String, content: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })
  )
)
const Items = Schema.decodeUnknownSync(Schema.Array(Schema.Record(Schema.String, Schema.Unknown)))

const names = toolNames([])
const thinking = { type: "thinking", thinking: "hm", signature: signed("s1") }
const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: signed("e") }

const ids = [undefined, undefined, "call_1", "call_2", "toolu_a", "a.0", "", "x".repeat(80)]

/** A part of a conversation, as small numbers choose it. */
const Piece = Schema.Struct({
  isUser: Schema.Boolean,
  kind: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })),
  id: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: ids.length - 1 })),
  words: Schema.String
})
const Pieces = Schema.Array(Piece).check(Schema.isMaxLength(30))

const partOf = ({ id, isUser, kind, words }: typeof Piece.Type, at: number): Part => {
  const own = ids[id]
  const marked = `word${at} ${words}`
  if (isUser) {
    if (kind < 3) return text(marked)
    if (kind === 3) return text("  ")
    if (kind === 4) return { inlineData: { mimeType: "image/png", data: "aGk=" } }
    if (kind === 5) return { inlineData: { mimeType: "audio/wav", data: "aGk=" } }
    const made = response(kind < 8 ? "look" : "read", kind === 6 ? { error: marked } : { output: marked }, own)
    return kind === 9
      ? {
          functionResponse: {
            ...made.functionResponse,
            name: "read",
            parts: [{ inlineData: { mimeType: "image/png", data: "aGk=" } }]
          }
        }
      : made
  }
  if (kind < 2) return text(marked)
  if (kind === 2) return { text: "", thoughtSignature: signatureOf("anthropic", thinking) }
  if (kind === 3) return { text: "", thoughtSignature: signatureOf("responses", reasoning) }
  if (kind === 4) return { text: marked, thought: true }
  if (kind === 5) return { ...call("look", { at }, own), thoughtSignature: "Z29vZ2xl" }
  return call(kind < 8 ? "look" : "read", kind === 9 ? undefined : { at }, own)
}

const contentsOf = (pieces: typeof Pieces.Type): ReadonlyArray<Content> =>
  pieces.map((piece, at) => (piece.isUser ? user(partOf(piece, at)) : model(partOf(piece, at))))

/** What every dialect takes beside a conversation. */
const Options = Schema.Struct({
  temperature: Schema.optionalKey(Schema.Literals([0, 0.5, 1, 2])),
  topP: Schema.optionalKey(Schema.Literals([0, 0.9, 1])),
  thinkingBudget: Schema.optionalKey(Schema.Literals([0, 500, 4_000])),
  mustCall: Schema.optionalKey(Schema.Boolean),
  tools: Schema.Literals([0, 1, 2])
})
type Extra = Partial<
  Pick<
    Anthropic.AnthropicRequest,
    | "model"
    | "mustCall"
    | "responseSchema"
    | "server"
    | "systemInstruction"
    | "temperature"
    | "thinkingBudget"
    | "tools"
    | "topP"
  >
>
const extraOf = ({ tools, ...options }: typeof Options.Type): Extra => ({
  ...options,
  tools: [
    { name: "look", parameters: { type: "object" } },
    { name: "read", description: "Reads.", parameters: {} }
  ].slice(0, tools)
})

const server = "api.example"
const models = { anthropic: "claude-sonnet-4-5", chat: "llama", gemini: "gemini-3", responses: "gpt-5" }
const signatureOf = (dialect: keyof typeof models, state: unknown, name = models[dialect]) =>
  carriedState({ dialect, server, model: name }, state)

const anthropic = (contents: ReadonlyArray<Content>, extra: Partial<Anthropic.AnthropicRequest> = {}) =>
  Anthropic.requestBody(
    { model: models.anthropic, server, contents, tools: [], maxOutputTokens: 1_000, ...extra },
    names
  )
const responses = (contents: ReadonlyArray<Content>, extra: Extra = {}) =>
  responsesBody({ model: models.responses, server, contents, tools: [], ...extra }, names)
const chat = (contents: ReadonlyArray<Content>, extra: Extra = {}) =>
  chatBody({ model: models.chat, server, contents, tools: [], ...extra }, names, false)

const toGemini = { dialect: "gemini", server, model: "gemini-3-pro" } as const

const question = user(text("q"))
/** A question, a call that it led to, and the response. */
const looked = (given: unknown, { args = {}, id = "c" }: { readonly args?: unknown; readonly id?: string } = {}) => [
  question,
  model(call("look", args, id)),
  user(response("look", given, id))
]

/** The words of the user and the results of tools, which no dialect may lose. */
const wordsOf = (contents: ReadonlyArray<Content>): ReadonlyArray<string> =>
  contents.flatMap(({ parts, role }) =>
    role === "user" ? parts.flatMap((part) => /word\d+ [^]*?(?=$|"\})/.exec(part.text ?? "")?.[0] ?? []) : []
  )

const dialects: Readonly<
  Record<
    string,
    readonly [
      bodyOf: (contents: ReadonlyArray<Content>, extra?: Extra) => Json,
      codec: DialectCodec,
      key: string,
      refusal: (body: unknown) => string | undefined,
      models: ReadonlyArray<string>
    ]
  >
> = {
  Messages: [
    anthropic,
    codecs.anthropic,
    "messages",
    strict.Messages,
    ["claude-sonnet-4-5", "claude-3-5-haiku-latest", "claude-opus-4-8", "claude-opus-6"]
  ],
  Responses: [responses, codecs.responses, "input", strict.Responses, ["gpt-5", "gpt-4o"]],
  // Of its servers, OpenAI's own refuse most.
  "Chat Completions": [
    (contents, extra) => chat(contents, { ...extra, server: "api.openai.com" }),
    codecs.chat,
    "messages",
    strict["Chat Completions"],
    ["llama"]
  ]
}

const withoutMarks = (value: unknown): string =>
  JSON.stringify(value).replaceAll(',"cache_control":{"type":"ephemeral"}', "")

describe.each(Object.entries(dialects))(
  "a request in the dialect of %s",
  (_, [bodyOf, codec, key, refusal, models]) => {
    it.prop(
      "is refused by no server, whatever is asked for beside the conversation, and loses no word of the user",
      [Pieces, Options, Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: models.length - 1 }))],
      ([pieces, options, at]) => {
        const contents = [user(text("go")), ...contentsOf(pieces)]
        const body = bodyOf(contents, { ...extraOf(options), model: models[at] ?? "" })
        assert.isUndefined(refusal(body))
        // As many tools as the conversation has calls of.
        assert.deepStrictEqual(codec.problems(bodyOf(contentsOf(pieces), extraOf({ tools: 2 }))), [])
        const sent = wellFormedJson(JSON.stringify(body))
        for (const words of wordsOf(contents)) assert.include(sent, JSON.stringify(words.toWellFormed()).slice(1, -1))
        for (const [index, { isUser, kind }] of pieces.entries()) {
          if (isUser && (kind < 3 || kind > 5)) assert.include(sent, `word${index} `)
        }
      },
      { arbitrary: { runs: runsOf(1_000, 150) } }
    )

    it.prop(
      "extends the one before, byte for byte",
      [Pieces],
      ([pieces]) => {
        const contents = contentsOf(pieces)
        const whole = Items(bodyOf(contents)[key])
        for (let end = 1; end < contents.length; end += 1) {
          // A request is sent after the user's turn, when every call is answered.
          if (contents[end - 1]?.role !== "user" || contents[end]?.role !== "model") continue
          const before = Items(bodyOf(contents.slice(0, end))[key])
          assert.strictEqual(withoutMarks(whole.slice(0, before.length)), withoutMarks(before))
        }
      },
      { arbitrary: { runs: runsOf(300) } }
    )
  }
)

it.prop(
  "contents for the Gemini API have a signature at the first call of each turn, and none of another provider",
  [Pieces],
  ([pieces]) => {
    const contents = contentsOf(pieces)
      .map(({ parts, role }) => ({
        role,
        parts: [...parts, ...(role === "model" ? [call("look", {}), call("read", {})] : [])]
      }))
      .map((content) => geminiContent(content, { dialect: "gemini", server, model: "gemini-3" }))
    for (const { parts } of contents) {
      const [first, second] = parts.filter((part) => part.functionCall !== undefined)
      if (first !== undefined) assert.isNotEmpty(first.thoughtSignature ?? "")
      if (second !== undefined && second.functionCall?.name === "read") assert.isUndefined(second.thoughtSignature)
      for (const part of parts) assert.isFalse(isCarried(part.thoughtSignature ?? ""))
    }
  },
  { arbitrary: { runs: runsOf(300) } }
)

describe("the dialogue", () => {
  it("pairs calls without ids by name and order, and calls of one id twice", () => {
    const turns = dialogueOf(
      [
        user(text("go")),
        model(call("a", {}), call("b", {}), call("a", {}), call("c", {}, "x.1")),
        user(response("b", "B"), response("a", "A1"), response("c", "C", "x.1"), response("a", "A2")),
        model(call("c", {}, "call_1")),
        user(response("c", "again", "call_1"))
      ],
      { dialect: "anthropic", server, model: models.anthropic }
    )
    const results = turns.flatMap((turn) => (turn.role === "user" ? turn.results : []))
    assert.deepStrictEqual(
      results.map(({ id, text }) => `${id} ${text}`),
      ["call_1 A1", "call_2 B", "call_3 A2", "call_4 C", "call_5 again"]
    )
  })

  it("answers a call without a result, and keeps a result without a call as words", () => {
    const turns = dialogueOf([model(call("a", {}, "one")), user(response("a", { output: "late" }, "two"))], {
      dialect: "chat",
      server,
      model: models.chat
    })
    assert.deepStrictEqual(turns.at(-1), {
      role: "user",
      results: [{ id: "one", text: "(no result)", isError: true, media: [] }],
      parts: [{ text: "[result of a] late" }]
    })
  })
})

describe("requests", () => {
  it("thinking goes back to its own provider, before what it led to", () => {
    const contents = [
      question,
      model(
        { text: "", thoughtSignature: signatureOf("anthropic", thinking) },
        { text: "", thoughtSignature: signatureOf("responses", reasoning) },
        call("look", { a: 1 }, "c1")
      ),
      user(response("look", { output: "seen" }, "c1"))
    ]
    const messages = Messages(anthropic(contents)["messages"])
    assert.deepStrictEqual(messages[1]?.content, [
      thinking,
      { type: "tool_use", id: "c1", name: "look", input: { a: 1 } }
    ])
    assert.deepStrictEqual(Items(responses(contents)["input"]).slice(1), [
      reasoning,
      { type: "function_call", call_id: "c1", name: "look", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "c1", output: "seen" }
    ])
  })

  it("Anthropic's prefix is marked: instruction, the end, and the end of the request before", () => {
    const contents = [user(text("1")), model(text("2")), user(text("3")), model(text("4")), user(text("5"))]
    const body = anthropic(contents, { systemInstruction: "be brief", tools: [{ name: "a", parameters: {} }] })
    const marked = (value: unknown) => JSON.stringify(value).includes("cache_control")
    assert.isTrue(marked(body["system"]))
    assert.isFalse(marked(body["tools"]))
    assert.deepStrictEqual(Messages(body["messages"]).map(marked), [false, false, true, false, true])
  })

  it("a budget of thinking becomes what the model takes", () => {
    const extra = { thinkingBudget: 2_000, temperature: 0 }
    const old = anthropic([question], extra)
    assert.deepStrictEqual(old["thinking"], { type: "enabled", budget_tokens: 2_000 })
    assert.strictEqual(old["max_tokens"], 3_024)
    assert.strictEqual(anthropic([question], { ...extra, maxOutputTokens: 9_000 })["max_tokens"], 9_000)
    assert.notProperty(old, "temperature")
    const current = anthropic([question], { ...extra, model: "claude-opus-4-8" })
    assert.deepStrictEqual(current["thinking"], { type: "adaptive" })
    // Calls that were made without thinking.
    assert.notProperty(anthropic(looked("r"), extra), "thinking")
    const thought = { text: "", thoughtSignature: signatureOf("anthropic", thinking) }
    const thoughtful = [question, model(thought, call("a", {}, "c")), user(response("a", "r", "c"))]
    assert.property(anthropic(thoughtful, extra), "thinking")
    assert.notProperty(anthropic([question], { ...extra, mustCall: true }), "thinking")
    assert.strictEqual(anthropic([question], { temperature: 2 })["temperature"], 1)
    assert.notProperty(anthropic([question], { model: "claude-opus-5", temperature: 1 }), "temperature")
  })

  const boundTo = [
    "claude-opus-5-5",
    "claude-sonnet-5-5-20260928",
    "claude-fable-5-1",
    "claude-opus-5",
    "claude-sonnet-4-5"
  ]
  it("thinking that no longer applies is left out by the models that would refuse it", () => {
    const contents = [
      question,
      model(
        ...boundTo.map((name) => ({ text: "", thoughtSignature: signatureOf("anthropic", thinking, name) })),
        text("a")
      ),
      user(text("more"))
    ]
    for (const [name, isBound] of [
      ["claude-opus-5-5", true],
      ["claude-sonnet-5-5-20260928", true],
      ["claude-fable-5-1", true],
      ["claude-opus-5", false],
      ["claude-sonnet-4-5", false]
    ] as const) {
      const request = { model: name, server, contents, tools: [], maxOutputTokens: 1_000 }
      const expected = isBound
        ? { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } }
        : undefined
      assert.deepStrictEqual(anthropic(contents, { model: name })["thinking"], expected, name)
      assert.deepStrictEqual(Anthropic.countBody(request, names)["thinking"], expected)
      assert.strictEqual(
        Anthropic.betaOf(Anthropic.requestBody(request, names)),
        isBound ? "thinking-binding-controls-2026-08-01" : undefined
      )
      assert.notProperty(anthropic([question], { model: name }), "thinking")
    }
  })

  it("a state goes back unchanged to the model at the server that wrote it, and to nobody else", () => {
    const state = { type: "thinking", id: "rs_1", signature: "s", reasoning_content: "hm", deep: [{ a: null }] }
    for (const from of everyDialect) {
      const here = { dialect: from, server, model: models[from] }
      const signed = (at: typeof here) =>
        model(
          { text: "", thoughtSignature: carriedState(at, from === "gemini" ? "c2ln" : state) },
          call("look", {}, "functions.look:0")
        )
      const sentTo = (at: typeof here) => {
        const contents = [question, signed(at), user(response("look", "seen", "functions.look:0"))]
        const gemini = { dialect: "gemini", server, model: models.gemini } as const
        const bodies = {
          anthropic: () => anthropic(contents),
          chat: () => chat(contents),
          gemini: () => contents.map((content) => geminiContent(content, gemini)),
          responses: () => responses(contents)
        }
        return everyDialect.filter((to) => /rs_1|hm|c2ln/.test(JSON.stringify(bodies[to]())))
      }
      assert.deepStrictEqual(sentTo(here), [from])
      assert.deepStrictEqual(sentTo({ ...here, server: "api.other" }), [])
      assert.deepStrictEqual(sentTo({ ...here, model: "another" }), [])
    }
    const [, answer] = Items(chat([question, model(call("look", {}, "functions.look:0"))])["messages"])
    assert.include(JSON.stringify(answer), "functions.look:0")
    const own = model({ ...call("look", {}), thoughtSignature: signatureOf("gemini", "c2ln") })
    assert.strictEqual(nativeContent(own).parts[0]?.thoughtSignature, "c2ln")
  })

  it("a call is forced where the model allows it, and asked for in words elsewhere", () => {
    const request = { mustCall: true, systemInstruction: "be brief", tools: [{ name: "a", parameters: {} }] }
    for (const [name, isForced] of [
      ["claude-sonnet-5", true],
      ["claude-opus-5", true],
      ["claude-fable-5", true],
      ["claude-sonnet-5-5", false],
      ["claude-opus-5-5", false],
      ["claude-fable-5-2", false],
      ["claude-opus-6", false]
    ] as const) {
      const body = anthropic([question], { ...request, model: name })
      assert.deepStrictEqual(body["tool_choice"], isForced ? { type: "any" } : undefined, name)
      assert.strictEqual(JSON.stringify(body["system"]).includes("Answer with a call of one of the tools"), !isForced)
    }
  })

  it("a schema of the answer goes to the API where it takes one, else into the instruction", () => {
    const closed = {
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"],
      additionalProperties: false
    }
    const open = { type: "object", properties: { a: { anyOf: [closed, { type: "object" }] } }, required: ["a"] }
    const asked = [question]
    for (const [responseSchema, strict] of [
      [closed, true],
      [open, false],
      [{ ...closed, required: [] }, false]
    ] as const) {
      const format = { name: "answer", schema: responseSchema, strict }
      assert.deepStrictEqual(responses(asked, { responseSchema })["text"], {
        format: { type: "json_schema", ...format }
      })
      const wanted = { type: "json_schema", json_schema: format }
      assert.deepStrictEqual(chat(asked, { responseSchema })["response_format"], wanted)
    }
    for (const [name, isTaken] of [
      ["claude-opus-4-20250514", false],
      ["claude-opus-4-1", false],
      ["claude-3-7-sonnet-latest", false],
      ["claude-fable-5", false],
      ["claude-haiku-4-5-20251001", true],
      ["claude-sonnet-5", true]
    ] as const) {
      const body = anthropic(asked, { model: name, responseSchema: closed, systemInstruction: "Be brief." })
      const config = { format: { type: "json_schema", schema: closed } }
      assert.deepStrictEqual(body["output_config"], isTaken ? config : undefined, name)
      assert.strictEqual(JSON.stringify(body["system"]).includes("fits this JSON schema"), !isTaken, name)
      assert.include(JSON.stringify(body["system"]), "Be brief.")
    }
    assert.deepStrictEqual(
      [takesSchema("gemini-2.5-pro", true), takesSchema("gemini-2.5-pro", false), takesSchema("gemini-3-pro", true)],
      [false, true, true]
    )
  })

  it("OpenAI's models that think take no sampling", () => {
    const request = {
      server,
      contents: [question],
      tools: [],
      temperature: 0.5,
      thinkingBudget: 1_000,
      maxOutputTokens: 5
    }
    const body = responsesBody({ ...request, model: "gpt-5.1" }, names)
    assert.notProperty(body, "temperature")
    assert.deepStrictEqual(body["reasoning"], { effort: "low" })
    assert.strictEqual(body["max_output_tokens"], 16)
    assert.strictEqual(chatBody({ ...request, model: "gpt-4o" }, names, true)["max_completion_tokens"], 5)
    assert.strictEqual(chatBody({ ...request, model: "llama" }, names, false)["max_tokens"], 5)
  })

  it.each([
    ["image/PNG", "inline"],
    ["image/png", "https://a.test/f"],
    ["image/*", "https://a.test/f"],
    ["image/svg+xml", "inline"],
    ["application/pdf", "inline"],
    ["application/pdf", "https://a.test/f"],
    ["image/png", "gs://bucket/f"],
    ["audio/wav", "inline"]
  ])("media of the type %s, %s, goes as each dialect takes it, or in words", (mimeType, place) => {
    const isInline = place === "inline"
    const part: Part = isInline
      ? { inlineData: { mimeType, data: "aGk=" } }
      : { fileData: { mimeType, fileUri: place } }
    const type = mimeType.toLowerCase()
    const isWeb = place.startsWith("https:")
    const isImage = type.startsWith("image/")
    const isSent = (isInline || isWeb) && (isImage || type === "application/pdf")
    const url = isInline ? `data:${type};base64,aGk=` : place
    const words = isInline ? `[${mimeType} of 2 bytes]` : `[${mimeType} at ${place}]`
    const contents = [user(text("q"), part)]
    const file = { filename: "file.pdf", file_data: url }
    const shown = (isTaken: boolean, isText: string, taken: Json) => (isTaken ? taken : { type: isText, text: words })
    const [item] = Items(responses(contents)["input"])
    assert.deepStrictEqual(item, {
      role: "user",
      content: [
        { type: "input_text", text: "q" },
        shown(
          isSent,
          "input_text",
          isImage
            ? { type: "input_image", detail: "auto", image_url: url }
            : { type: "input_file", ...(isWeb ? { file_url: url } : file) }
        )
      ]
    })
    const isChatFile = isSent && (isImage || isInline)
    const taken = isImage ? { type: "image_url", image_url: { url } } : { type: "file", file }
    assert.deepStrictEqual(Items(chat(contents)["messages"]), [
      { role: "user", content: isChatFile ? [{ type: "text", text: "q" }, taken] : `q\n\n${words}` }
    ])
    const source = isInline ? { type: "base64", media_type: type, data: "aGk=" } : { type: "url", url }
    assert.deepStrictEqual(Messages(anthropic(contents)["messages"])[0]?.content, [
      { type: "text", text: "q" },
      {
        ...shown(isSent && type !== "image/svg+xml", "text", { type: isImage ? "image" : "document", source }),
        cache_control: { type: "ephemeral" }
      }
    ])
  })

  it("the whole body of a request has what was asked for", () => {
    const tools = [{ name: "look", description: "Looks.", parameters: { type: "object" } }]
    const request = { server, contents: [question], tools, systemInstruction: "be brief", mustCall: true }
    const sampled = { ...request, temperature: 0.5, topP: 0.9, thinkingBudget: 0, maxOutputTokens: 50 }
    const fn = { name: "look", description: "Looks.", parameters: { type: "object" } }
    const openAi = { stream: true, tool_choice: "required" }
    const marked = { cache_control: { type: "ephemeral" } }
    assert.deepStrictEqual(responsesBody({ ...sampled, model: "gpt-4o" }, names), {
      ...openAi,
      model: "gpt-4o",
      instructions: "be brief",
      tools: [{ type: "function", ...fn, strict: false }],
      input: [{ role: "user", content: [{ type: "input_text", text: "q" }] }],
      store: false,
      max_output_tokens: 50,
      temperature: 0.5,
      top_p: 0.9
    })
    assert.deepStrictEqual(chatBody({ ...sampled, model: "gpt-4o" }, names, true), {
      ...openAi,
      model: "gpt-4o",
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "q" }
      ],
      tools: [{ type: "function", function: fn }],
      stream_options: { include_usage: true },
      max_completion_tokens: 50,
      temperature: 0.5,
      top_p: 0.9
    })
    const own = { ...sampled, model: "claude-sonnet-4-5", maxOutputTokens: 50, topK: 4 }
    assert.deepStrictEqual(Anthropic.requestBody(own, names), {
      model: "claude-sonnet-4-5",
      tools: [{ name: "look", description: "Looks.", input_schema: { type: "object" } }],
      system: [{ type: "text", text: "be brief", ...marked }],
      messages: [{ role: "user", content: [{ type: "text", text: "q", ...marked }] }],
      max_tokens: 50,
      stream: true,
      tool_choice: { type: "any" },
      temperature: 0.5,
      top_k: 4
    })
    // Of temperature and top_p it takes one.
    const { temperature: _, ...byShare } = own
    assert.deepInclude(Anthropic.requestBody(byShare, names), { top_p: 0.9, top_k: 4 })
    const compacted = { type: "compaction", id: "k" }
    const carried = (...blocks: ReadonlyArray<object>) =>
      Anthropic.betaOf(
        Anthropic.countBody(
          {
            ...own,
            model: "claude-opus-5-5",
            contents: [
              model(
                ...blocks.map((block) => ({
                  text: "",
                  thoughtSignature: signatureOf("anthropic", block, "claude-opus-5-5")
                })),
                text("a")
              )
            ]
          },
          names
        )
      )
    const [compact, binding] = ["compact-2026-01-12", "thinking-binding-controls-2026-08-01"]
    assert.deepStrictEqual(
      [carried(), carried(thinking), carried(compacted), carried(thinking, compacted)],
      [undefined, binding, compact, `${compact},${binding}`]
    )
  })

  it.each([
    ["o3", 4_095, "low"],
    ["openai/gpt-5", 4_096, "medium"],
    ["gpt-6.1-sol", 16_383, "medium"],
    ["codex-mini", 16_384, "high"],
    ["gpt-5-chat", 16_384, undefined],
    ["gpt-4o", 16_384, undefined],
    ["o3", 0, undefined]
  ] as const)("%s thinks with the effort of %i tokens: %s", (name, thinkingBudget, effort) => {
    const request = {
      model: name,
      server,
      contents: [question],
      tools: [],
      thinkingBudget,
      temperature: 1,
      topP: 1
    }
    const [whole, chats] = [responsesBody(request, names), chatBody(request, names, true)]
    const thinks = effort !== undefined || thinkingBudget === 0
    assert.deepStrictEqual(whole["reasoning"], effort === undefined ? undefined : { effort })
    assert.strictEqual(chats["reasoning_effort"], effort)
    assert.deepStrictEqual(whole["include"], thinks ? ["reasoning.encrypted_content"] : undefined)
    for (const body of [whole, chats])
      assert.deepStrictEqual(["temperature" in body, "top_p" in body], [!thinks, !thinks])
  })

  it("Mistral's models get ids of nine characters, and no user's message right after results", () => {
    const contents = [
      question,
      model(call("shot", {}, "toolu_01"), call("shot", {}, "Ab3dEf9hi"), call("shot", {}, "Ab3dEf9hi")),
      user(
        ...["toolu_01", "Ab3dEf9hi", "Ab3dEf9hi"].map((id) => response("shot", { output: "taken" }, id)),
        text("go on")
      )
    ]
    const messagesTo = (name: string, server: string) =>
      Items(chatBody({ model: name, server, contents, tools: [] }, names, false)["messages"]).map(
        ({ role, tool_call_id: id }) => id ?? role
      )
    const own = ["user", "assistant", "call00001", "Ab3dEf9hi", "call00003", "assistant", "user"]
    assert.deepStrictEqual(messagesTo("devstral-small-2505", "local"), own)
    assert.deepStrictEqual(messagesTo("open-mixtral-8x22b", "local"), own)
    assert.deepStrictEqual(messagesTo("labs-1", "api.mistral.ai"), own)
    const others = ["user", "assistant", "toolu_01", "Ab3dEf9hi", "call_3", "user"]
    assert.deepStrictEqual(messagesTo("astraline", "api.openai.com"), others)
  })

  it.each([
    ["a string of JSON", '{"a":1}', { a: 1 }],
    ["null", null, {}],
    ["a list", [1], { value: [1] }],
    ["words", "so", { value: "so" }]
  ])("arguments that are no object become one: %s", (_, args, expected) => {
    const contents = looked({ output: "r" }, { args, id: "c1" })
    const [, asked] = Items(chat(contents)["messages"])
    assert.deepInclude(asked, {
      tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: JSON.stringify(expected) } }]
    })
    assert.deepInclude(Items(responses(contents)["input"])[1], { arguments: JSON.stringify(expected) })
    assert.deepInclude(Messages(anthropic(contents)["messages"])[1]?.content[0], { input: expected })
    const [part] = geminiContent(model(call("look", args, "c1")), toGemini).parts
    assert.deepStrictEqual(part?.functionCall?.args, expected)
  })

  it("an id of any length goes back to its server, but to those that take short ones alone", () => {
    const id = `call_1__thought__${"A".repeat(900)}+/=`
    const contents = looked("r", { id })
    const idTo = (host: string) =>
      Items(chatBody({ model: "m", server: host, contents, tools: [] }, names, false)["messages"])[2]?.["tool_call_id"]
    assert.strictEqual(idTo("litellm.local:4000"), id)
    assert.strictEqual(idTo("api.openai.com"), "call_1")
    assert.strictEqual(idTo("mine.openai.azure.com"), "call_1")
  })

  it.each([
    ["openrouter.ai", "anthropic/claude-opus-4.5", "call_1"],
    ["api.githubcopilot.com", "gpt-5-mini", "functions.look:0"],
    ["openrouter.ai", "moonshotai/kimi-k2", "functions.look:0"],
    ["bedrock.local", "us.anthropic.claude-sonnet-4-5-v1:0", "call_1"],
    ["vllm.local", "openai/gpt-oss-120b", "functions.look:0"]
  ])("an id that another model made is what the model behind a relay takes: %s, %s", (host, model, expected) => {
    const contents = looked("r", { id: "functions.look:0" })
    const { messages } = chatBody({ model, server: host, contents, tools: [] }, names, false)
    assert.strictEqual(Items(messages)[2]?.["tool_call_id"], expected)
  })

  it.each([["seen"], [["seen"]], [null]])("a response is an object for the Gemini API: %j", (given) => {
    const [part] = geminiContent(user(response("look", given, "c")), toGemini).parts
    assert.deepStrictEqual(part?.functionResponse, { id: "c", name: "look", response: { output: given ?? "" } })
  })

  const limited = { max_tokens: "9" }
  it.each<readonly [detail: string, parameters: object | undefined, values: object]>([
    ["Unrecognized request argument supplied: stream_options", { stream_options: undefined }, {}],
    ["Use 'max_completion_tokens', as max_tokens is not supported", { max_tokens: "max_completion_tokens" }, {}],
    ["Unsupported parameter: 'reasoning.effort' is not supported with this model.", { reasoning: undefined }, {}],
    ["This model does not support the parameter. `temperature` is not supported", { temperature: undefined }, {}],
    ["temperature: Extra inputs are not permitted", { temperature: undefined }, {}],
    [
      `[{"type":"extra_forbidden","loc":["body","temperature"],"msg":"Extra inputs are not permitted"}]`,
      { temperature: undefined },
      {}
    ],
    ["`temperature` is deprecated for this model.", { temperature: undefined }, {}],
    ["`temperature` and `top_p` cannot both be specified for this model.", { top_p: undefined }, {}],
    ['"thinking.type.enabled" is not supported for this model.', { thinking: undefined }, {}],
    ["adaptive thinking is not supported on this model", { thinking: undefined }, {}],
    // A value alone.
    ["temperature: Input should be less than or equal to 1", {}, { temperature: "0" }],
    ["`temperature` may only be set to 1 when thinking is enabled", {}, { temperature: "0" }],
    ["`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled", {}, { top_p: "1" }],
    [
      "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags",
      {},
      { thinking: "{}" }
    ],
    ["`max_tokens` must be less than or equal to `8192`", {}, limited],
    ["max_tokens is too large: 9. This model supports at most 8 completion tokens", {}, limited],
    ["invalid temperature: only 1 is allowed for this model", {}, { temperature: "0" }],
    ["Unsupported value: 'temperature' does not support 0 with this model.", {}, { temperature: "0" }],
    ["Unsupported value: 'reasoning_effort' does not support 'minimal'", {}, { reasoning_effort: `"minimal"` }],
    // What it quotes.
    [
      "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 4, 'x'), 'msg': 'Extra inputs are not permitted', 'input': 'set max_tokens and top_p, stream_options is not supported'}]",
      undefined,
      {}
    ],
    ["messages.4.temperature: Extra inputs are not permitted", undefined, {}],
    ["unsupported content: 'We set max_tokens and temperature'", undefined, {}],
    // Without it, the answer is another one.
    ["tool_choice 'required' is incompatible with thinking enabled", undefined, {}],
    ["Unsupported parameter: 'tool_choice'", undefined, {}],
    ["The temperature of the room is unknown", undefined, {}],
    ["An unexpected error occurred while thinking", undefined, {}],
    ["Unknown error during reasoning", undefined, {}],
    ["top_k is not supported", undefined, {}],
    ["no such model", undefined, {}]
  ])("what a refusal tells of parameters: %s", (detail, parameters, values) => {
    const body = {
      stream_options: {},
      max_tokens: 9,
      temperature: 0,
      top_p: 1,
      reasoning: {},
      thinking: {},
      reasoning_effort: "minimal",
      tool_choice: "required"
    }
    const learned = learnedFrom(nothingLearned, detail, body)
    assert.deepStrictEqual(learned && Object.fromEntries(learned.parameters), parameters)
    if (learned === undefined) return
    assert.deepStrictEqual(
      [...learned.values],
      Object.entries(values).map(([name, value]) => `${name} ${value}`)
    )
    const next = withLearned(body, learned)
    for (const name of Object.keys({ ...parameters, ...values })) {
      assert.notProperty(next, name)
      // Another value is sent.
      if (name in values) assert.propertyVal(withLearned({ [name]: 7 }, learned), name, 7)
    }
    assert.isUndefined(learnedFrom(learned, detail, next))
  })

  it("each refused value of a parameter is left out", () => {
    const learned = ["low", "high"].reduce((known, effort) => {
      const detail = `'reasoning_effort' does not support '${effort}' with this model.`
      return learnedFrom(known, detail, { reasoning_effort: effort }) ?? known
    }, nothingLearned)
    const sent = ["low", "medium", "high"].map((effort) => withLearned({ reasoning_effort: effort }, learned))
    assert.deepStrictEqual(sent, [{}, { reasoning_effort: "medium" }, {}])
  })

  it("a call of another model has what its server refuses calls without", () => {
    const unsigned = "Function call is missing a thought_signature in functionCall parts."
    const unthought = "The `content[].thinking` in the thinking mode must be passed back to the API."
    const known = [unsigned, unthought].reduce(
      (known, detail) => learnedFrom(known, detail, {}) ?? assert.fail(detail),
      nothingLearned
    )
    const signature = (dialect: "anthropic" | "chat", state: object) => ({
      thoughtSignature: signatureOf(dialect, state)
    })
    const answered = (at: number) => user(response("look", "seen", `c${at}`), response("look", "seen", `d${at}`))
    const contents = [
      user(text("q")),
      model(call("look", {}, "c1"), call("look", {}, "d1")),
      answered(1),
      model(
        { text: "", ...signature("anthropic", thinking) },
        {
          ...call("look", {}, "c2"),
          ...signature("chat", { extra_content: { google: { thought_signature: "own" } } })
        },
        call("look", {}, "d2")
      ),
      answered(2)
    ]
    const request = { server, contents, tools: [] }
    const sent = JSON.stringify(chatBody({ ...request, model: models.chat }, names, false, known.needs))
    assert.deepStrictEqual(
      [...sent.matchAll(/"thought_signature":"(\w+)"\}\},"id":"(\w+)"/g)].map(([, name, id]) => [name, id]),
      [
        ["skip_thought_signature_validator", "c1"],
        ["own", "c2"]
      ]
    )
    assert.lengthOf(sent.match(/"reasoning_content":"\(no reasoning\)"/g) ?? [], 2)
    const own = { ...request, model: models.anthropic, maxOutputTokens: 9 }
    const messages = Messages(Anthropic.requestBody(own, names, known.needs)["messages"])
    assert.deepStrictEqual(
      [messages[1]?.content[0], messages[3]?.content[0]],
      [{ type: "thinking", thinking: "(no reasoning)", signature: "" }, thinking]
    )
  })

  it.each([
    ["DeepSeek", "This response_format type is unavailable now"],
    ["OpenAI", "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."],
    ["Groq", "This model does not support response format `json_schema`."],
    ["a server of an earlier version of Anthropic's API", "output_config: Extra inputs are not permitted"]
  ])("the schema of an answer is told in words to a server that takes none: %s", (_, detail) => {
    const learned =
      learnedFrom(nothingLearned, detail, { response_format: {}, output_config: {} }) ??
      assert.fail("nothing is learned")
    assert.isUndefined(learnedFrom(nothingLearned, detail, {}))
    const request = {
      model: models.chat,
      server,
      contents: [user(text("q"))],
      tools: [],
      systemInstruction: "Be brief."
    }
    assert.deepStrictEqual(formOf(request, learned), request)
    const told = formOf({ ...request, responseSchema: { type: "object" } }, learned)
    const sent = JSON.stringify(chatBody(told, names, false))
    assert.include(sent, "Be brief.\\n\\nAnswer with JSON that fits this JSON schema")
    assert.notInclude(sent, "response_format")
  })

  it.each([
    "Invalid schema for response_format 'answer': In context=('properties', 'a'), 'allOf' is not permitted.",
    "output_config.format.schema: For 'string' type, property 'minLength' is not supported",
    "response_format json_schema: '$ref' is not supported"
  ])("a refusal of what stands in a schema is the caller's: %s", (detail) =>
    assert.isUndefined(learnedFrom(nothingLearned, detail, { response_format: {}, output_config: {} }))
  )

  it("a failing server tells that its template refuses instructions, and nothing else", () => {
    const refusal = "Jinja Exception: System role not supported"
    assert.deepStrictEqual([...(learnedFromFailure(nothingLearned, 500, refusal)?.needs ?? [])], ["message"])
    assert.isUndefined(learnedFromFailure(nothingLearned, 502, refusal))
    assert.isUndefined(learnedFromFailure(nothingLearned, 500, "missing reasoning_content"))
  })

  it.each(["does not support multiple system messages", "does not support a system prompt longer than 2000 tokens"])(
    "instructions stay where a server takes them: %s",
    (detail) => assert.isUndefined(learnedFrom(nothingLearned, detail, {}))
  )

  it("thinking without a signature goes back to models that want it, and not to Claude", () => {
    const sentTo = (model: string) => {
      const thinking = { type: "thinking", thinking: "hm", signature: "" }
      const thoughtSignature = carriedState({ dialect: "anthropic", server, model }, thinking)
      const contents = [
        user(text("q")),
        { role: "model" as const, parts: [{ text: "", thoughtSignature }, text("so")] }
      ]
      return JSON.stringify(Anthropic.requestBody({ server, model, contents, tools: [], maxOutputTokens: 9 }, names))
    }
    assert.include(sentTo("kimi-k2"), '"thinking":"hm"')
    assert.notInclude(sentTo("claude-sonnet-4-5"), '"thinking":"hm"')
  })

  it.each([
    ["vLLM", "System role not supported System role not supported"],
    ["llama.cpp", "in source: ... Error: Jinja Exception: System role not supported"],
    ["a server of its own", "This model does not support system messages."],
    ["another", "`system` role is not supported"]
  ])("instructions stand in the user's message for a server that takes none elsewhere: %s", (_, detail) => {
    const learned = learnedFrom(nothingLearned, detail, {}) ?? assert.fail("nothing is learned")
    const request = { model: models.chat, server, contents: [user(text("q"))], tools: [] }
    assert.deepStrictEqual(formOf(request, learned), request)
    const told = formOf({ ...request, systemInstruction: "Be brief." }, learned)
    assert.deepStrictEqual(chatBody(told, names, false)["messages"], [{ role: "user", content: "Be brief.\n\nq" }])
  })

  it.each([{ output: "" }, " \n"])("a result without anything says so, as Bedrock refuses it: %j", (given) => {
    const contents = [user(text("q")), model(call("look", {}, "c")), user(response("look", given, "c"))]
    for (const body of [anthropic(contents), chat(contents), responses(contents)]) {
      assert.include(JSON.stringify(body), '"(no output)"')
    }
  })

  it.each([
    [
      "LiteLLM",
      "litellm.UnsupportedParamsError: Bedrock doesn't support tool calling without `tools=` param specified."
    ],
    ["Bedrock", "The toolConfig field must be defined when using toolUse and toolResult content blocks."],
    ["Anthropic", "Requests which include `tool_use` or `tool_result` blocks must define tools"]
  ])("calls are words for a server that takes none without tools: %s", (_, detail) => {
    const learned = learnedFrom(nothingLearned, detail, { messages: [] }) ?? assert.fail("nothing is learned")
    assert.isUndefined(learnedFrom(learned, detail, { messages: [] }))
    assert.isUndefined(learnedFrom(nothingLearned, detail, { messages: [], tools: [] }))
    const contents = [
      user(text("q")),
      model(text("I look."), { ...call("look", { a: 1 }, "c"), thoughtSignature: "s" }),
      user(response("look", { output: "seen" }, "c"))
    ]
    const told = formOf({ model: models.chat, server, contents, tools: [] }, learned)
    assert.deepStrictEqual(chat(told.contents)["messages"], [
      { role: "user", content: "q" },
      { role: "assistant", content: 'I look.\n[call of look] {"a":1}\n' },
      { role: "user", content: "[result of look] seen" }
    ])
    for (const bodyOf of [anthropic, responses]) {
      assert.notMatch(JSON.stringify(bodyOf(told.contents)), /tool_use|tool_result|function_call/)
    }
    const withTools = { ...told, contents, tools: [{ name: "look", parameters: {} }] }
    assert.deepStrictEqual(formOf(withTools, learned), withTools)
  })

  it.each([
    ["iVBORw0KGgoAAAA=", "image/jpeg", "image/png"],
    ["/9j/4AAQ", "image/png", "image/jpeg"],
    ["R0lGODdh", "image/*", "image/gif"],
    ["UklGRiQA", "image/png", "image/webp"],
    ["aGVsbG8=", "image/jpg", "image/jpeg"],
    ["aGVsbG8=", "image/PNG", "image/png"],
    ["UklGRiQA", "audio/wav", "audio/wav"]
  ])("an image has the type that its bytes say: %s as %s", (data, mimeType, type) => {
    const contents = [user({ inlineData: { mimeType, data } })]
    const sent = [
      anthropic(contents),
      chat(contents),
      responses(contents),
      geminiContent(contents[0] ?? user(), toGemini)
    ].map((body) => JSON.stringify(body))
    for (const body of sent) assert.include(body, type)
    if (type !== mimeType) for (const body of sent) assert.notInclude(body, `"${mimeType}`)
  })

  it.each([{ output: "a\nb" }, { content: "a\nb" }, { result: "a\nb" }, { response: "a\nb" }, "a\nb"])(
    "a response of one text is that text, however it is wrapped: %j",
    (given) => {
      const contents = looked(given)
      assert.deepInclude(Messages(anthropic(contents)["messages"]).at(-1)?.content[0], { content: "a\nb" })
      assert.deepInclude(Items(chat(contents)["messages"]).at(-1), { content: "a\nb" })
    }
  )

  it.each([
    [{ error: "no" }, "no"],
    [{ error: "" }, "(no result)"]
  ])("the image of a failure follows it for Anthropic, which takes nothing but texts in one: %j", (said, content) => {
    const image: Part = { inlineData: { mimeType: "image/png", data: "aGk=" } }
    const blocksOf = (parts: ReadonlyArray<Part>) =>
      Messages(
        anthropic([
          question,
          model(call("shot", {}, "c")),
          user({ functionResponse: { id: "c", name: "shot", response: said, parts } })
        ])["messages"]
      ).at(-1)?.content ?? []
    const [failed, shown] = blocksOf([image])
    assert.deepInclude(failed, { type: "tool_result", is_error: true, content })
    assert.deepInclude(shown, { type: "image" })
    assert.lengthOf(blocksOf([]), 1)
  })

  it("media within a result follows it where a result is a text", () => {
    const image: Part = { inlineData: { mimeType: "image/png", data: "aGk=" } }
    const contents = [
      question,
      model(call("shot", {}, "c")),
      user({ functionResponse: { id: "c", name: "shot", response: { output: "taken" }, parts: [image] } })
    ]
    assert.deepStrictEqual(Items(chat(contents)["messages"]).slice(2), [
      { role: "tool", tool_call_id: "c", content: "taken" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } }] }
    ])
    assert.deepInclude(Messages(anthropic(contents)["messages"]).at(-1)?.content[0], {
      content: [
        { type: "text", text: "taken" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } }
      ]
    })
  })
})

describe("tools", () => {
  const properties = { a: { type: "string" }, b: { type: "string" } }
  /** The parameters that a schema becomes. */
  const parametersOf = (parametersJsonSchema: object) =>
    Result.getOrThrow(toolDeclarations([{ functionDeclarations: [{ name: "a", parametersJsonSchema }] }]))[0]
      ?.parameters

  it.each([
    ["alternatives", { anyOf: [{ required: ["a"] }, { required: ["b"] }] }, {}],
    ["what all alternatives require", { oneOf: [{ required: ["a", "b"] }, { required: ["b"] }] }, { required: ["b"] }],
    [
      "conditions",
      { required: ["a"], allOf: [{ required: ["b"] }], not: { required: ["c"] } },
      { required: ["a", "b"] }
    ]
  ])("a schema has no %s at its top, which servers refuse with every request", (_, more, expected) => {
    const parameters = parametersOf({ type: "object", properties, ...more })
    assert.deepStrictEqual(parameters, { type: "object", properties, ...expected })
  })

  it("alternatives within a schema have their type themselves", () => {
    const forms = [{ required: ["a"] }, { type: "object", required: ["b"] }, { $ref: "#/$defs/One" }]
    const one = { type: "object", anyOf: forms, description: "One." }
    const named = { type: { type: "string" }, anyOf: { type: "array", items: one } }
    const [tool] = Result.getOrThrow(
      toolDeclarations([
        { functionDeclarations: [{ name: "a", parametersJsonSchema: { type: "object", properties: named } }] }
      ])
    )
    const typed = { anyOf: [{ type: "object", required: ["a"] }, ...forms.slice(1)], description: "One." }
    assert.deepStrictEqual(tool?.parameters["properties"], { ...named, anyOf: { type: "array", items: typed } })
  })

  it("a property that alternatives declare differently takes what each declares", () => {
    const kinds = ["file", "url"].map((kind) => ({ const: kind }))
    const oneOf = kinds.map((kind) => ({ type: "object", properties: { kind, a: properties.a }, required: ["kind"] }))
    assert.deepStrictEqual(parametersOf({ type: "object", oneOf })?.["properties"], {
      kind: { anyOf: kinds },
      a: properties.a
    })
  })

  it("a schema of alternatives by reference has the properties of all", () => {
    const $defs = {
      One: { type: "object", properties: { a: properties.a }, required: ["a"] },
      Two: { type: "object", properties, required: ["a", "b"] }
    }
    const schema = { type: "object", anyOf: [{ $ref: "#/$defs/One" }, { $ref: "#/$defs/Two" }], $defs }
    assert.deepStrictEqual(parametersOf(schema), { type: "object", properties, required: ["a"], $defs })
  })

  it("both spellings of a schema become JSON Schema", () => {
    const declared = toolDeclarations([
      { functionDeclarations: [{ name: "a", parameters: { type: "OBJECT", properties: { n: { type: "STRING" } } } }] },
      {
        functionDeclarations: [{ name: "b", description: "B", parametersJsonSchema: { type: "object" } }, { name: "c" }]
      }
    ])
    assert.deepStrictEqual(Result.getOrThrow(declared), [
      { name: "a", parameters: { type: "object", properties: { n: { type: "string" } } } },
      { name: "b", description: "B", parameters: { type: "object" } },
      { name: "c", parameters: { type: "object", properties: {} } }
    ])
    assert.isTrue(Result.isFailure(toolDeclarations([{ googleSearch: {} }])))
  })

  it.prop("names are allowed, distinct, and lead back", [Schema.Array(Schema.String)], ([list]) => {
    const declared = [...list, "a.b", "a_b", "a:b", "21st", "-a", "t_21st", "n".repeat(99), `${"n".repeat(99)}2`].map(
      (name) => ({
        name,
        parameters: {}
      })
    )
    const made = toolNames(declared)
    for (const { name } of declared) {
      assert.match(made.sent(name), /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/)
      assert.strictEqual(made.own(made.sent(name)), name)
    }
  })
})
