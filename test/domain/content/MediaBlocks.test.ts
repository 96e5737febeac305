import { assert, describe, it } from "@effect/vitest"
import { type Content, isMedia, type Part } from "../../../src/domain/content/Content.ts"
import { blockMedia, responseContent, responseText, splitMedia } from "../../../src/domain/content/MediaBlocks.ts"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { partTokens } from "../../../src/domain/tokens/Tokens.ts"
import { geminiContent } from "../../../src/domain/wire/gemini/Request.ts"

/** Media in the forms of every dialect and agent: counted, named and sent as media wherever they stand. */

const data = "iVBORw0KGgoAAAANSUhEUgAAAZAAAAEsCAYAAADtt".padEnd(400_000, "A")
const inline = (mimeType: string): Part => ({ inlineData: { mimeType, data } })
const url = (mimeType: string) => `data:${mimeType};base64,${data}`

const blocks: ReadonlyArray<readonly [form: string, block: object, media: Part]> = [
  [
    "Anthropic's image",
    { type: "image", source: { type: "base64", media_type: "image/png", data } },
    inline("image/png")
  ],
  [
    "Anthropic's document",
    { type: "document", source: { type: "base64", media_type: "application/pdf", data } },
    inline("application/pdf")
  ],
  [
    "an address",
    { type: "image", source: { type: "url", url: "https://a/b" } },
    { fileData: { fileUri: "https://a/b", mimeType: "image/*" } }
  ],
  [
    "a file's id",
    { type: "document", source: { type: "file", file_id: "file_1" } },
    { fileData: { fileUri: "file_1", mimeType: "application/pdf" } }
  ],
  ["input_image", { type: "input_image", image_url: url("image/png") }, inline("image/png")],
  [
    "input_image by id",
    { type: "input_image", file_id: "file-1" },
    { fileData: { fileUri: "file-1", mimeType: "image/*" } }
  ],
  [
    "input_file",
    { type: "input_file", filename: "a.pdf", file_data: url("application/pdf") },
    inline("application/pdf")
  ],
  ["image_url", { type: "image_url", image_url: { url: url("image/png") } }, inline("image/png")],
  ["file", { type: "file", file: { filename: "a.pdf", file_data: url("application/pdf") } }, inline("application/pdf")],
  ["input_audio", { type: "input_audio", input_audio: { data, format: "wav" } }, inline("audio/wav")],
  ["video_url", { type: "video_url", video_url: { url: url("video/mp4") } }, inline("video/mp4")],
  ["a screenshot", { type: "computer_screenshot", image_url: url("image/png") }, inline("image/png")],
  [
    "the result of a computer",
    {
      type: "computer_call_output",
      call_id: "c",
      output: { type: "computer_screenshot", image_url: url("image/png") }
    },
    inline("image/png")
  ],
  ["a generated image", { type: "image_generation_call", id: "ig_1", result: data }, inline("image/png")],
  ["MCP's and Pi's image", { type: "image", mimeType: "image/png", data }, inline("image/png")],
  ["MCP's audio", { type: "audio", mimeType: "audio/mp3", data }, inline("audio/mp3")],
  [
    "MCP's resource",
    { type: "resource", resource: { uri: "a:b", mimeType: "image/png", blob: data } },
    inline("image/png")
  ],
  ["opencode's file", { type: "file", mime: "image/png", url: url("image/png") }, inline("image/png")],
  ["Gemini's data", inline("image/png"), inline("image/png")]
]

const tokens = (part: Part) => runSync(partTokens(part))
const answered = (response: unknown): Part => ({ functionResponse: { id: "c", name: "look", response } })

describe("media in a tool's result", () => {
  it.each(blocks)("%s is what it is in a message, and never text", (_, block, media) => {
    assert.deepStrictEqual(blockMedia(block), media)
    const text = { type: "text", text: "seen" }
    for (const response of [[block, text], { content: [text, block] }, { output: { deep: [block, text] } }]) {
      const part = answered(response)
      assert.deepStrictEqual(responseContent(part), { text: "seen", media: [media] })
      assert.strictEqual(tokens(part), tokens(answered("seen")) + tokens(media))
      assert.match(responseText(part), /^seen\n\[\S+ (?:of 300000 bytes|at \S+)\]$/)
      const sent = geminiContent({ role: "user", parts: [part] }, { dialect: "gemini", server: "s", model: "m" })
      assert.deepStrictEqual(sent.parts.slice(1), [media])
      assert.notInclude(JSON.stringify(sent.parts[0]), data)
    }
  })

  it("leaves a result without media as it is, whatever it looks like", () => {
    for (const value of [
      "x",
      null,
      5,
      [],
      {},
      [{ type: "image" }],
      { type: "file", file: "a" },
      { a: [{ type: "image", data: 1 }] },
      // What a tool read of a file.
      { result: JSON.stringify([{ type: "image_url", image_url: { url: "https://a/b.png" } }]) },
      { result: JSON.stringify({ files: [{ type: "file", url: "https://a/b.txt", mime: "text/plain" }] }) }
    ]) {
      const { media, rest } = splitMedia(value)
      assert.deepStrictEqual(media, [])
      assert.strictEqual(rest, value)
    }
    assert.strictEqual(responseText(answered({ a: [1, { b: 2 }] })), '{"a":[1,{"b":2}]}')
  })

  it.each<readonly [dialect: keyof typeof wire, messages: ReadonlyArray<object>]>([
    ["anthropic", [{ role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: [blocks[0]?.[1]] }] }]],
    ["responses", [{ type: "function_call_output", call_id: "c", output: [blocks[4]?.[1]] }]],
    ["responses", [{ role: "user", content: [blocks[6]?.[1]] }]],
    ["responses", [{ ...blocks[10]?.[1] }]],
    ["chat", [{ role: "tool", tool_call_id: "c", content: [blocks[7]?.[1]] }]],
    ["chat", [{ role: "user", content: [blocks[8]?.[1], blocks[9]?.[1]] }]],
    ["chat", [{ role: "assistant", content: "here", images: [blocks[7]?.[1]] }]],
    [
      "gemini",
      [{ role: "user", parts: [{ functionResponse: { name: "look", response: {}, parts: [inline("image/png")] } }] }]
    ],
    [
      "gemini",
      [
        {
          role: "user",
          parts: [
            {
              function_response: {
                name: "look",
                response: {},
                parts: [{ inline_data: { mime_type: "image/png", data } }]
              }
            }
          ]
        }
      ]
    ],
    // Results of tools that the provider runs.
    [
      "anthropic",
      [{ role: "assistant", content: [{ type: "mcp_tool_result", tool_use_id: "c", content: [blocks[0]?.[1]] }] }]
    ],
    [
      "anthropic",
      [
        {
          role: "assistant",
          content: [
            {
              type: "web_fetch_tool_result",
              tool_use_id: "c",
              content: { type: "web_fetch_result", url: "https://a/b.pdf", content: blocks[1]?.[1] }
            }
          ]
        }
      ]
    ],
    [
      "responses",
      [
        {
          type: "mcp_call",
          id: "m",
          name: "look",
          output: JSON.stringify([{ type: "image", mimeType: "image/png", data }])
        }
      ]
    ],
    [
      "responses",
      [{ type: "code_interpreter_call", id: "ci_1", code: "x", outputs: [{ type: "image", url: url("image/png") }] }]
    ]
  ])("is counted as media in %s", (dialect, messages) => {
    const contents = wire[dialect].messages.read(messages).map(({ content }): Content => content)
    const counted = contents.flatMap(({ parts }) => parts).reduce((sum, part) => sum + tokens(part), 0)
    assert.isAbove(counted, 0)
    assert.isBelow(counted, 40_000)
    assert.isTrue(
      contents.some(({ parts }) => parts.some((part) => isMedia(part) || responseContent(part).media.length > 0))
    )
  })
})
