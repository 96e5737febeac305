import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { SseSplitter } from "../../../src/domain/wire/SseEvents.ts"

const Pieces = Schema.Array(
  Schema.Literals(["data: 1", "event: a", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\r\r", ":", "data:[é]", " "])
)

const eventsOf = (texts: ReadonlyArray<string>) => {
  const splitter = new SseSplitter()
  return [...texts.flatMap((text) => splitter.push(text)), ...splitter.end()]
}

describe("events of a stream", () => {
  it.prop("are the same however the text is cut, and keep every character", [Pieces], ([texts]) => {
    const whole = texts.join("")
    // A line's end of two characters stays in one piece: half of it is one, too.
    const cut = [...whole.matchAll(/(?:\r\n)+|[^]/g)].map(([one]) => one)
    const events = eventsOf(cut)
    assert.strictEqual(events.map(({ raw }) => raw).join(""), whole)
    assert.deepStrictEqual(events, eventsOf([whole]))
  })

  it("that are not complete are counted", () => {
    const splitter = new SseSplitter()
    assert.lengthOf(splitter.push("data: 1\n\ndata: 2\r"), 1)
    // Eight characters in one piece.
    assert.strictEqual(splitter.pending, 8 + 32)
    assert.lengthOf(splitter.push("\n\r"), 0)
    assert.deepStrictEqual(
      splitter.push("\n").map(({ data }) => data),
      ["2"]
    )
    assert.strictEqual(splitter.pending, 0)
  })
})
