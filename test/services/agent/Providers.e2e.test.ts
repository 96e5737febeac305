import { Effect, Layer, Stream } from "effect"
import { plainText } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import { tool } from "../../support/agents.ts"
import { chat, dialects } from "../../support/ProviderDialects.ts"
import * as Server from "../../support/ProviderServer.ts"
import { begin } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The loop of the agent over each provider's dialect. */

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
    for (const thought of ["signed:I need both", "signed:one more"]) {
      assert.strictEqual(last.includes(thought), dialect !== chat)
    }
    for (const id of ["call_a", "call_b", "call_c"]) assert.lengthOf(last.split(`"${id}"`), 3)
    // What was sent stays as it was, but for the marks.
    const list = ({ body }: Server.ProviderRequest) =>
      JSON.stringify(body["messages"] ?? body["input"]).replaceAll(',"cache_control":{"type":"ephemeral"}', "")
    const sent = server.requests.map(list)
    for (const [at, one] of sent.slice(1).entries()) assert.isTrue(one.startsWith((sent[at] ?? "").slice(0, -1)))
  })
})
