import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { dialects } from "../../../src/domain/wire/Dialect.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import { emptyLog, viewMessages, withMessages } from "../../../src/services/gateway/ConversationLog.ts"
import { isOwnTool } from "../../../src/services/gateway/ConversationMemory.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe.each(dialects)("a conversation in the dialect %s", (dialect) => {
  it.effect("names the gateway's tool alike in all conversations, and sends what it read", Offline.layer, function* () {
    const codec = codecs[dialect]
    const names = ["palimpsest_recall_2", "read_file"]
    const calls = names.map((name) => ({ kind: "call", id: `c_${name}`, name, args: { path: name } }) as const)
    const all = [
      ...codec.user("Look."),
      ...codec.assistant([{ kind: "text", text: "I look." }, ...calls]),
      ...codec.results(calls.map(({ id, name }) => ({ id, name, text: `of ${name}` }))),
      ...codec.assistant([{ kind: "text", text: "Seen." }]),
      ...codec.user("And?")
    ].map((message) => JSON.stringify(message))
    const sent = all.map((json, at) => ({ json, upTo: at + 1, isEnd: true }))
    // Added in two steps, as requests grow.
    const before = all.findIndex((json) => json.includes("Seen."))
    const first = yield* withMessages(emptyLog(dialect), sent.slice(0, before), isOwnTool)
    const log = yield* withMessages(first, sent.slice(before), isOwnTool)
    const found = entries(log.conversation).map(({ content, id }) => [
      id,
      content.role,
      ...content.parts.map(
        ({ functionCall, functionResponse, text }) => text ?? functionCall?.name ?? functionResponse?.name
      )
    ])
    assert.deepStrictEqual(found, [
      ["e1", "user", "Look."],
      ["e2", "model", "I look.", "recall", "read_file"],
      ["e3", "user", "recall", "read_file"],
      ["e4", "model", "Seen."],
      ["e5", "user", "And?"]
    ])
    assert.deepStrictEqual(viewMessages(log), all)
    assert.deepStrictEqual(log.trailing, [])
  })
})
