import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { rebased } from "../../../src/domain/compression/Rebase.ts"
import { response, text, user } from "../../../src/domain/content/Content.ts"
import { branched } from "../../../src/domain/conversation/Branches.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { entryOf } from "../../support/entries.ts"
import { runsOf } from "../../support/runs.ts"

const small = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** A compression, what was appended before it and after it, and what was masked between. */
const Case = Schema.Struct({
  messages: small(1, 8),
  from: small(0, 7),
  to: small(0, 7),
  inserted: small(1, 2),
  shortened: Schema.Array(small(0, 7)),
  appended: small(0, 5),
  masked: Schema.Array(small(0, 12)),
  isCompressedBefore: Schema.Boolean
})
type Case = typeof Case.Type

const entry = (sequence: number, words: string, author?: Conversation.Author) =>
  entryOf(sequence, user(response("read_file", { output: words }, words)), {
    tokens: [100],
    ...(author === undefined ? {} : { author })
  })

const appendedTo = (conversation: Conversation.Conversation, words: string) =>
  Conversation.append(conversation, entry(conversation.next, words))

const many = (count: number, start: Conversation.Conversation, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix} ${index}`).reduce(appendedTo, start)

const shorter = (
  conversation: Conversation.Conversation,
  indexes: ReadonlyArray<number>,
  words: string
): Conversation.Patch["shorten"] =>
  indexes.flatMap((index) => {
    const item = Conversation.view(conversation)[index]
    return item === undefined
      ? []
      : [{ entry: item.entry.id, part: 0, replacement: text(words), tokens: TokenCount.make(5) }]
  })

const begun = ({ isCompressedBefore, messages }: Case): Conversation.Conversation => {
  const plain = many(messages, Conversation.empty, "message")
  return isCompressedBefore
    ? Conversation.compressed(plain, { insert: [entry(plain.next, "an earlier snapshot", "summary")], shorten: [] })
    : plain
}

const patchOf = (conversation: Conversation.Conversation, { from, inserted, shortened, to }: Case) => {
  const items = Conversation.view(conversation)
  const [first, last] = [Math.min(from, to) % items.length, Math.max(from, to) % items.length]
  const [start, end] = [items[Math.min(first, last)], items[Math.max(first, last)]]
  assert(start !== undefined && end !== undefined)
  return {
    drop: { from: start.entry.id, to: end.entry.id },
    insert: Array.from({ length: inserted }, (_, index) =>
      entry(conversation.next + index, `snapshot ${index}`, "summary")
    ),
    shorten: shorter(conversation, shortened, "shortened by the compression")
  }
}

/** What the model sees, without ids. */
const shown = (conversation: Conversation.Conversation) =>
  Conversation.view(conversation).map((item) => ({
    author: item.entry.author,
    parts: Conversation.itemParts(item),
    tokens: Conversation.itemTokens(item)
  }))

describe("rebased", () => {
  it.prop(
    "gives the view of compressing first and appending afterwards",
    [Case],
    ([one]) => {
      const from = begun(one)
      const patch = patchOf(from, one)
      const to = many(one.appended, from, "later")
      const later = rebased(patch, from, to)
      assert(later !== undefined)
      const adopted = Conversation.compressed(to, later)
      assert.deepStrictEqual(
        shown(adopted),
        shown(many(one.appended, Conversation.compressed(from, patch), "later")),
        "the views differ"
      )
      const ids = Conversation.view(adopted).map((item) => item.entry.id)
      assert.strictEqual(new Set(ids).size, ids.length, "two entries have one id")
      assert.isTrue(later.insert.every(({ id }, index) => id === Conversation.entryId(to.next + index)))
      assert.deepStrictEqual(shown(Conversation.undone(adopted)), shown(to), "an undo gives something else")
    },
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it.prop(
    "keeps the form of results that were masked meanwhile",
    [Case],
    ([one]) => {
      const from = begun(one)
      const patch = patchOf(from, one)
      const grown = many(one.appended, from, "later")
      const to = Conversation.masked(grown, shorter(grown, one.masked, "masked"))
      const later = rebased(patch, from, to)
      assert(later !== undefined)
      const masked = new Map(Conversation.view(to).map((item) => [item.entry.id, item]))
      for (const item of Conversation.view(Conversation.compressed(to, later))) {
        const before = masked.get(item.entry.id)
        if (before === undefined || before.shortened.size === 0) continue
        assert.deepStrictEqual(Conversation.itemParts(item), Conversation.itemParts(before))
      }
    },
    { arbitrary: { runs: runsOf(1_000) } }
  )

  const from = many(6, Conversation.empty, "message")
  const patch: Conversation.Patch = {
    drop: { from: Conversation.entryId(1), to: Conversation.entryId(3) },
    insert: [entry(7, "snapshot", "summary")],
    shorten: []
  }
  const other = { ...patch, drop: { from: Conversation.entryId(4), to: Conversation.entryId(5) } }
  const compressed = Conversation.compressed(from, other)

  const changes: Readonly<Record<string, readonly [Conversation.Conversation, Conversation.Conversation]>> = {
    "was compressed": [from, compressed],
    "was undone": [compressed, Conversation.undone(compressed)],
    "was compressed and undone": [from, Conversation.undone(compressed)],
    "was undone and redone": [compressed, Conversation.redone(Conversation.undone(compressed))],
    "went back to an earlier message": [from, branched(from, Conversation.entryId(4))],
    "went back and on": [from, many(4, branched(from, Conversation.entryId(4)), "on another branch")],
    "is another one": [from, many(6, Conversation.empty, "message")]
  }
  it.each(Object.entries(changes))("gives nothing when the conversation %s", (_, [before, after]) => {
    assert.isUndefined(rebased(patch, before, after))
  })
})
