import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Content } from "../../../src/domain/content/Content.ts"
import { betaOf, requestBody } from "../../../src/domain/model/AnthropicMessages.ts"
import { chatBody, responsesBody } from "../../../src/domain/model/OpenAiMessages.ts"
import { toolNames } from "../../../src/domain/model/ToolDeclarations.ts"
import { makeReader } from "../../../src/layers/model/AnthropicAnswer.ts"
import { makeResponsesReader } from "../../../src/layers/model/OpenAiAnswer.ts"
import type { EventReader } from "../../../src/layers/model/ProviderExchange.ts"

const names = toolNames([])
const provided = { key: "KEY", baseUrl: "URL", api: "API" }

/** The parts of an answer of these events. */
const partsOf = (reader: EventReader, events: ReadonlyArray<unknown>) =>
  Effect.map(Effect.forEach(events, reader.read), (chunks) => chunks.flatMap((chunk) => chunk?.parts ?? []))

const said = (parts: Content["parts"]): ReadonlyArray<Content> => [
  { role: "user", parts: [{ text: "first" }] },
  { role: "model", parts },
  { role: "user", parts: [{ text: "second" }] }
]

describe("what a provider's server compacted", () => {
  it.effect("goes back to Anthropic as it came, with the header that it needs", () =>
    Effect.gen(function* () {
      const parts = yield* partsOf(
        makeReader(names, provided, (text) => text),
        [
          {
            type: "content_block_start",
            index: 0,
            content_block: { type: "compaction", content: null, later: { a: 1 } }
          },
          { type: "content_block_delta", index: 0, delta: { type: "compaction_delta", content: "The user built " } },
          {
            type: "content_block_delta",
            index: 0,
            delta: { type: "compaction_delta", content: "a site.", sealed: "x" }
          },
          { type: "content_block_stop", index: 0 },
          { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
          { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Done." } },
          { type: "content_block_stop", index: 1 }
        ]
      )
      const block = { type: "compaction", content: "The user built a site.", later: { a: 1 }, sealed: "x" }
      const request = { model: "claude-opus-5", contents: said(parts), tools: [], maxTokens: 100 }
      const { messages } = requestBody(request, names) as { readonly messages: ReadonlyArray<{ content: unknown }> }
      assert.deepStrictEqual(messages[1]?.content, [block, { type: "text", text: "Done." }])
      assert.strictEqual(betaOf(request), "compact-2026-01-12")
      assert.isUndefined(betaOf({ ...request, contents: said([{ text: "Done." }]) }))
      // Nothing but the compaction is an answer too.
      const alone = requestBody({ ...request, contents: said(parts.slice(0, 1)) }, names)["messages"]
      assert.deepInclude(alone, { role: "assistant", content: [block] })
    })
  )

  it.effect("goes back to the Responses API as it came, and to no other dialect", () =>
    Effect.gen(function* () {
      const item = { type: "compaction", id: "cmp_1", encrypted_content: "b64", created_by: "server" }
      const parts = yield* partsOf(
        makeResponsesReader(names, provided, (text) => text),
        [{ type: "response.output_item.done", item }]
      )
      const request = { model: "gpt-5.5", contents: said(parts), tools: [] }
      const input = responsesBody(request, names)["input"]
      assert.deepInclude(input, item)
      assert.notInclude(JSON.stringify(chatBody(request, names, true)), "b64")
      assert.notInclude(JSON.stringify(requestBody({ ...request, maxTokens: 100 }, names)), "b64")
      assert.deepInclude(chatBody(request, names, true)["messages"], { role: "assistant", content: "(no answer)" })
    })
  )
})
