import { Arbitrary } from "effect"
import { text } from "../../../src/domain/content/Content.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import {
  type Checkpoint,
  decodeCheckpoint,
  LogLines,
  replacesView,
  restoreSession
} from "../../../src/domain/session/Checkpoint.ts"
import { emptySession, type SessionEvent, applyEvent } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import {
  appended,
  entry,
  sessionOf,
  histories,
  visibleState,
  started,
  compressedBy
} from "../../../src/layers/testing/SessionHistories.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const compressed = (
  sequence: number,
  from: number,
  to: number,
  ...shorten: ReadonlyArray<readonly [entry: number, text: string]>
): SessionEvent =>
  compressedBy({
    drop: { from: entryId(from), to: entryId(to) },
    insert: [entry(sequence, [text("summary")])],
    shorten: shorten.map(([id, words]) => ({
      entry: entryId(id),
      part: 0,
      replacement: text(words),
      tokens: TokenCount.make(1)
    }))
  })

/** A log of ten bytes a line: its checkpoints, by the index of their line. */
const checkpoints = (events: ReadonlyArray<SessionEvent>): ReadonlyArray<Checkpoint | undefined> => {
  const lines = new LogLines()
  let session = emptySession
  return events.map((event, index) => {
    session = applyEvent(session, event)
    const found = replacesView(event) ? lines.checkpoint(session, event) : undefined
    lines.add(event, index * 10, index * 10 + 10)
    return found
  })
}
const talk = (...numbers: ReadonlyArray<number>) => numbers.map((n) => appended(n, text(`turn ${n}`)))
/** The events that a checkpoint names, and that of its own line. */
const named = (events: ReadonlyArray<SessionEvent>, { ranges }: Checkpoint, own: number) =>
  events.filter((_, index) => index === own || ranges.some(([from, to]) => index * 10 >= from && index * 10 < to))

describe("a checkpoint", () => {
  it("names exactly the lines of the view", () => {
    const events = [started("s"), ...talk(1, 2, 3, 4, 5), compressed(6, 2, 3)]
    const found = checkpoints(events).at(-1)
    assert.deepStrictEqual(found?.ranges, [
      [0, 20],
      [40, 60]
    ])
    assert.deepStrictEqual(found?.ids, ["e1", "e6", "e4-e5"])
    assert.deepStrictEqual([found?.next, found?.version, found?.pins], [7, 6, []])
  })

  it("names the compression whose shortening is in force, and drops an undone one", () => {
    const events: ReadonlyArray<SessionEvent> = [
      started("s"),
      ...talk(1, 2, 3),
      compressed(4, 1, 1, [3, "short"]),
      compressed(5, 4, 4),
      { _tag: "Undone", at: 1 },
      { _tag: "Undone", at: 1 },
      { _tag: "Redone", at: 1 }
    ]
    const found = checkpoints(events)
    assert.deepStrictEqual(found[5]?.ranges, [
      [0, 10],
      [20, 50]
    ])
    assert.deepStrictEqual(found[7]?.ranges, [[0, 40]])
    assert.deepStrictEqual(found[8]?.ranges, found[5]?.ranges)
  })

  it("is made with bounded and masked results, and names the masks in force", () => {
    const part = { functionResponse: { name: "f", response: { output: "x".repeat(900) } } }
    const bound = { form: "head-tail-chars", size: 100, tokens: TokenCount.make(7) } as const
    const result = (sequence: number): SessionEvent => ({
      _tag: "Appended",
      entry: { ...entry(sequence, [part, part]), bounded: { "0": bound, "1": bound } }
    })
    const masked = (id: number, words: string): SessionEvent => ({
      _tag: "Masked",
      at: 1,
      shorten: [{ entry: entryId(id), part: 0, replacement: text(words), tokens: TokenCount.make(1) }]
    })
    const events = [
      started("s"),
      ...talk(1, 2),
      result(3),
      result(4),
      masked(1, "mask of what leaves"),
      masked(4, "superseded"),
      masked(4, "mask that holds"),
      compressed(5, 1, 2)
    ]
    const found = checkpoints(events).at(-1) ?? assert.fail("expected a checkpoint")
    assert.deepStrictEqual(found.ranges, [
      [0, 10],
      [30, 50],
      [70, 80]
    ])
    const session = restoreSession(found, named(events, found, 8)) ?? assert.fail("expected a session")
    assert.deepStrictEqual(visibleState(session), visibleState(sessionOf(events)))
    const shown = visibleState(session).view.at(-1)?.parts ?? []
    assert.deepStrictEqual(shown[0], text("mask that holds"))
    assert.isBelow(JSON.stringify(shown[1]).length, 400, "the other part keeps its bound")
  })

  it("is made where its own event shortens again what one before it had shortened", () => {
    const events = [
      started("s"),
      ...talk(1, 2, 3),
      compressed(4, 1, 1, [2, "short"], [3, "short"]),
      compressed(5, 4, 4, [3, "shorter"])
    ]
    const found = checkpoints(events).at(-1) ?? assert.fail("expected a checkpoint")
    const session = restoreSession(found, named(events, found, 5))
    assert.deepStrictEqual(session && visibleState(session), visibleState(sessionOf(events)))
    assert.deepStrictEqual(
      visibleState(sessionOf(events)).view.map(({ parts }) => parts[0]?.text),
      ["summary", "short", "shorter"]
    )
  })

  it("is not made when an id is on two lines, or twice on its own", () => {
    const events = [started("s"), ...talk(1, 2), appended(2, text("again")), compressed(3, 1, 1)]
    assert.isUndefined(checkpoints(events).at(-1))
    const insert = ["one", "other"].map((words) => entry(3, [text(words)]))
    const twice = compressedBy({ drop: { from: entryId(1), to: entryId(1) }, insert, shorten: [] })
    assert.isUndefined(checkpoints([started("s"), ...talk(1, 2), twice]).at(-1))
    assert.isUndefined(checkpoints([started("s"), ...talk(1), started("s"), compressed(2, 1, 1)]).at(-1))
    assert.isUndefined(checkpoints([compressed(2, 1, 1)]).at(-1))
  })

  it("is not made when a compression shortened a later entry", () => {
    const events = [started("s"), ...talk(1), compressed(2, 9, 9, [1, "short"], [3, "too early"]), ...talk(3)]
    assert.isDefined(checkpoints(events)[2])
    assert.isUndefined(checkpoints([...events, compressed(4, 2, 2)]).at(-1))
  })

  it("is rejected when its lines are incomplete", () => {
    const events = [started("s"), ...talk(1, 2), compressed(3, 1, 1)]
    const found = checkpoints(events).at(-1) ?? assert.fail("expected a checkpoint")
    assert.isDefined(restoreSession(found, named(events, found, 3)))
    assert.isUndefined(restoreSession(found, named(events, found, 3).slice(1)))
    assert.isUndefined(restoreSession(found, named(events, found, 3).slice(0, -1)))
    assert.isUndefined(restoreSession({ ...found, ids: ["e2-e999999999"] }, events))
  })

  it.each([undefined, null, 1, "x", {}, { ranges: [] }, { ranges: [[0]], ids: [], next: 1 }])("%j is none", (value) => {
    assert.isUndefined(decodeCheckpoint(value))
  })

  it.prop(
    "law 1: restores what the model sees, also after serialization",
    [histories],
    ([history]) => {
      const events = [started("s"), ...history]
      for (const [index, checkpoint] of checkpoints(events).entries()) {
        if (checkpoint === undefined) continue
        const read = decodeCheckpoint(JSON.parse(JSON.stringify(checkpoint)))
        assert.deepStrictEqual(read, checkpoint)
        const session = restoreSession(checkpoint, named(events, checkpoint, index))
        assert.isDefined(session)
        if (session !== undefined)
          assert.deepStrictEqual(visibleState(session), visibleState(sessionOf(events.slice(0, index + 1))))
      }
    },
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it.effect("is made for most generated histories: the property above is not vacuous", function* () {
    const counts = { made: 0, refused: 0, shortened: 0 }
    for (const history of yield* Arbitrary.sampleEffect(histories, { count: 300, seed: "checkpoints" })) {
      const events = [started("s"), ...history]
      for (const [index, checkpoint] of checkpoints(events).entries()) {
        const event = events[index]
        if (event === undefined || !replacesView(event)) continue
        if (checkpoint === undefined) counts.refused += 1
        else counts.made += 1
        const { view } = visibleState(sessionOf(events.slice(0, index + 1)))
        if (view.some((item) => item.parts !== item.entry.content.parts)) counts.shortened += 1
      }
    }
    assert.isAbove(counts.made, 300)
    assert.isAbove(counts.shortened, 30)
    assert.isBelow(counts.refused, counts.made / 10)
  })
})
