import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { text } from "../../../src/domain/content/Content.ts"
import { encodeLine } from "../../../src/domain/session/LogFormat.ts"
import { LogReader } from "../../../src/domain/session/LogReader.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import * as Bytes from "../../../src/domain/text/Bytes.ts"
import { appended, started } from "../../../src/layers/testing/SessionHistories.ts"
import { runsOf } from "../../support/runs.ts"

const events: ReadonlyArray<SessionEvent> = [
  started("s"),
  appended(1, text("é 😀 \n")),
  { _tag: "Undone", at: 1 },
  appended(2, text("x".repeat(100)))
]
const lines = events.map((event) => Bytes.encode(`${encodeLine(event)}\n`))
const whole = Bytes.encode(events.map((event) => `${encodeLine(event)}\n`).join(""))

const read = (chunks: ReadonlyArray<Uint8Array | string>, from = 0) => {
  const reader = new LogReader(from)
  const found = chunks.flatMap((chunk) => [...reader.push(typeof chunk === "string" ? Bytes.encode(chunk) : chunk)])
  reader.end()
  return { reader, found }
}

describe("a log read from its bytes", () => {
  it.prop(
    "yields the same lines and positions for any chunks",
    [Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: whole.length })))],
    ([cuts]) => {
      const ends = [0, ...cuts, whole.length].sort((a, b) => a - b)
      // One buffer for every chunk, as a store has it: what is kept has to be copied.
      const buffer = new Uint8Array(whole.length)
      const reader = new LogReader(7)
      const found = ends.slice(1).flatMap((end, index) => {
        const chunk = buffer.subarray(0, end - (ends[index] ?? 0))
        chunk.set(whole.subarray(ends[index], end))
        return [...reader.push(chunk)]
      })
      reader.end()
      assert.deepStrictEqual(
        found.map(({ event }) => event),
        events
      )
      let at = 7
      for (const [index, line] of found.entries()) {
        assert.deepStrictEqual([line.number, line.from, line.to], [index + 1, at, at + (lines[index]?.length ?? 0)])
        at = line.to
      }
      assert.deepStrictEqual([reader.good, reader.problem], [at, undefined])
    },
    { arbitrary: { runs: runsOf(300) } }
  )

  it.each([["half a line"], ["broken\n"], ["\n"], ["\u0000\u0000"]])(
    "ends where the last whole line does: then %j",
    (torn) => {
      const { found, reader } = read([whole, torn])
      assert.deepStrictEqual([found.length, reader.good, reader.problem], [4, whole.length, undefined])
    }
  )

  it("reads the lines before one that is no UTF-8, also of the same chunk", () => {
    const { found, reader } = read([Uint8Array.of(...whole, 0xff, 0x0a)])
    assert.deepStrictEqual([found.map(({ event }) => event), reader.good], [events, whole.length])
  })

  it.each([
    ["broken\n{}\n", "this is not JSON"],
    ["broken\nhalf", "this is not JSON"],
    ['{"_tag":"Undone"}\n', "at"],
    [`{"_tag":${"[".repeat(1_200)}${"]".repeat(1_200)}}\n{}\n`, "nested"]
  ])("names the line that cannot be read, after those before it: %j", (rest, message) => {
    const { found, reader } = read([whole, rest])
    assert.strictEqual(found.length, 4)
    assert.strictEqual(reader.problem?.line, 5)
    assert.include(JSON.stringify(reader.problem), message)
    assert.strictEqual(reader.good, whole.length)
  })

  it("skips optional lines of unknown kinds, and counts them", () => {
    const skipped = '{"_tag":"Later","ignorable":true}\n'
    const { found, reader } = read([skipped, whole])
    assert.deepStrictEqual(found.map(({ from, number }) => [from, number]).slice(0, 1), [[skipped.length, 2]])
    assert.strictEqual(reader.good, skipped.length + whole.length)
  })
})
