import { assert, describe, it } from "@effect/vitest"
import type { Part } from "../../../src/domain/content/Content.ts"
import { anthropicCodec } from "../../../src/domain/model/AnthropicCodec.ts"
import { chatCompletionsCodec } from "../../../src/domain/model/ChatCompletionsCodec.ts"
import type { MessageCodec } from "../../../src/domain/model/MessageCodec.ts"
import { opaque } from "../../../src/domain/model/MessageCodec.ts"
import { responsesCodec } from "../../../src/domain/model/ResponsesCodec.ts"

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
