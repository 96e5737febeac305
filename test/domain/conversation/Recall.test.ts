import { assert, describe, it } from "@effect/vitest"
import { call, model, text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import {
  droppedEntries,
  findHandle,
  rangeText,
  recall,
  recallable,
  similarHandles
} from "../../../src/domain/conversation/Recall.ts"

const first = Handle.make("h_aaaaaaaaaa")
const second = Handle.make("h_aaaaaaaaab")
const third = Handle.make("h_cccccccccc")
const range = Handle.make("h_dddddddddd")

const said: Conversation.Entry = {
  id: Conversation.entryId(1),
  content: user(text("first\n"), text("second")),
  tokens: [1, 1],
  handles: [first, second]
}
const called: Conversation.Entry = {
  id: Conversation.entryId(2),
  content: model(call("read", { n: 12345678901234567000 })),
  source: { "0": '{"functionCall":\r\n {"name":"read","args":{"n":12345678901234567890}}}' },
  tokens: [1],
  handles: [third]
}
const conversation = [said, called].reduce(Conversation.append, Conversation.empty)
const all = recallable(conversation, [{ handle: range, entries: [said, called] }])

it.each([
  ["h_aaaaaaaaac", [first, second]],
  ["h_aaaaaaaabb", [second, first]],
  ["h_cccccccc", [third]],
  ["h_zzzzzzzzzz", []]
])("suggests the handles closest to %s", (name, handles) => assert.deepStrictEqual(similarHandles(all, name), handles))

describe("recall", () => {
  it("returns a text as itself and other parts as their original JSON", () => {
    assert.deepStrictEqual(recall(all, first), { form: "text", text: "first\n" })
    assert.deepStrictEqual(recall(all, third), { form: "json", text: called.source?.["0"] })
    assert.isUndefined(recall(all, "h_eeeeeeeeee"))
  })

  it("returns a dropped range as one message per line, with exact parts", () => {
    const expected =
      '{"role":"user","parts":[{"text":"first\\n"},{"text":"second"}]}\n' +
      '{"role":"model","parts":[{"functionCall":  {"name":"read","args":{"n":12345678901234567890}}}]}\n'
    assert.strictEqual(recall(all, range)?.text.replace(/ {2}/g, " "), expected.replace(/ {2}/g, " "))
    assert.strictEqual(rangeText([]), "")
  })

  it("reaches entries that compressions inserted and dropped", () => {
    const summary: Conversation.Entry = {
      id: Conversation.entryId(3),
      content: user(text("summary")),
      author: "summary",
      tokens: [1],
      handles: [Handle.make("h_ffffffffff")]
    }
    const drop = { from: said.id, to: said.id }
    const compressed = Conversation.compressed(conversation, { drop, insert: [summary], shorten: [] })
    assert.strictEqual(recall(recallable(compressed), "h_ffffffffff")?.text, "summary")
    assert.strictEqual(recall(recallable(compressed), first)?.text, "first\n")
    assert.deepStrictEqual(droppedEntries(Conversation.view(conversation), drop), [said])
  })
})

describe("find", () => {
  it("accepts a unique prefix of a handle", () => {
    assert.strictEqual(findHandle(all, "h_ccc")._tag, "Found")
    assert.deepStrictEqual(findHandle(all, "h_aaa"), { _tag: "Ambiguous", handles: [first, second] })
  })

  it("prefers an exact handle to a prefix, and accepts more of the hash", () => {
    assert.deepStrictEqual(findHandle(all, first), {
      _tag: "Found",
      handle: first,
      payload: { form: "text", text: "first\n" }
    })
    const longer = findHandle(all, `${third}234`)
    assert.strictEqual(longer._tag === "Found" && longer.handle, third)
  })

  it("accepts no other names", () => {
    for (const name of ["", "h", "h_", "h_z", "cccccccccc", "h_cccccccccd"])
      assert.strictEqual(findHandle(all, name)._tag, "Unknown", name)
  })
})
