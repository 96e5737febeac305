import { assert, describe, it } from "@effect/vitest"
import { Option, Result } from "effect"
import type { Part } from "../../../src/domain/content/Content.ts"
import { maxDepth } from "../../../src/domain/text/JsonText.ts"
import { type AnswerReader, maxAnswerParts } from "../../../src/domain/wire/AnswerReader.ts"
import { addedCounts, usageOf } from "../../../src/domain/wire/AnswerUsage.ts"
import { anthropicAnswerReader, usage as anthropicUsage } from "../../../src/domain/wire/anthropic/Answer.ts"
import { chatAnswerReader } from "../../../src/domain/wire/chat/Answer.ts"
import { geminiAnswerReader, readGemini } from "../../../src/domain/wire/gemini/Answer.ts"
import { carriedState } from "../../../src/domain/wire/ModelState.ts"
import { answerForm, responsesAnswerReader } from "../../../src/domain/wire/responses/Answer.ts"
import { toolNames } from "../../../src/domain/wire/ToolDeclarations.ts"

/** The events of an answer, cut at every place where a server may cut them, and what each kind of failure in them is. */

const names = toolNames([])

const targetOf = <const D extends string>(dialect: D) => ({ dialect, server: "api", model: "m" })
const anthropic = () => anthropicAnswerReader({ tools: names, target: targetOf("anthropic") })
const chat = () => chatAnswerReader({ tools: names, target: targetOf("chat") })
const gemini = () => geminiAnswerReader({ target: targetOf("gemini") })
const responses = () => responsesAnswerReader({ tools: names, target: targetOf("responses") })

/** A part that carries what a provider wants back. */
const carried = (...state: Parameters<typeof carriedState>) => ({ text: "", thoughtSignature: carriedState(...state) })

/** What was said: texts and thoughts joined, then whatever else there is. */
const joined = (parts: ReadonlyArray<Part>): ReadonlyArray<Part> => {
  const of = (isThought: boolean) =>
    parts
      .filter((part) => part.thoughtSignature === undefined && (part.thought ?? false) === isThought)
      .map(({ text = "" }) => text)
      .join("")
  return [
    { text: of(true), thought: true },
    { text: of(false) },
    ...parts.filter((part) => part.text === undefined || part.thoughtSignature !== undefined)
  ]
}

const read = (reader: AnswerReader, events: ReadonlyArray<unknown>) => {
  const pieces = events.map((event) => Result.getOrThrow(reader.read(event)))
  const all = [...pieces, reader.end()].filter((piece) => piece !== undefined)
  return {
    parts: joined(all.flatMap(({ parts }) => parts)),
    finishReason: all.findLast((piece) => piece.finishReason !== undefined)?.finishReason,
    usage: all.findLast((piece) => piece.usage !== undefined)?.usage
  }
}

/** A text in two pieces, for every place between them; and as many pieces as there are characters. */
const cuts = (text: string): ReadonlyArray<ReadonlyArray<string>> => [
  ...Array.from({ length: text.length - 1 }, (_, at) => [text.slice(0, at + 1), text.slice(at + 1)]),
  Array.from(text)
]

const signature = "c2lnbmF0dXJl"
const args = '{"path":"a.ts"}'
const call = { functionCall: { id: "c1", name: "look", args: { path: "a.ts" } } }

const block = (index: number, content_block: object, deltas: ReadonlyArray<object>): ReadonlyArray<object> => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index }
]

describe("an answer of the Messages API", () => {
  const eventsOf = (cut: (text: string) => ReadonlyArray<string>) => [
    {
      type: "message_start",
      message: { usage: { input_tokens: 10, cache_read_input_tokens: 3, cache_creation_input_tokens: 2 } }
    },
    ...block(0, { type: "thinking", thinking: "", signature: "" }, [
      ...cut("I think.").map((thinking) => ({ type: "thinking_delta", thinking })),
      ...cut(signature).map((piece) => ({ type: "signature_delta", signature: piece }))
    ]),
    ...block(1, { type: "redacted_thinking", data: "hidden" }, []),
    ...block(
      2,
      { type: "text", text: "" },
      cut("It is so.").map((text) => ({ type: "text_delta", text }))
    ),
    ...block(
      3,
      { type: "tool_use", id: "c1", name: "look", input: {} },
      cut(args).map((partial_json) => ({ type: "input_json_delta", partial_json }))
    ),
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 7, input_tokens: null } },
    { type: "message_stop" }
  ]
  const whole = {
    parts: [
      { text: "I think.", thought: true },
      { text: "It is so." },
      carried(targetOf("anthropic"), { type: "thinking", thinking: "I think.", signature }),
      carried(targetOf("anthropic"), { type: "redacted_thinking", data: "hidden" }),
      call
    ],
    finishReason: "STOP",
    usage: { prompt: 15, answer: 7, thoughts: 0, cached: 3, cacheWrite: 2 }
  }

  it("is the same for any cut of its texts, signatures and arguments", () => {
    for (let at = 0; at < cuts(args).length; at += 1) {
      const cut = (text: string) => cuts(text)[at] ?? cuts(text).at(-1) ?? [text]
      assert.deepStrictEqual(read(anthropic(), eventsOf(cut)), whole)
    }
  })
})

it("an answer of the Responses API is the same for any cut of its texts", () => {
  const reasoning = { type: "reasoning", summary: [], encrypted_content: signature }
  for (const pieces of cuts("It is so.")) {
    const said = read(responses(), [
      { type: "response.reasoning_text.delta", delta: "I " },
      { type: "response.reasoning_summary_text.delta", delta: "think." },
      { type: "response.output_item.done", item: { ...reasoning, id: null } },
      ...pieces.map((delta, at) => ({
        type: at === 0 ? "response.output_text.delta" : "response.refusal.delta",
        delta
      })),
      {
        type: "response.output_item.done",
        item: { type: "function_call", call_id: "c1", name: "look", arguments: args }
      },
      {
        type: "response.completed",
        response: {
          usage: {
            input_tokens: 10,
            output_tokens: 7,
            input_tokens_details: { cached_tokens: 3 },
            output_tokens_details: { reasoning_tokens: 5 }
          }
        }
      }
    ])
    assert.deepStrictEqual(said, {
      parts: [
        { text: "I think.", thought: true },
        { text: "It is so." },
        carried(targetOf("responses"), reasoning),
        call
      ],
      finishReason: "STOP",
      usage: { prompt: 10, answer: 2, thoughts: 5, cached: 3 }
    })
  }
})

it("an answer of the Responses API that failed is a fault, whichever event ends it", () => {
  const response = { status: "failed", error: { code: "server_error", message: "no" } }
  const problem = Option.getOrUndefined(Result.getFailure(responses().read({ type: "response.done", response })))
  assert.deepInclude(problem?._tag === "Fault" ? problem.fault : {}, { kind: "server_error", message: "no" })
})

it("what a client of the Responses API answers is a call, and nothing else", () => {
  const callOf = (type: string) => answerForm.callOf({ type, call_id: "c" })?.id
  const client = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "computer_call",
    "shell_call",
    "apply_patch_call"
  ]
  assert.deepStrictEqual([...client, "web_search_call", "message"].map(callOf), [
    ...client.map(() => "c"),
    undefined,
    undefined
  ])
})

describe("an answer of Chat Completions", () => {
  it("has pieces of a call without an index, after those of another one", () => {
    const piece = (id: string, words: object) => ({ choices: [{ delta: { tool_calls: [{ id, function: words }] } }] })
    const made = read(chat(), [
      piece("c1", { name: "look", arguments: "" }),
      piece("c2", { name: "list", arguments: "{}" }),
      piece("c1", { arguments: args }),
      { choices: [{ delta: {}, finish_reason: "tool_calls" }] }
    ])
    const calls = made.parts.filter(({ functionCall }) => functionCall !== undefined)
    assert.deepStrictEqual(calls, [call, { functionCall: { id: "c2", name: "list", args: {} } }])
  })

  it("has a content that is a list of blocks, as Mistral's is", () => {
    const said = (content: unknown) => ({ choices: [{ delta: { content } }] })
    const made = read(chat(), [
      said([{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }]),
      said([{ type: "text", text: "It is " }]),
      said("so."),
      { choices: [{ delta: { content: "" }, finish_reason: "stop" }] }
    ])
    assert.deepStrictEqual(made.parts, [{ text: "Hm.", thought: true }, { text: "It is so." }])
  })

  it.each([
    [
      "insufficient_system_resource",
      {},
      { message: "the server broke off the answer (insufficient_system_resource)", kind: "overloaded" }
    ],
    ["network_error", {}, { message: "the server broke off the answer (network_error)", kind: "server_error" }],
    ["error", { error: { code: 502, message: "Upstream idle" } }, { message: "Upstream idle", kind: "502" }]
  ])("that its server broke off (%s) is a fault, and no whole answer", (finish_reason, more, fault) => {
    const ended = chat().read({ choices: [{ delta: { content: "" }, finish_reason, ...more }] })
    assert.deepInclude(Result.isFailure(ended) && ended.failure._tag === "Fault" ? ended.failure.fault : {}, fault)
  })

  it("is the same for any cut of its texts and of the arguments of two calls", () => {
    for (const pieces of cuts(args)) {
      const delta = (more: object) => ({ choices: [{ delta: more }] })
      const called = (index: number, more: object) => delta({ tool_calls: [{ index, ...more }] })
      const said = read(chat(), [
        delta({ reasoning_content: "I " }),
        delta({ reasoning: "think." }),
        delta({ content: "It is " }),
        delta({ refusal: "so." }),
        // The indexes order the calls, not their arrival.
        called(1, { id: "c2", type: "function", function: { name: "list", arguments: "{}" } }),
        called(0, { id: "c1", function: { name: "look", arguments: "" } }),
        called(1, { id: "", type: null, function: {} }),
        ...pieces.map((piece) => called(0, { function: { arguments: piece } })),
        { choices: [{ delta: {}, finish_reason: "tool_calls" }] },
        {
          choices: [],
          usage: {
            prompt_tokens: 10,
            completion_tokens: 7,
            prompt_tokens_details: { cached_tokens: 3 },
            completion_tokens_details: { reasoning_tokens: 5 }
          }
        }
      ])
      assert.deepStrictEqual(said, {
        parts: [
          { text: "I think.", thought: true },
          { text: "It is so." },
          carried(targetOf("chat"), { reasoning_content: "I ", reasoning: "think." }),
          call,
          { functionCall: { id: "c2", name: "list", args: {} } }
        ],
        finishReason: "STOP",
        usage: { prompt: 10, answer: 2, thoughts: 5, cached: 3 }
      })
    }
  })
})

describe("what servers send that keep to a dialect loosely", () => {
  const [list, look, so] = [{ functionCall: { id: "c2", name: "list", args: {} } }, call, { text: "It is so." }]
  const unnamed = (args: object) => ({ functionCall: { name: "look", args } })

  const delta = (more: object, finish_reason: string | null = null) => ({ choices: [{ delta: more, finish_reason }] })
  const called = (...calls: ReadonlyArray<object>) => delta({ tool_calls: calls })
  const bare = (...calls: ReadonlyArray<object>) => ({ choices: [{ delta: { tool_calls: calls } }] })
  /** A call with arguments in some form, and a later piece of it. */
  const looks = (given: unknown) => ({ index: 0, id: "c1", function: { name: "look", arguments: given } })
  const lists = (given: unknown) => ({ index: 1, id: "c2", function: { name: "list", arguments: given } })
  const more = (given: string) => ({ index: 0, function: { arguments: given } })
  const choice = (index: number, more: object) => ({ index, delta: more })
  const message = (more: object, finish_reason?: string) => ({ choices: [{ message: more, finish_reason }] })
  const ended = delta({}, "tool_calls")
  const [begin, rest] = [args.slice(0, 5), args.slice(5)]

  const uses = (index: number, id: string, name: string, input: unknown, ...pieces: ReadonlyArray<string>) =>
    block(
      index,
      { type: "tool_use", id, name, input },
      pieces.map((partial_json) => ({ type: "input_json_delta", partial_json }))
    )
  const usedTools = { type: "message_delta", delta: { stop_reason: "tool_use" } }

  const words = { type: "message", id: "m1", content: [{ type: "output_text", text: "It is so." }] }
  const item = { type: "function_call", id: "f1", call_id: "c1", name: "look", arguments: args }
  const unfinished = { ...item, arguments: "" }
  const reasoning = (id: string) => ({ type: "reasoning", id, encrypted_content: signature })
  const completed = (output: ReadonlyArray<object>, more: object = {}) => ({
    type: "response.completed",
    response: { status: "completed", output, ...more }
  })
  const added = (one: object, index: object = {}) => ({ type: "response.output_item.added", item: one, ...index })
  const done = (one: object, index: object = {}) => ({ type: "response.output_item.done", item: one, ...index })
  const place = (output_index: number) => ({ output_index })
  const argumentsOf = (kind: string, more: object) => ({
    type: `response.function_call_arguments.${kind}`,
    ...place(0),
    item_id: "f1",
    ...more
  })

  it.each<
    readonly [name: string, reader: () => AnswerReader, events: ReadonlyArray<object>, parts: ReadonlyArray<Part>]
  >([
    ["a message in place of its pieces", chat, [message({ content: "It is so." }, "stop")], [so]],
    [
      "the whole message once more at the end",
      chat,
      [delta({ content: "It is " }), delta({ content: "so." }), message({ content: "It is so." })],
      [so]
    ],
    [
      "arguments as an object, and an empty piece after them",
      chat,
      [called(looks({ path: "a.ts" })), called(more("")), ended],
      [look]
    ],
    ["an empty object before the arguments", chat, [called(looks("{}")), called(more(args)), ended], [look]],
    [
      "the whole arguments once more at the end",
      chat,
      [called(looks(begin)), called(more(rest)), delta({ tool_calls: [looks(args)] }, "tool_calls")],
      [look]
    ],
    [
      "arguments as a string of JSON, and null for none",
      chat,
      [called(looks(JSON.stringify(args))), called(lists("null")), ended],
      [look, list]
    ],
    [
      "one call in the first form of the dialect, in pieces",
      chat,
      [
        delta({ content: null, function_call: { name: "look", arguments: "" } }),
        ...[begin, rest].map((piece) => delta({ function_call: { arguments: piece } })),
        delta({}, "function_call")
      ],
      [unnamed({ path: "a.ts" })]
    ],
    [
      "a text and calls as two choices of one answer",
      chat,
      [
        {
          choices: [
            ...message({ role: "assistant", content: "It is so." }, "tool_calls").choices,
            ...message({ role: "assistant", tool_calls: [{ ...looks(args), index: undefined }] }, "tool_calls").choices
          ]
        }
      ],
      [so, look]
    ],
    [
      "calls in pieces of another choice",
      chat,
      [
        { choices: [choice(0, { content: "It is " })] },
        { choices: [choice(0, { content: "so." }), choice(1, { tool_calls: [looks("")] })] },
        { choices: [choice(1, { tool_calls: [more(args)] })] },
        ended
      ],
      [so, look]
    ],
    [
      "images beside the text",
      chat,
      [
        delta({ content: "", images: [{ type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } }] }),
        delta({}, "stop")
      ],
      [{ inlineData: { mimeType: "image/png", data: "aGk=" } }]
    ],
    [
      "an empty object before the arguments of a block, and a string in place of them",
      anthropic,
      [...uses(0, "c1", "look", {}, "{}", args), ...uses(1, "c2", "list", "{}"), usedTools],
      [look, list]
    ],
    [
      "null for what a part does not have",
      gemini,
      [
        {
          candidates: [
            {
              content: { parts: [{ ...so, thought: null }, { functionCall: { ...look.functionCall, id: null } }] },
              finishReason: "STOP"
            }
          ]
        }
      ],
      [so, unnamed({ path: "a.ts" })]
    ],
    ["arguments as an object", chat, [called(looks({ path: "a.ts" })), ended], [look]],
    [
      "line breaks and tabs in the strings of arguments",
      chat,
      [called({ index: 0, id: "c1", function: { name: "look", arguments: `{\n"path": "a\n\t\\"b\\""\n}` } }), ended],
      [{ functionCall: { id: "c1", name: "look", args: { path: 'a\n\t"b"' } } }]
    ],
    [
      "marks of the model's own format behind a name",
      chat,
      [called({ index: 0, id: "c1", function: { name: " look<|channel|>commentary", arguments: args } }), ended],
      [look]
    ],
    [
      "an empty error in each event",
      chat,
      [
        { ...delta({ content: "It is so." }), error: { message: "", type: "", code: null } },
        { ...ended, error: { code: 0, type: "", message: "" } }
      ],
      [{ text: "It is so." }]
    ],
    [
      "one message in place of its events",
      anthropic,
      [
        {
          type: "message",
          content: [
            { type: "text", text: "It is so." },
            { type: "tool_use", id: "c1", name: "look", input: { path: "a.ts" } }
          ],
          stop_reason: "tool_use"
        }
      ],
      [{ text: "It is so." }, look]
    ],
    [
      "one response in place of its events",
      responses,
      [{ object: "response", status: "completed", output: [words, item] }],
      [{ text: "It is so." }, look]
    ],
    [
      "reasoning as it is",
      responses,
      [completed([{ type: "reasoning", id: "r1", content: [{ type: "reasoning_text", text: "hm" }] }, item])],
      [
        {
          text: "",
          thoughtSignature: carriedState(
            { dialect: "responses", server: "api", model: "m" },
            { type: "reasoning", id: "r1", summary: [], content: [{ type: "reasoning_text", text: "hm" }] }
          )
        },
        look
      ]
    ],
    [
      "thinking without a signature",
      anthropic,
      [
        ...block(0, { type: "thinking", thinking: "", signature: "" }, [{ type: "thinking_delta", thinking: "hm" }]),
        ...block(1, { type: "tool_use", id: "c1", name: "look", input: { path: "a.ts" } }, []),
        { type: "message_delta", delta: { stop_reason: "tool_use" } }
      ],
      [
        { text: "hm", thought: true },
        {
          text: "",
          thoughtSignature: carriedState(
            { dialect: "anthropic", server: "api", model: "m" },
            { type: "thinking", thinking: "hm", signature: "" }
          )
        },
        look
      ]
    ],
    [
      "two calls of one index without ids",
      chat,
      [called({ ...looks(args), id: undefined }), called({ ...looks("{}"), id: undefined }), ended],
      [unnamed({ path: "a.ts" }), unnamed({})]
    ],
    [
      "two blocks of one index",
      anthropic,
      [...uses(0, "c1", "look", { path: "a.ts" }), ...uses(0, "c2", "list", {}), usedTools],
      [look, list]
    ],
    ["whole items without their pieces", responses, [done(words), completed([])], [so]],
    [
      "the arguments of an item in an event of their own, and no item at the end",
      responses,
      [added(unfinished, place(0)), argumentsOf("done", { arguments: args }), completed([])],
      [look]
    ],
    [
      "the arguments of an item in pieces alone, and no item at the end",
      responses,
      [added(unfinished, place(0)), ...[begin, rest].map((delta) => argumentsOf("delta", { delta })), completed([])],
      [look]
    ],
    [
      "the arguments of an item in an event of their own, and an item without them",
      responses,
      [argumentsOf("done", { arguments: args }), done(unfinished, place(0)), completed([unfinished])],
      [look]
    ],
    ["no item before the end", responses, [completed([words, item])], [so, look]],
    [
      "events without indexes, and items at the end once more",
      responses,
      [
        added({ ...words, content: [] }),
        { type: "response.output_text.delta", delta: "It is so." },
        done(words),
        done(item),
        completed([words, item])
      ],
      [so, look]
    ],
    [
      "other indexes at the end",
      responses,
      [done(words, place(1)), done(item, place(2)), completed([words, item])],
      [so, look]
    ],
    [
      "other ids at the end",
      responses,
      [done(reasoning("r1"), place(0)), done(words, place(1)), completed([reasoning("r2"), { ...words, id: "m2" }])],
      [so, carried(targetOf("responses"), { type: "reasoning", id: "r1", summary: [], encrypted_content: signature })]
    ],
    [
      "arguments as an object, in an item",
      responses,
      [done({ ...item, arguments: { path: "a.ts" } }), completed([])],
      [look]
    ]
  ])("%s", (_, reader, events, parts) => {
    assert.deepStrictEqual(
      read(reader(), events).parts.filter(
        ({ text, thoughtSignature }) => text !== "" || thoughtSignature !== undefined
      ),
      parts
    )
  })

  it.each([
    [{ output_index: 1 }, { output_index: 2 }],
    [{}, {}]
  ])("a response has each item once, whatever their indexes were: %j", (first, second) => {
    const answer = answerForm.begin()
    for (const event of [done(words, first), done(item, second), done(item, second), completed([words, item])]) {
      answer.push(event)
    }
    assert.deepStrictEqual(answer.whole["output"], [words, item])
  })

  it.each([
    [{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }, "MAX_TOKENS"],
    [{ status: "incomplete" }, "OTHER"],
    [{ status: "in_progress" }, "STOP"]
  ])("a response that says it is incomplete is, whatever its last event is called: %j", (response, reason) => {
    assert.strictEqual(read(responses(), [completed([], response)]).finishReason, reason)
  })

  it.each([
    ["DeepSeek", { usage: { prompt_tokens: 10, completion_tokens: 5, prompt_cache_hit_tokens: 4 } }, {}, 4],
    ["Moonshot", {}, { usage: { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 3 } }, 3],
    ["Groq", { x_groq: { usage: { prompt_tokens: 10, completion_tokens: 5 } } }, {}, 0],
    ["Mistral", { usage: { prompt_tokens: 10, completion_tokens: 5, num_cached_tokens: 2 } }, {}, 2]
  ])("the counts of %s", (_, beside, within, cached) => {
    const event = { choices: [{ delta: {}, finish_reason: "stop", ...within }], ...beside }
    assert.deepStrictEqual(read(chat(), [event]).usage, { prompt: 10, answer: 5, thoughts: 0, cached })
  })

  it.each([
    [
      "xAI, whose thoughts are beside the answer",
      {
        prompt_tokens: 279,
        completion_tokens: 6,
        total_tokens: 374,
        completion_tokens_details: { reasoning_tokens: 89 }
      },
      { prompt: 279, answer: 6, thoughts: 89, cached: 0 }
    ],
    [
      "Gemini's server, whose thoughts are in the total alone",
      { prompt_tokens: 10, completion_tokens: 6, total_tokens: 116 },
      { prompt: 10, answer: 6, thoughts: 100, cached: 0 }
    ],
    [
      "a relay that counts its cache beside the prompt",
      { prompt_tokens: 20, completion_tokens: 6, total_tokens: 1_026, prompt_tokens_details: { cached_tokens: 1_000 } },
      { prompt: 1_020, answer: 6, thoughts: 0, cached: 1_000 }
    ],
    [
      "a relay that counts what it writes to a cache beside the prompt",
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 5_015, cache_creation_input_tokens: 5_000 },
      { prompt: 5_010, answer: 5, thoughts: 0, cached: 0, cacheWrite: 5_000 }
    ],
    ["a server that has a total alone", { total_tokens: 700 }, undefined],
    [
      "servers that write numbers as texts, or other names",
      {
        prompt_tokens: "2000",
        completion_tokens: "60",
        prompt_token_details: { cached_tokens: "100" },
        completion_token_details: { reasoning_tokens: 20 }
      },
      { prompt: 2_000, answer: 40, thoughts: 20, cached: 100 }
    ],
    [
      "SGLang, whose thoughts have no details",
      { prompt_tokens: 10, completion_tokens: 60, total_tokens: 70, reasoning_tokens: 20 },
      { prompt: 10, answer: 40, thoughts: 20, cached: 0 }
    ],
    [
      "OpenRouter, what was written to a cache",
      {
        prompt_tokens: 2_000,
        completion_tokens: 6,
        total_tokens: 2_006,
        prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 1_800 }
      },
      { prompt: 2_000, answer: 6, thoughts: 0, cached: 100, cacheWrite: 1_800 }
    ]
  ])("the counts of %s", (_, usage, expected) => {
    assert.deepStrictEqual(read(chat(), [{ choices: [{ delta: {}, finish_reason: "stop" }], usage }]).usage, expected)
  })

  it.each([
    ["<think>hm</think>It is so.", "hm", "It is so."],
    ["\n<think>\nhm\n</think>\n\nIt is so.\n", "\nhm\n", "It is so.\n"],
    ["<think></think> It is so.", "", "It is so."],
    ["<thi", "", "<thi"],
    ["\n <thing>", "", "\n <thing>"],
    ["Write <think>hm</think> first.", "", "Write <think>hm</think> first."],
    ["<think>a < b</think>a </think> b", "a < b", "a </think> b"]
  ])("a thought is one where a text begins with it, however it is cut: %j", (said, thought, words) => {
    for (const pieces of [[said], ...cuts(said)]) {
      const events = [...pieces.map((content) => delta({ content })), delta({}, "stop")]
      assert.deepStrictEqual(read(chat(), events).parts, [{ text: thought, thought: true }, { text: words }])
    }
  })

  it.each([
    // Broken off at the output limit; without an end; and nothing else is the answer.
    [["<think>hm</thi"], "length", "hm</thi", ""],
    [["<think>hm</thi"], "tool_calls", "hm</thi", ""],
    [["<think>It is", " so."], "stop", "It is so.", "It is so."],
    [["<think>\nIt is </thi"], "stop", "\nIt is ", "It is </thi"]
  ])("a thought that never ends is the answer of one that did: %j, %s", (pieces, reason, thought, words) => {
    const last = reason === "tool_calls" ? called({ ...looks(args), index: undefined }) : delta({})
    const said = read(chat(), [...pieces.map((content) => delta({ content })), last, delta({}, reason)]).parts
    const textOf = (isThought: boolean) =>
      said
        .filter((part) => part.text !== undefined && (part.thought === true) === isThought)
        .map(({ text }) => text)
        .join("")
    assert.deepStrictEqual([textOf(true), textOf(false)], [thought, words])
  })

  it("an answer with a field for its reasoning has marks in its text alone", () => {
    const events = [delta({ reasoning: "hm" }), delta({ content: "<think> is a mark" }), delta({}, "stop")]
    assert.deepStrictEqual(read(chat(), events).parts, [{ text: "hm", thought: true }, { text: "<think> is a mark" }])
  })

  it.each<readonly [events: ReadonlyArray<object>, isMarked: boolean, reason: string | undefined]>([
    [[{ choices: [{ delta: { content: "It is so." } }] }], true, "STOP"],
    [[{ choices: [{ delta: { content: "It is so." } }] }], false, undefined],
    // Broken off: its server has a reason for each end.
    [[delta({ content: "It is" })], true, undefined],
    [[delta({ content: "It is" }, "length")], true, "MAX_TOKENS"],
    [[bare(looks(args))], true, "STOP"],
    [[bare(looks(`{"p`))], true, "MALFORMED_FUNCTION_CALL"],
    [[], true, undefined],
    [[{ choices: [] }], true, undefined],
    [[message({ content: "It is so." })], false, "STOP"]
  ])("an answer without a reason ends where its server says so: %j, %s", (events, isMarked, reason) => {
    const reader = chat()
    for (const event of events) Result.getOrThrow(reader.read(event))
    assert.strictEqual(reader.end(isMarked)?.finishReason, reason)
  })

  it("counts at the end that are zero leave those of the beginning", () => {
    const { usage } = read(anthropic(), [
      { type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1 } } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { input_tokens: 0, output_tokens: 7 } }
    ])
    assert.deepStrictEqual(usage, { prompt: 10, answer: 7, thoughts: 0, cached: 0 })
  })

  it("what a server compacted before its answer is counted, in each round", () => {
    const iterations = [
      { type: "compaction", input_tokens: 180, output_tokens: 35 },
      { type: "message", input_tokens: 23, output_tokens: 10, cache_read_input_tokens: 5 }
    ]
    const counts = { input_tokens: 23, output_tokens: 10, cache_read_input_tokens: 5, iterations }
    const { usage } = read(anthropic(), [
      { type: "message_start", message: { usage: { input_tokens: 23, output_tokens: 1 } } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: counts }
    ])
    assert.deepStrictEqual(usage, { prompt: 208, answer: 45, thoughts: 0, cached: 5 })
    const both = usageOf(anthropicUsage, addedCounts(counts, counts))
    assert.deepStrictEqual(both, { prompt: 416, answer: 90, thoughts: 0, cached: 10 })
  })

  it.each([
    ["vLLM", { object: "error", message: "no", type: "BadRequestError", code: 400 }],
    ["FastAPI", { detail: "no" }],
    ["z.ai", { code: 500, msg: "no", success: false }],
    ["MiniMax", { choices: null, base_resp: { status_code: 1008, status_msg: "no" } }],
    ["Gemini", [{ error: { code: 400, message: "no" } }]]
  ])("an error among the events of Chat Completions: %s", (_, event) => {
    const problem = Option.getOrUndefined(Result.getFailure(chat().read(event)))
    assert.strictEqual(problem?._tag === "Fault" ? problem.fault.message : undefined, "no")
  })
})

describe("an answer of the Gemini API", () => {
  it("names what it quotes and what a search found, by whole positions alone", () => {
    const reader = gemini()
    const supports = [1, 1.5, -1].map((endIndex) => ({ segment: { endIndex }, groundingChunkIndices: [0, 0.5] }))
    const piece = reader.read({
      candidates: [
        {
          content: { parts: [{ text: "It is so." }] },
          citationMetadata: {
            citations: [{ uri: "https://a.test", title: "A" }, { uri: "https://b.test" }, { title: "C" }]
          },
          groundingMetadata: {
            groundingChunks: [{ web: { uri: "https://a.test", title: "A" } }],
            groundingSupports: supports
          }
        }
      ]
    })
    const { citations, grounding } = Result.getOrThrow(piece) ?? {}
    assert.deepStrictEqual(citations, ["(A) https://a.test", "https://b.test"])
    const one = reader.read({ candidates: [{ citationMetadata: { citations: [{ uri: "https://b.test" }] } }] })
    assert.deepStrictEqual(Result.getOrThrow(one)?.citations, ["https://b.test"])
    assert.deepStrictEqual(grounding?.sources, [{ uri: "https://a.test", title: "A" }])
    assert.deepStrictEqual(grounding?.supports, [{ end: 1, sources: [0] }])
  })

  it("that was parsed elsewhere is not read deeper than any other", () => {
    let args: unknown = 1
    for (let depth = 0; depth < maxDepth; depth += 1) args = [args]
    const deep = {
      candidates: [{ content: { parts: [{ functionCall: { name: "look", args } }] }, finishReason: "STOP" }]
    }
    const problem = Option.getOrUndefined(Result.getFailure(readGemini(deep, targetOf("gemini"))))
    assert.deepStrictEqual(problem, { _tag: "TooLarge", unit: "levels", limit: maxDepth })
  })

  it("with more parts than any model intends is not decoded, however many candidates come with them", () => {
    const reader = gemini()
    // They are no parts: decoding them would fail.
    const candidate = {
      content: { role: "model", parts: Array.from({ length: maxAnswerParts + 1 }, () => ({ text: 1 })) }
    }
    for (const candidates of [[candidate], [candidate, { content: { parts: [] } }], [candidate, {}]]) {
      const problem = Option.getOrUndefined(Result.getFailure(reader.read({ candidates })))
      assert.deepStrictEqual(problem, { _tag: "TooLarge", unit: "parts", limit: maxAnswerParts })
    }
  })
})
