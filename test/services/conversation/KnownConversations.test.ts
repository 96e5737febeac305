import { assert, describe, it } from "@effect/vitest"
import { type CountedMessages, KnownConversations } from "../../../src/services/conversation/KnownConversations.ts"

/** The names of the beginnings of a conversation of these messages, each with a letter. */
const namesOf = (messages: string): ReadonlyArray<string> =>
  Array.from({ length: messages.length + 1 }, (_, length) => messages.slice(0, length))

const make = (size = 8) => new KnownConversations<CountedMessages>(size)

/** The view of so many messages. */
const viewOf = (messages: number): CountedMessages => ({ messages, dialogue: messages * 10, system: 1 })

describe("a known conversation", () => {
  it("is the same for the same beginning, and has the lock of the one it continues", () => {
    const all = make()
    const begun = all.find(namesOf("ab"))
    assert.strictEqual(all.find(namesOf("ab")), begun)
    assert.notStrictEqual(all.find(namesOf("ac")), begun)
    const view = viewOf(1)
    all.remember(namesOf("ab"), view)
    const next = all.find(namesOf("abcd"))
    assert.deepStrictEqual([all.view(namesOf("abcd")), next.length], [view, 4])
    assert.strictEqual(next.turn, begun.turn)
  })

  it("goes on with what it sent, whoever compresses more of its beginning", () => {
    const all = make()
    const [own, other] = [viewOf(1), viewOf(2)]
    all.find(namesOf("abc")).view = own
    all.remember(namesOf("ab"), other)
    assert.strictEqual(all.find(namesOf("abc")).view, own)
    assert.strictEqual(all.find(namesOf("abcd")).view, own)
    assert.strictEqual(all.find(namesOf("abx")).view, other)
  })

  it("branches where it was compressed, and nowhere else", () => {
    const all = make()
    const begun = all.find(namesOf("ab"))
    const view = viewOf(2)
    all.remember(namesOf("ab"), view)
    const [one, other] = [all.find(namesOf("abc")), all.find(namesOf("abd"))]
    assert.deepStrictEqual([all.view(namesOf("abc")), all.view(namesOf("abd"))], [view, view])
    assert.lengthOf(new Set([begun.turn, one.turn, other.turn]), 3)
    assert.strictEqual(all.find(namesOf("ab")), begun)
    // What was continued is gone: another continuation of it finds the compression before.
    all.find(namesOf("abce"))
    assert.notStrictEqual(all.find(namesOf("abc")), one)
  })

  it("has the longest compression of its beginning, by whomever, and counts on from there", () => {
    const all = make()
    all.find(namesOf("abcd"))
    const [shorter, longer] = [viewOf(1), viewOf(2)]
    all.remember(namesOf("abc"), shorter)
    assert.strictEqual(all.view(namesOf("abcd")), shorter)
    all.remember(namesOf("abc"), longer)
    assert.strictEqual(all.view(namesOf("abcd")), longer)
    assert.strictEqual(all.view(namesOf("a")), shorter)
    assert.isUndefined(all.view(namesOf("b")))
    assert.strictEqual(all.find(namesOf("abx")).counted, longer)
  })

  it("does not count anew what was counted behind its compression", () => {
    const all = make()
    const counted = viewOf(3)
    all.find(namesOf("abc")).counted = counted
    all.remember(namesOf("abc"), viewOf(2))
    assert.strictEqual(all.find(namesOf("abcd")).counted, counted)
  })

  it("keeps the compression that was first, so that all who branch there send the same, until that is replaced", () => {
    const all = make()
    const [first, second] = [viewOf(2), viewOf(2)]
    all.remember(namesOf("abc"), first)
    all.remember(namesOf("abd"), second)
    assert.strictEqual(all.view(namesOf("abx")), first)
    all.remember(namesOf("abd"), second, first)
    assert.strictEqual(all.view(namesOf("abx")), second)
  })

  it("has no compression of nothing, which would be that of all", () => {
    const all = make()
    all.remember(namesOf("a"), viewOf(0))
    assert.isUndefined(all.view(namesOf("a")))
    assert.notStrictEqual(all.find([""]), all.find([""]))
  })

  it("is forgotten when others were used since, its compression when others of those were", () => {
    const all = make(2)
    const first = all.find(namesOf("a"))
    all.find(namesOf("b"))
    assert.strictEqual(all.find(namesOf("a")), first)
    all.find(namesOf("c"))
    assert.strictEqual(all.find(namesOf("a")), first)
    const view = viewOf(1)
    all.remember(namesOf("a"), view)
    for (const other of "bcdef") {
      assert.isUndefined(all.view(namesOf(other)))
      all.remember(namesOf(other), viewOf(1))
      all.find(namesOf(other))
      // A branch uses it.
      assert.strictEqual(all.view(namesOf(`a${other}`)), view)
    }
    assert.notStrictEqual(all.find(namesOf("a")), first)
    assert.isUndefined(all.view(namesOf("b")))
  })
})
