import { Effect, Layer, Predicate, Result, Stream } from "effect"
import { Chat as AiChat } from "effect/ai"
import type { Content } from "../../../src/domain/content/Content.ts"
import type { AnswerReader } from "../../../src/domain/wire/AnswerReader.ts"
import { anthropicAnswerReader } from "../../../src/domain/wire/anthropic/Answer.ts"
import { betaOf, requestBody } from "../../../src/domain/wire/anthropic/Request.ts"
import { chatBody } from "../../../src/domain/wire/chat/Request.ts"
import { responsesAnswerReader } from "../../../src/domain/wire/responses/Answer.ts"
import { responsesBody } from "../../../src/domain/wire/responses/Request.ts"
import { toolNames } from "../../../src/domain/wire/ToolDeclarations.ts"
import { Chats, Models, Palimpsest } from "../../../src/index.ts"
import * as Home from "../../../src/layers/assembly/Home.ts"
import { newFolder } from "../../support/paths.ts"
import { anthropic, type Dialect, responses } from "../../support/ProviderDialects.ts"
import * as Server from "../../support/ProviderServer.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const names = toolNames([])

/** The parts of an answer of these events. */
const partsOf = (reader: AnswerReader, events: ReadonlyArray<unknown>) =>
  events.flatMap((event) => Result.getOrThrow(reader.read(event))?.parts ?? [])

const said = (parts: Content["parts"]): ReadonlyArray<Content> => [
  { role: "user", parts: [{ text: "first" }] },
  { role: "model", parts },
  { role: "user", parts: [{ text: "second" }] }
]

describe("what a provider's server compacted", () => {
  it.effect("goes back to Anthropic as it came, with the header that it needs", function* () {
    const parts = partsOf(
      anthropicAnswerReader({ tools: names, target: { dialect: "anthropic", server: "api", model: "m" } }),
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
    const request = { model: "claude-opus-5", server: "api", contents: said(parts), tools: [], maxOutputTokens: 100 }
    const { messages } = requestBody(request, names) as { readonly messages: ReadonlyArray<{ content: unknown }> }
    assert.deepStrictEqual(messages[1]?.content, [block, { type: "text", text: "Done." }])
    assert.strictEqual(betaOf(requestBody(request, names)), "compact-2026-01-12")
    assert.isUndefined(betaOf(requestBody({ ...request, contents: said([{ text: "Done." }]) }, names)))
    // Nothing but the compaction is an answer too.
    const alone = requestBody({ ...request, contents: said(parts.slice(0, 1)) }, names)["messages"]
    assert.deepInclude(alone, { role: "assistant", content: [block] })
  })

  it.effect("goes back to the Responses API as it came, and to no other dialect", function* () {
    const item = { type: "compaction", id: "cmp_1", encrypted_content: "b64", created_by: "server" }
    const parts = partsOf(
      responsesAnswerReader({ tools: names, target: { dialect: "responses", server: "api", model: "m" } }),
      [{ type: "response.output_item.done", item }]
    )
    const request = { model: "gpt-5.5", server: "api", contents: said(parts), tools: [] }
    const input = responsesBody(request, names)["input"]
    assert.deepInclude(input, item)
    assert.notInclude(JSON.stringify(chatBody(request, names, true)), "b64")
    assert.notInclude(JSON.stringify(requestBody({ ...request, maxOutputTokens: 100 }, names)), "b64")
    assert.deepInclude(chatBody(request, names, true)["messages"], { role: "assistant", content: "(no answer)" })
  })
})

/** Each dialect with a compaction as its server streams it, and as a request has to carry it. */
const compacting: ReadonlyArray<{
  readonly dialect: Dialect
  readonly events: ReadonlyArray<Server.NamedEvent>
  readonly item: object
  readonly sent: "input" | "messages"
}> = [
  {
    dialect: anthropic,
    events: [
      { type: "content_block_start", index: 9, content_block: { type: "compaction", content: null, sealed: "b64" } },
      { type: "content_block_delta", index: 9, delta: { type: "compaction_delta", content: "The user built a site." } },
      { type: "content_block_stop", index: 9 }
    ],
    item: { type: "compaction", content: "The user built a site.", sealed: "b64" },
    sent: "messages"
  },
  {
    dialect: responses,
    events: [
      {
        type: "response.output_item.done",
        output_index: 9,
        item: { type: "compaction", id: "cmp_1", encrypted_content: "b64" }
      }
    ],
    item: { type: "compaction", id: "cmp_1", encrypted_content: "b64" },
    sent: "input"
  }
]

/** A server whose first answer begins with a compaction. */
const compactingServer = ({ dialect, events }: (typeof compacting)[number]) =>
  Server.make((_, index) => {
    const answer = dialect.answer([{ text: "Done." }])
    const [start = "", ...rest] = answer.writes
    return index > 0 ? answer : { ...answer, writes: [start, ...Server.namedEvents(...events).writes, ...rest] }
  })

describe.each(compacting.map((each) => [each.dialect.name, each] as const))("%s", (_, each) => {
  const { dialect, item, sent } = each
  /** The items of a request, or the blocks of its messages. */
  const blocksOf = (request: Server.ProviderRequest | undefined): ReadonlyArray<unknown> =>
    [request?.body[sent]]
      .flat()
      .flatMap((message) => (Predicate.hasProperty(message, "content") ? message.content : message))

  it.live("is kept in a stored session, and sent again by the next process", function* () {
    const home = newFolder("compacted-")
    const server = yield* compactingServer(each)
    const ask = (question: string) =>
      Effect.flatMap(Chats.open("one"), (chat) => Stream.runDrain(chat.send(question))).pipe(
        Effect.scoped,
        Effect.provide(
          Layer.fresh(
            Palimpsest.layer({
              model: dialect.layer(server.url, "key"),
              home: Home.layer(home),
              chat: { model: dialect.model }
            })
          )
        )
      )
    yield* ask("first")
    yield* ask("second")
    assert.deepInclude(blocksOf(server.requests[1]), item)
  })

  it.live("is kept in an effect/ai history, also after its export", function* () {
    const server = yield* compactingServer(each)
    const layer = Models.layerLanguageModel({ model: dialect.model }).pipe(
      Layer.provide(dialect.layer(server.url, "key"))
    )
    yield* Effect.gen(function* () {
      const chat = yield* AiChat.fromPrompt([])
      yield* Stream.runDrain(chat.streamText({ prompt: "first" }))
      const again = yield* AiChat.fromJson(yield* chat.exportJson)
      yield* again.generateText({ prompt: "second" })
    }).pipe(Effect.provide(layer))
    assert.deepInclude(blocksOf(server.requests[1]), item)
  })
})
