import { assert, describe, it } from "@effect/vitest"
import { type CountedMessages, KnownConversations } from "../../../src/services/conversation/KnownConversations.ts"

/** The names of the beginnings of a conversation of these messages, each with a letter. */
const namesOf = (messages: string): ReadonlyArray<string> =>
  Array.from({ length: messages.length + 1 }, (_, length) => messages.slice(0, length))

const make = (size = 8) => new KnownConversations<CountedMessages>(size)

/** The view of so many messages. */
const viewOf = (messages: number): CountedMessages => ({ messages, spoken: messages * 10, system: 1 })

describe("a known conversation", () => {
  it("is the same for the same beginning, and has the view and the lock of the one it continues", () => {
    const all = make()
    const begun = all.find(namesOf("ab"))
    assert.strictEqual(all.find(namesOf("ab")), begun)
    assert.notStrictEqual(all.find(namesOf("ac")), begun)
    const view = viewOf(1)
    all.remember(namesOf("ab"), begun, view)
    const next = all.find(namesOf("abcd"))
    assert.deepStrictEqual([next.view, next.length], [view, 4])
    assert.strictEqual(next.turn, begun.turn)
  })

  it("keeps the first of two compressions of as many messages, and the longer of others", () => {
    const all = make()
    const [one, other] = [all.find(namesOf("abc")), all.find(namesOf("abd"))]
    const [first, second] = [viewOf(1), viewOf(1)]
    all.remember(namesOf("abc"), one, first)
    all.remember(namesOf("abd"), other, second)
    assert.strictEqual(all.find(namesOf("a")).view, first)
    assert.strictEqual(all.find(namesOf("ae")).view, first)
  })

  it("branches where it was compressed, and nowhere else", () => {
    const all = make()
    const begun = all.find(namesOf("ab"))
    const view = viewOf(2)
    all.remember(namesOf("ab"), begun, view)
    const [one, other] = [all.find(namesOf("abc")), all.find(namesOf("abd"))]
    assert.deepStrictEqual([one.view, other.view], [view, view])
    assert.notStrictEqual(one.turn, other.turn)
    // What was continued is gone: another continuation of it finds the compression before.
    all.find(namesOf("abce"))
    assert.notStrictEqual(all.find(namesOf("abc")), one)
  })

  it("catches up with a longer compression of its beginning, by whomever", () => {
    const all = make()
    const late = all.find(namesOf("abcd"))
    const view = viewOf(2)
    const early = all.find(namesOf("abc"))
    all.remember(namesOf("abc"), early, viewOf(1))
    all.remember(namesOf("abc"), early, view)
    assert.isUndefined(late.view)
    all.catchUp(namesOf("abcd"), late)
    assert.strictEqual(late.view, view)
    // A shorter one changes nothing.
    all.remember(namesOf("ax"), all.find(namesOf("ax")), viewOf(1))
    all.catchUp(namesOf("abcd"), late)
    assert.strictEqual(late.view, view)
  })

  it("keeps the longer compression of a conversation that was continued meanwhile", () => {
    const all = make()
    const begun = all.find(namesOf("ab"))
    const next = all.find(namesOf("abc"))
    const longer = viewOf(3)
    all.remember(namesOf("abc"), next, longer)
    all.remember(namesOf("ab"), begun, viewOf(2))
    assert.strictEqual(all.find(namesOf("abc")).view, longer)
    assert.deepStrictEqual(all.find(namesOf("abx")).view, viewOf(2))
  })

  it("keeps the compression that was first, so that all who branch there send the same", () => {
    const all = make()
    const [one, other] = [all.find(namesOf("abc")), all.find(namesOf("abd"))]
    const first = viewOf(2)
    all.remember(namesOf("abc"), one, first)
    all.remember(namesOf("abd"), other, viewOf(2))
    const branch = all.find(namesOf("abx"))
    // It counts on from there.
    assert.deepStrictEqual([branch.view, branch.counted], [first, viewOf(2)])
  })

  it("is sent where others branch from it, and not forgotten meanwhile", () => {
    const all = make(3)
    const view = viewOf(1)
    all.remember(namesOf("ab"), all.find(namesOf("ab")), view)
    for (const other of "cdefg") {
      const branch = all.find(namesOf(`a${other}`))
      assert.deepStrictEqual([branch.view, branch.counted], [view, viewOf(1)])
      assert.isUndefined(all.find(namesOf(other)).view)
    }
  })

  it("is forgotten when others were used since, and an empty one is none", () => {
    const all = make(2)
    const first = all.find(namesOf("a"))
    all.find(namesOf("b"))
    assert.strictEqual(all.find(namesOf("a")), first)
    all.find(namesOf("c"))
    assert.strictEqual(all.find(namesOf("a")), first)
    assert.isUndefined(all.find(namesOf("b")).view)
    assert.notStrictEqual(all.find([""]), all.find([""]))
  })
})
