import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, response, text } from "../../../src/domain/content/Content.ts"
import { entries, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { viewSizes } from "../../../src/domain/evaluation/Compactions.ts"
import { LongLogReader } from "../../../src/domain/session/LongLog.ts"
import { applyEvent, emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { appended, compressedBy, histories } from "../../../src/layers/testing/SessionHistories.ts"
import { inspect } from "../../../src/services/evaluation/Inspect.ts"
import { lawOfPlayed, property, scripts, thousand, worldOf } from "../../support/generate.ts"
import { runsOf } from "../../support/runs.ts"

const about = { model: "gemini-2.5-pro", cwd: "/home/user/work" }

/** What an inspection finds in a log with shortened texts, and in the whole: without facts and previews, which are about texts. */
const both = (events: ReadonlyArray<SessionEvent>, bytes = 100) => {
  const reader = new LongLogReader()
  for (const event of events) reader.add(event, bytes)
  const whole = events.reduce(applyEvent, emptySession)
  const found = ({ conversation }: typeof whole, known: ReadonlyArray<SessionEvent>) => {
    const { compactions, largest, ...inspection } = Effect.runSync(inspect(conversation, { ...about, events: known }))
    return {
      ...inspection,
      compactions: compactions.map((one) => ({ ...one, facts: null })),
      largest: largest.map((one) => ({ ...one, preview: "" })),
      sizes: [...viewSizes(conversation)]
    }
  }
  const { log } = reader
  return { log, whole, long: found(log.session, log.events), held: found(whole, events) }
}

describe("a log whose texts are shortened", () => {
  it.effect.prop(
    "is inspected as the whole, after any history",
    [histories],
    ([events]) =>
      Effect.sync(() => {
        const { held, long } = both(events)
        assert.deepStrictEqual(long, held)
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  const law = lawOfPlayed(({ events }) =>
    Effect.sync(() => {
      const { held, log, long, whole } = both(events)
      assert.deepStrictEqual(long, held)
      assert.deepStrictEqual(log.seen?.conversation, whole.conversation)
      return undefined
    })
  )
  it.effect.prop(
    "is inspected as the whole, for any conversation, and what the model sees is whole",
    [scripts],
    ([script]) => property(law, worldOf())(script),
    { arbitrary: thousand("long log", 200) }
  )

  it("knows the compressions of the branch that it went back to", () => {
    const { held, long } = both([
      appended(1, text("a")),
      compressedBy({ drop: { from: entryId(1), to: entryId(1) }, insert: [], shorten: [] }),
      appended(2, text("b")),
      { _tag: "Branched", at: 2, from: null },
      { _tag: "Branched", at: 3, from: entryId(2) }
    ])
    assert.deepStrictEqual(
      long.compactions.map(({ strategy }) => strategy),
      ["test"]
    )
    assert.deepStrictEqual(long, held)
  })

  it("holds 80 characters of each text, at any depth, and drops what the model sees where that is too large", () => {
    const long = "x".repeat(10_000)
    const parts = [
      text(long),
      call("write", { file_path: "a", content: long }, "1"),
      response("read", { output: [long] })
    ]
    const entry = { id: entryId(1), content: { role: "user" as const, parts }, tokens: [1, 2, 3], handles: [] }
    const { log } = both([{ _tag: "Appended", entry }], 20_000_000)
    const clipped = "x".repeat(80)
    assert.deepStrictEqual(entries(log.session.conversation)[0]?.content.parts, [
      text(clipped),
      call("write", { file_path: "a", content: clipped }, "1"),
      response("read", { output: [clipped] })
    ])
    assert.isUndefined(log.seen)
  })

  it("drops what the model sees when it has grown too large, line by line", () => {
    const kept = [10, 15, 17, 40].map((count) => {
      const reader = new LongLogReader()
      for (let n = 1; n <= count; n += 1) reader.add(appended(n, text("a")), 1024 * 1024)
      return [reader.log.seen === undefined, entries(reader.log.session.conversation).length]
    })
    assert.deepStrictEqual(kept, [
      [false, 10],
      [false, 15],
      [true, 17],
      [true, 40]
    ])
  })

  it("drops what the model sees when a branch goes back to what a compression cut", () => {
    const seen = [1, 1024].map((kibi) => {
      const reader = new LongLogReader()
      for (let n = 1; n <= 10; n += 1) reader.add(appended(n, text("a")), kibi * 1024)
      reader.add(compressedBy({ drop: { from: entryId(1), to: entryId(9) }, insert: [], shorten: [] }), 100)
      const before = reader.log.seen
      reader.add({ _tag: "Branched", at: 3, from: entryId(2) }, 100)
      return [before !== undefined, reader.log.seen !== undefined]
    })
    assert.deepStrictEqual(seen, [
      [true, true],
      [true, false]
    ])
  })

  it("shortens an answer, its message and all that is attached", () => {
    const long = (n: number) => ({
      id: entryId(n),
      content: { role: "user" as const, parts: [text(`${n}${"x".repeat(500)}`)] },
      source: { "0": "y".repeat(500) },
      tokens: [1],
      handles: []
    })
    const { log } = both([{ _tag: "Answered", message: long(1), attached: [long(2), long(3)], answer: long(4) }])
    const shown = entries(log.session.conversation)
    assert.deepStrictEqual(
      shown.map(({ content, source }) => [content.parts[0]?.text?.length, source]),
      [1, 2, 3, 4].map(() => [80, undefined])
    )
    assert.strictEqual(entries((log.seen ?? emptySession).conversation).at(-1)?.content.parts[0]?.text?.length, 501)
    assert.strictEqual(JSON.stringify(log.events).includes("y"), false)
  })
})
