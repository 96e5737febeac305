import { Effect } from "effect"
import { text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { entries, entryId, type Patch } from "../../../src/domain/conversation/Conversation.ts"
import * as PersistentList from "../../../src/domain/text/PersistentList.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { dialects } from "../../../src/domain/wire/Dialect.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import { withPatch } from "../../../src/services/conversation/KnownConversation.ts"
import {
  changedEnd,
  type ConversationLog,
  emptyLog,
  isWithinGroup,
  logUpTo,
  viewMessages,
  withMessages
} from "../../../src/services/gateway/ConversationLog.ts"
import { MessageCounts } from "../../../src/services/gateway/MessageCounts.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe.each(dialects)("a conversation in the dialect %s", (dialect) => {
  it.effect("names the gateway's tool alike in all conversations, and sends what it read", Offline.layer, function* () {
    const codec = codecs[dialect]
    const names = ["palimpsest_recall_2", "read_file"]
    const calls = names.map((name) => ({ kind: "call", id: `c_${name}`, name, args: { path: name } }) as const)
    const instructs = (content: string) => (dialect === "chat" ? [{ role: "system", content }] : [])
    const all = [
      ...instructs("First."),
      ...codec.user("Look."),
      ...codec.assistant([{ kind: "text", text: "I look." }, ...calls]),
      ...codec.results(calls.map(({ id, name }) => ({ id, name, text: `of ${name}` }))),
      ...instructs("Between."),
      ...codec.assistant([{ kind: "text", text: "Seen." }]),
      ...codec.user("And?"),
      ...instructs("Last.")
      // Exactly as they came, white space and all.
    ].map((message) => JSON.stringify(message, undefined, 1))
    const sent = all.map((json, at) => ({ json, upTo: at + 1, isEnd: true }))
    // Added in two steps, as requests grow.
    const before = all.findIndex((json) => json.includes("Seen."))
    const first = yield* withMessages(emptyLog(dialect), sent.slice(0, before))
    const log = yield* withMessages(first, sent.slice(before))
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
    const trailing = dialect === "chat" ? 1 : 0
    assert.deepStrictEqual([log.messages, log.groups.at(-1)?.to], [all, all.length - trailing])

    const looked = all.findIndex((json) => json.includes("Look."))
    assert.isFalse(isWithinGroup(first, looked + 1))
    assert.strictEqual(isWithinGroup(first, before - trailing - 1), dialect === "chat" || dialect === "responses")

    // Up to a place it is as if the others had not been added.
    for (let end = before; end <= all.length; end += 1) {
      if (isWithinGroup(log, end)) continue
      const again = yield* withMessages(first, sent.slice(before, end))
      const shorter = logUpTo(first, log, end)
      assert.deepStrictEqual(entries(shorter.conversation), entries(again.conversation))
      const placesOf = ({ groups, messages }: ConversationLog) => [
        messages,
        ...groups.map(({ from, to }) => [from, to])
      ]
      assert.deepStrictEqual(placesOf(shorter), placesOf(again))
    }

    // What was dropped leaves, but for instructions; what was shortened is the client's message with another output.
    const handle = Handle.make("h_aaaaaaaaaa")
    const summary = { id: entryId(99), content: user(text("They looked.")), tokens: [3], handles: [handle] }
    const drop: Patch = { drop: { from: entryId(1), to: entryId(3) }, insert: [summary], shorten: [] }
    const left = withPatch(log, drop, handle)
    const kept = all.slice(before - trailing)
    const sentLeft = viewMessages(left)
    assert.include(sentLeft[trailing], "They looked.")
    assert.deepStrictEqual(sentLeft.toSpliced(trailing, 1), [...all.slice(0, trailing), ...kept])
    assert.deepStrictEqual(
      PersistentList.toArray(left.ranges).map((range) => [range.handle, ...range.entries.map(({ id }) => id)]),
      [[handle, "e1", "e2", "e3"]]
    )
    const [, , answers] = entries(log.conversation)
    const replacement = {
      functionResponse: { ...answers?.content.parts[1]?.functionResponse, response: { output: "short" } }
    }
    const shorten = [{ entry: entryId(3), part: 1, replacement, tokens: TokenCount.make(1) }]
    const shorter = withPatch(log, { insert: [], shorten }, undefined)
    assert.isUndefined(shorter.ranges)
    assert.deepStrictEqual(
      viewMessages(shorter).map((json) => JSON.parse(json)),
      all.map((json) => JSON.parse(json.replace("of read_file", "short")))
    )
    // All other entries are as they came.
    assert.isAtMost(viewMessages(shorter).filter((json, at) => json !== all[at]).length, 2)

    assert.strictEqual(changedEnd(log, drop), before - trailing)
    assert.strictEqual(changedEnd(log, { insert: [], shorten }), before - trailing)
    assert.strictEqual(changedEnd(log, { insert: [], shorten: [] }), 0)
  })

  it.effect("has the counts of its messages, which are counted once", Offline.layer, function* () {
    const counts = new MessageCounts()
    const codec = codecs[dialect]
    const call = { kind: "call", id: "c1", name: "read_file", args: { path: "a.ts" } } as const
    const messages = [
      ...codec.user("Look."),
      ...codec.assistant([{ kind: "text", text: "I look." }, call]),
      ...codec.results([{ id: "c1", name: "read_file", text: "seen" }])
    ].map((message) => JSON.stringify(message))
    const counted = messages.map((json, at) => ({
      json,
      upTo: at + 1,
      isEnd: true,
      text: counts.message(dialect, json)
    }))
    const never = TokenCounter.of({ count: () => Effect.die("a message is counted again") })
    const log = yield* withMessages(emptyLog(dialect), counted).pipe(Effect.provideService(TokenCounter, never))
    assert.deepStrictEqual(
      entries(log.conversation).flatMap(({ tokens }) => tokens),
      counted.flatMap(({ text }) => text.count.parts)
    )
  })
})
