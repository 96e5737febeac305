import { assert, it } from "@effect/vitest"
import type { Json } from "../../../src/domain/text/JsonObject.ts"
import { usableBlocks, usableTools } from "../../../src/domain/tools/McpEntries.ts"

const look = { name: "look", description: "Looks.", inputSchema: { type: "object", properties: {} } }

it("a tool that cannot be read costs no other, and is named", () => {
  const odd = { name: "either", inputSchema: { anyOf: [{ required: ["a"] }, { required: ["b"] }] } }
  const noisy = { ...look, name: "noisy", icons: "none", outputSchema: 1, annotations: [] }
  const { result, unreadable } = usableTools({
    tools: [look, odd, noisy, { inputSchema: look.inputSchema }, { name: 7 }, null],
    nextCursor: "2"
  })
  assert.deepStrictEqual(result, {
    tools: [look, { ...odd, inputSchema: { ...odd.inputSchema, type: "object" } }, { ...look, name: "noisy" }],
    nextCursor: "2"
  })
  assert.deepStrictEqual(
    unreadable,
    Array.from({ length: 3 }, () => "a tool without a name")
  )
  assert.deepStrictEqual(
    usableTools({ tools: [{ name: "bad", description: 1, inputSchema: { type: 1 } }] }).unreadable,
    []
  )
  for (const other of [null, { tools: "none" }]) {
    assert.deepStrictEqual(usableTools(other), { result: other, unreadable: [] })
  }
})

it("a block that cannot be read costs no other", () => {
  const text = { type: "text", text: "seen" }
  const { content } = usableBlocks({ content: [text, { type: "hologram" }, { type: "image", data: "?" }, 7] }) as {
    readonly content: ReadonlyArray<typeof text>
  }
  assert.deepStrictEqual(content[0], text)
  for (const [at, type] of [`"hologram"`, `"image"`, `"no type"`].entries()) assert.include(content[at + 1]?.text, type)
  assert.deepStrictEqual(usableBlocks({ isError: true }), { isError: true })
})

it("null stands for what is not there", () => {
  const nulls = { ...look, title: null, annotations: { title: null, readOnlyHint: true } }
  const bare = { name: "bare", description: null, inputSchema: { type: "object", properties: null, required: null } }
  assert.deepStrictEqual(usableTools({ tools: [nulls, bare] }).result, {
    tools: [
      { ...look, annotations: { readOnlyHint: true } },
      { name: "bare", inputSchema: { type: "object" } }
    ]
  })
  const text = { type: "text", text: "seen" }
  const file = { type: "resource", resource: { uri: "a:b", text: "seen" } }
  const content = [
    { ...text, annotations: null, _meta: null },
    { ...file, resource: { ...file.resource, mimeType: null } }
  ]
  assert.deepStrictEqual(usableBlocks({ content }), { content: [text, file] })
  assert.deepStrictEqual(usableBlocks({ content: "seen" }), { content: [text] })
  const structuredContent = { a: 1 }
  assert.deepStrictEqual(usableBlocks({ content: null, structuredContent }), { content: [], structuredContent })
  assert.deepStrictEqual(usableBlocks({ content: null, isError: true }), { content: [], isError: true })
  assert.deepStrictEqual(usableTools({ tools: null }), { result: { tools: [] }, unreadable: [] })
})

it.each(["aGVsbG8=", "aGVsbG8", "data:image/png;base64,aGVsbG8=", "aGVs\nbG8=\n"])(
  "the data of an image may be written as %j",
  (data) => {
    const block = { type: "image", mimeType: "image/png" }
    const { content } = usableBlocks({ content: [{ ...block, data }] }) as { readonly content: ReadonlyArray<Json> }
    assert.strictEqual(String(content[0]?.["data"]).replaceAll(/\s/g, ""), "aGVsbG8=")
  }
)
