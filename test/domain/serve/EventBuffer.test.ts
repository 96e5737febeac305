import { assert, describe, it } from "@effect/vitest"
import { beforeEvents, EventBuffer } from "../../../src/domain/serve/EventBuffer.ts"
import { sizeOf } from "../../support/runs.ts"

const content = (text: string) => ({ message: "m", event: { _tag: "Content" as const, text } })

describe("the buffer of events", () => {
  it("gives the events after a number, a page at a time", () => {
    const buffer = new EventBuffer("a")
    for (let index = 1; index <= 10; index += 1) buffer.add(content(String(index)))
    assert.deepStrictEqual(
      buffer.after(7).events.map(({ number }) => number),
      [8, 9, 10]
    )
    assert.deepStrictEqual(
      buffer.after(0, 2).events.map(({ number }) => number),
      [1, 2]
    )
    assert.deepStrictEqual(buffer.after(10), { events: [], hasGap: false })
  })

  it("is bounded in events and in characters, and tells a reader what it missed", () => {
    const many = new EventBuffer("a")
    for (let index = 0; index < 10_000; index += 1) many.add(content("x"))
    assert.strictEqual(many.last, 10_000)
    assert.isTrue(many.after(1).hasGap)
    assert.isAtMost(many.after(0, Infinity).events.length, 4_096)
    assert.isFalse(many.after(9_999).hasGap)
    const large = new EventBuffer("b")
    for (let index = 0; index < sizeOf(100, 12); index += 1) large.add(content("x".repeat(1_000_000)))
    assert.isAtMost(large.after(0, Infinity).events.length, 4)
    large.add(content("y".repeat(10_000_000)))
    assert.lengthOf(large.after(0, Infinity).events, 1)
  })

  it("knows its own ids and no others", () => {
    const buffer = new EventBuffer("abc")
    buffer.add(content("x"))
    assert.strictEqual(buffer.numberOf(buffer.idOf(1)), 1)
    assert.strictEqual(buffer.numberOf(beforeEvents(0)), undefined)
    for (const id of ["abc.2", "abd.1", "abc", "abc.1.1", "abc.-1", "abc.1e3", "", "abc.999999999999999999"]) {
      assert.isUndefined(buffer.numberOf(id), id)
    }
  })
})
