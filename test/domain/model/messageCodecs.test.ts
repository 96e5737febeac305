import { assert, describe, it } from "@effect/vitest"
import type { Part } from "../../../src/domain/content/Content.ts"
import { anthropicCodec } from "../../../src/domain/wire/anthropic/Messages.ts"
import { chatCompletionsCodec } from "../../../src/domain/wire/chat/Messages.ts"
import { geminiCodec } from "../../../src/domain/wire/gemini/Messages.ts"
import { type MessageCodec, opaque, shortenedMessages } from "../../../src/domain/wire/MessageCodec.ts"
import { responsesCodec } from "../../../src/domain/wire/responses/Messages.ts"

/** Every kind of block and item that a message may have, as the other modules see it. What is unknown is carried as it is. */

const unknown = { type: "hologram", data: 1 }
const bytes = { inlineData: { mimeType: "image/png", data: "AA" } }
const linked = { fileData: { fileUri: "https://a.test/b.png", mimeType: "image/*" } }
const call = (args: unknown) => ({ functionCall: { id: "c", name: "look", args } })
const result = (response: unknown, name = "") => ({ functionResponse: { id: "c", name, response } })
const source = (more: object) => ({ type: "image", source: more })
const said = (block: unknown) => ({ role: "assistant", content: [block] })

const kinds: ReadonlyArray<readonly [dialect: string, codec: MessageCodec, message: object, part: Part]> = [
  ...(
    [
      [{ type: "text", text: "t" }, { text: "t" }],
      [
        { type: "thinking", thinking: "hm", signature: "s" },
        { text: "hm", thought: true }
      ],
      [source({ type: "base64", media_type: "image/png", data: "AA" }), bytes],
      [source({ type: "url", url: "https://a.test/b.png" }), linked],
      [source({ type: "file", file_id: "f" }), opaque(source({ type: "file", file_id: "f" }))],
      [{ type: "tool_use", id: "c", name: "look", input: { a: 1 } }, call({ a: 1 })],
      [{ type: "tool_result", tool_use_id: "c", content: "seen" }, result("seen")],
      [{ type: "tool_result", tool_use_id: "c" }, result("")],
      [
        {
          type: "tool_result",
          tool_use_id: "c",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" }
          ]
        },
        result("a\nb")
      ],
      [{ type: "tool_result", tool_use_id: "c", content: [unknown] }, result([unknown])],
      [{ type: "tool_result", tool_use_id: "c", content: "no", is_error: true }, result({ error: "no" })],
      [unknown, opaque(unknown)],
      ["text", opaque("text")]
    ] as const
  ).map(([block, part]) => ["Messages", anthropicCodec, said(block), part] as const),
  ...(
    [
      [said({ type: "text", text: "t" }), { text: "t" }],
      [said({ type: "refusal", refusal: "no" }), { text: "no" }],
      [said({ type: "image_url", image_url: { url: "data:image/png;base64,AA" } }), bytes],
      [said({ type: "image_url", image_url: { url: "https://a.test/b.png" } }), linked],
      [said(unknown), opaque(unknown)],
      [{ role: "user", content: "t" }, { text: "t" }],
      [{ role: "tool", tool_call_id: "c", content: "seen" }, result("seen")],
      [
        { role: "assistant", tool_calls: [{ id: "c", function: { name: "look", arguments: '{"a":1}' } }] },
        call({ a: 1 })
      ],
      [{ role: "assistant", tool_calls: [{ id: "c", function: { name: "look", arguments: "{" } }] }, call("{")],
      [{ role: "assistant", tool_calls: [{ id: "c", custom: { name: "look", input: "x" } }] }, call("x")],
      [{ role: "assistant", tool_calls: [unknown] }, opaque(unknown)]
    ] as const
  ).map(([message, part]) => ["Chat Completions", chatCompletionsCodec, message, part] as const),
  ...(
    [
      [said({ type: "output_text", text: "t" }), { text: "t" }],
      [said({ type: "text", text: "t" }), { text: "t" }],
      [said({ type: "refusal", refusal: "no" }), { text: "no" }],
      [said(unknown), opaque(unknown)],
      [{ role: "user", content: [{ type: "input_text", text: "t" }] }, { text: "t" }],
      [
        { type: "message", role: "user", content: [{ type: "input_image", image_url: "data:image/png;base64,AA" }] },
        bytes
      ],
      [
        { type: "message", role: "user", content: [{ type: "input_image", file_id: "f" }] },
        opaque({ type: "input_image", file_id: "f" })
      ],
      [{ type: "function_call", call_id: "c", name: "look", arguments: '{"a":1}' }, call({ a: 1 })],
      [{ type: "custom_tool_call", call_id: "c", name: "look", input: "x" }, call("x")],
      [{ type: "function_call_output", call_id: "c", output: "seen" }, result("seen")],
      [
        {
          type: "custom_tool_call_output",
          call_id: "c",
          output: [
            { type: "input_text", text: "a" },
            { type: "input_text", text: "b" }
          ]
        },
        result("a\nb")
      ],
      [{ type: "function_call_output", call_id: "c", output: [unknown] }, result([unknown])],
      [
        { type: "reasoning", id: "r", summary: [], encrypted_content: "e" },
        opaque({ type: "reasoning", id: "r", summary: [], encrypted_content: "e" })
      ],
      [{ type: "web_search_call", id: "w" }, opaque({ type: "web_search_call", id: "w" })]
    ] as const
  ).map(([message, part]) => ["Responses", responsesCodec, message, part] as const)
]

describe("a message", () => {
  it.each(kinds)("of %s is read: %#", (_dialect, codec, message, part) => {
    const [group, ...others] = codec.read([message])
    assert.deepStrictEqual(others, [])
    assert.deepStrictEqual(group?.content.parts, [part])
    assert.deepStrictEqual([group?.from, group?.to], [0, 1])
    // Nothing shortens a call.
    if (group === undefined || part.functionCall !== undefined) return
    // Behind another message, and with a shorter part in place of its own.
    const [behind = group] = codec.read([null, message])
    const [written] = shortenedMessages([null, message], behind, new Map([[0, { part: { text: "short" } }]]))
    const { functionResponse: whole } = part
    const { response } = whole ?? {}
    const isError = typeof response === "object" && response !== null && "error" in response
    const shorter = whole === undefined ? { text: "short" } : result(isError ? { error: "short" } : "short")
    assert.deepStrictEqual(codec.read([written])[0]?.content.parts, [group.slots[0] === undefined ? part : shorter])
  })

  it.each([
    ["Messages", anthropicCodec, { role: "assistant", content: "words" }],
    ["Chat Completions", chatCompletionsCodec, { role: "assistant", content: "words" }],
    ["Responses", responsesCodec, { role: "assistant", content: "words" }],
    ["Gemini", geminiCodec, { role: "model", parts: [{ text: "words" }] }]
  ] as const)("of %s is written as it is read", (_, codec, message) => {
    const model = { role: "model", parts: [{ text: "words" }] } as const
    assert.deepStrictEqual(codec.write(model), message)
    assert.deepStrictEqual(
      codec.read([message, { role: "user" }, message]).map(({ content, from, to }) => [content, from, to]),
      [
        [model, 0, 1],
        [model, 2, 3]
      ]
    )
    const [group = assert.fail("no group")] = codec.read([message])
    assert.deepStrictEqual(shortenedMessages([message], group, new Map([[0, { part: { text: "w" } }]])), [
      codec.write({ role: "model", parts: [{ text: "w" }] })
    ])
  })

  it("of a turn with several is one group, with the names of the calls that are answered", () => {
    const called = (id: string) => ({ type: "function_call", call_id: id, name: `look_${id}`, arguments: "{}" })
    const items = [
      { role: "user", content: "q" },
      { role: "user", content: "and" },
      { type: "reasoning", id: "r" },
      called("a"),
      called("b"),
      { type: "function_call_output", call_id: "b", output: "B" },
      { type: "function_call_output", call_id: "a", output: "A" },
      { role: "assistant", content: "done" },
      { role: "developer", content: "x" },
      { role: "assistant", content: "more" }
    ]
    const chats = [
      { role: "assistant", tool_calls: [called("a"), called("b")].map((own) => ({ id: own.call_id, function: own })) },
      { role: "tool", tool_call_id: "b", content: "B" },
      { role: "tool", tool_call_id: "a", content: [{ type: "text", text: "A" }] },
      { role: "user", content: "q" }
    ]
    const groups = (codec: MessageCodec, messages: ReadonlyArray<unknown>) =>
      codec
        .read(messages)
        .map(({ content: { parts, role }, from, slots, to }) => [
          role,
          from,
          to,
          parts.map((part) => part.functionResponse?.name ?? part.functionCall?.name ?? part.text).join(),
          slots.map((slot) => slot?.message ?? -1).join()
        ])
    const reasoning = '{"type":"reasoning","id":"r"}'
    assert.deepStrictEqual(groups(responsesCodec, items), [
      ["user", 0, 1, "q", "0"],
      ["user", 1, 2, "and", "1"],
      ["model", 2, 5, `${reasoning},look_a,look_b`, "-1,-1,-1"],
      ["user", 5, 7, "look_b,look_a", "5,6"],
      ["model", 7, 8, "done", "7"],
      ["model", 9, 10, "more", "9"]
    ])
    assert.deepStrictEqual(groups(chatCompletionsCodec, chats), [
      ["model", 0, 1, "look_a,look_b", "-1,-1"],
      ["user", 1, 3, "look_b,look_a", "1,2"],
      ["user", 3, 4, "q", "3"]
    ])
  })

  it.each([
    ["Messages", anthropicCodec],
    ["Chat Completions", chatCompletionsCodec],
    ["Responses", responsesCodec]
  ] as const)("of %s that is an instruction, empty or unknown is in no group", (_, codec) => {
    const none = [
      { role: "system", content: "x" },
      { role: "developer", content: "x" },
      { role: "user", content: [] }
    ]
    assert.deepStrictEqual(codec.read([...none, { role: "critic", content: "x" }, null, 1, []]), [])
  })
})
