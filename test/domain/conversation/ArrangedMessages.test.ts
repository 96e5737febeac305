import { assert, describe, it } from "@effect/vitest"
import { text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { arrangedMessages } from "../../../src/domain/conversation/ArrangedMessages.ts"
import {
  append,
  compressed,
  empty,
  type Entry,
  entryId,
  type Patch
} from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"

/** Messages of a caller, a letter each: small ones are instructions, and two of the same letter are one entry. */
const rangesOf = (messages: string) =>
  [...messages.matchAll(/([A-Z])\1*/g)].map(({ 0: { length }, index }) => ({ from: index, to: index + length }))

const entryOf = (sequence: number, line?: number): Entry => ({
  id: entryId(sequence),
  content: user(text(`entry ${sequence}`)),
  tokens: [1],
  handles: [Handle.make("h_aaaaaaaaaa")],
  ...(line === undefined ? {} : { origin: { line, ids: [] } })
})

/** What is sent for these messages after patches: the messages by their letters, and items by their ids in brackets. */
const sent = (messages: string, ...patches: ReadonlyArray<Patch>) => {
  const ranges = rangesOf(messages)
  const whole = ranges.reduce((self, _, at) => append(self, entryOf(at + 1, at + 1)), empty)
  const conversation = patches.reduce(compressed, whole)
  return arrangedMessages(conversation, ranges, messages.length)
    .map((each) => (typeof each === "number" ? messages[each] : `(${each.entry.id})`))
    .join("")
}

const drop = (from: number, to: number, by: ReadonlyArray<Entry> = [entryOf(9)]): Patch => ({
  drop: { from: entryId(from), to: entryId(to) },
  insert: by,
  shorten: []
})

describe("the messages of a view", () => {
  it.each([
    ["are the caller's where nothing left", "aAbBBcCd", [], "aAbBBcCd"],
    ["have instructions among those that left behind the first ones", "aAbBBcCdDe", [drop(1, 3)], "abc(e9)dDe"],
    ["keep instructions at the front where the first message stays", "aAbBcCdDe", [drop(2, 3)], "abcA(e9)dDe"],
    [
      "keep instructions of all compressions in order",
      "aAbBcCdDeE",
      [drop(1, 2), drop(9, 3, [entryOf(10)])],
      "abc(e10)dDeE"
    ],
    ["are instructions where there is no other", "abc", [], "abc"],
    ["are none where there is none", "", [], ""]
  ])("%s", (_rule, messages, patches, expected) => {
    assert.strictEqual(sent(messages, ...patches), expected)
  })

  it("are written where a part is shorter, with all messages of their entry", () => {
    const replacement = text("short")
    const shorten = [{ entry: entryId(2), part: 0, replacement, tokens: TokenCount.make(1) }]
    assert.strictEqual(sent("aABBbC", { insert: [], shorten }), "aA(e2)bC")
  })

  it("keep instructions around a snapshot that the caller sends, when it leaves", () => {
    // The first two entries left before; a snapshot stands for them, which the caller sends as its first message.
    const ranges = rangesOf("aAbBcC")
    const before = [entryOf(1), entryOf(2)].reduce(append, empty)
    const continued = compressed(before, drop(1, 2, [entryOf(3, 1), entryOf(4, 2)]))
    const conversation = compressed(append(continued, entryOf(5, 3)), drop(3, 4))
    const letters = arrangedMessages(conversation, ranges, 6).map((each) =>
      typeof each === "number" ? "aAbBcC"[each] : `(${each.entry.id})`
    )
    assert.strictEqual(letters.join(""), "ab(e9)cC")
  })
})
