import { assert, describe, it } from "@effect/vitest"
import { call, type Content, model, response, user } from "../../../src/domain/content/Content.ts"
import { type Entry, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { compactionPoints } from "../../../src/domain/evaluation/CompactionPoints.ts"
import { applyEvent, emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { asks, ran, says } from "../../support/compactions.ts"

const pointsOf = (contents: ReadonlyArray<Content>) => {
  const events = contents.map((content, index): SessionEvent => {
    const entry: Entry = { id: entryId(index + 1), content, tokens: [], handles: [] }
    return { _tag: "Appended", entry }
  })
  return compactionPoints(events, events.reduce(applyEvent, emptySession))
}

const talk = (turns: number) =>
  Array.from({ length: turns }, (_, n) => [asks(`question ${n}`), says(`answer ${n}`)]).flat()

it("a compaction that inserted nothing is no point, one with a summary is", () => {
  const messages = talk(6).map((content, index): SessionEvent => ({
    _tag: "Appended",
    entry: { id: entryId(index + 1), content, tokens: [], handles: [] }
  }))
  const compressed = (insert: ReadonlyArray<Entry>): SessionEvent => ({
    _tag: "Compressed",
    at: 0,
    status: "COMPRESSED",
    strategy: "palimpsest",
    trigger: "auto",
    before: TokenCount.make(0),
    after: TokenCount.make(0),
    patch: { drop: { from: entryId(1), to: entryId(4) }, insert, shorten: [] }
  })
  const summary: Entry = { id: entryId(99), content: asks("s"), author: "summary", tokens: [], handles: [] }
  for (const [insert, recorded] of [
    [[], []],
    [[summary], ["s"]]
  ] as const) {
    const events = [...messages.slice(0, 8), compressed(insert), ...messages.slice(8)]
    const points = compactionPoints(events, events.reduce(applyEvent, emptySession))
    assert.deepStrictEqual(points.flatMap((point) => point.recorded ?? []).length, recorded.length)
  }
})

describe("points of a recording without a compaction", () => {
  it("are its quarters", () => {
    const points = pointsOf(talk(10))
    assert.deepStrictEqual(
      points.map(({ compaction: { after, before, log } }) => [before.length, log.length, after.length]),
      [
        [5, 5, 15],
        [10, 10, 10],
        [15, 15, 5]
      ]
    )
    assert.deepStrictEqual(
      points.map(({ recorded }) => recorded),
      [undefined, undefined, undefined]
    )
  })

  it("wait for the answer to an open call", () => {
    const calls = [model(call("ls", {})), user(response("ls", {})), model(call("ls", {})), user(response("ls", {}))]
    const [first] = pointsOf([...talk(2), ...calls, ...talk(4).slice(0, 8)])
    // A quarter of 16 messages is the fourth; a half, the eighth, ends with a response.
    assert.strictEqual(first?.compaction.before.length, 4)
    const [moved] = pointsOf([...talk(2).slice(0, 3), ...calls, ...talk(4), says("done")])
    assert.strictEqual(moved?.compaction.before.length, 5)
  })

  it("leave out sides of fewer than four messages", () => {
    assert.deepStrictEqual(pointsOf(talk(3)).length, 0)
    assert.deepStrictEqual(pointsOf([]), [])
  })

  it("know the folders that commands changed to", () => {
    const [point] = pointsOf([...ran("bash", { command: "cd /home/me/other && ls; cd /tmp" }, ""), ...talk(8)])
    assert.deepStrictEqual(point?.compaction.roots, ["/home/me/other"])
  })
})
