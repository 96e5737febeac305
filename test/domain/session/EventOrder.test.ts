import { assert, describe, it } from "@effect/vitest"
import { text } from "../../../src/domain/content/Content.ts"
import { type Entry, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { checkNextEvent, logSoFar } from "../../../src/domain/session/EventOrder.ts"
import { isRepeated } from "../../../src/domain/session/RepeatedAppend.ts"
import { emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { appended, entry, sessionOf, started, compressedBy } from "../../../src/layers/testing/SessionHistories.ts"

const one = (sequence: number, words = `turn ${sequence}`): Entry => entry(sequence, [text(words)])
const answered = (message: Entry, answer: Entry, ...attached: ReadonlyArray<Entry>): SessionEvent => ({
  _tag: "Answered",
  message,
  answer,
  attached
})
const compressed = (
  drop: readonly [from: number, to: number] | undefined,
  insert: ReadonlyArray<Entry>,
  ...shorten: ReadonlyArray<number>
): SessionEvent =>
  compressedBy({
    ...(drop === undefined ? {} : { drop: { from: entryId(drop[0]), to: entryId(drop[1]) } }),
    insert,
    shorten: shorten.map((n) => ({
      entry: entryId(n),
      part: 0,
      replacement: text("short"),
      tokens: TokenCount.make(1)
    }))
  })
const back = (from: number | null): SessionEvent => ({
  _tag: "Branched",
  at: 1,
  from: from === null ? null : entryId(from)
})
const labelled = (n: number): SessionEvent => ({ _tag: "Labelled", at: 1, entry: entryId(n), label: "a" })

/** The view is 4, 2, 3, 5: the snapshot stands where 1 was. */
const session = sessionOf([
  started("s"),
  appended(1, text("turn 1")),
  appended(2, text("turn 2")),
  appended(3, text("turn 3")),
  compressed([1, 1], [one(4)]),
  appended(5, text("turn 5"))
])

describe("the next event of a log", () => {
  const cases: ReadonlyArray<readonly [what: string, event: SessionEvent, problem?: RegExp | undefined, gaps?: true]> =
    [
      ["a second beginning", started("s"), /Started/],
      ["the next entry", appended(6, text("a"))],
      ["an entry that is there", appended(5, text("a")), /e5.+e6/],
      ["an entry too far", appended(7, text("a")), /e7.+e6/],
      ["an entry too far, with gaps", appended(7, text("a")), undefined, true],
      ["an entry that is there, with gaps", appended(5, text("a")), /e5/, true],
      ["a message and its answer", answered(one(6), one(8), one(7))],
      ["an answer before its attachment", answered(one(6), one(7), one(8)), /e8.+e7/],
      ["the same entry twice, with gaps", answered(one(6), one(6)), /e6.+e7/, true],
      ["an answer before its message, with gaps", answered(one(9), one(8)), /e8.+e10/, true],
      ["an entry without tokens", { _tag: "Appended", entry: { ...one(6), tokens: [] } }, /e6.+1 parts/],
      ["an entry without handles", { _tag: "Appended", entry: { ...one(6), handles: [] } }, /e6.+1 parts/],
      ["back to the last entry", back(5)],
      ["back to the beginning", back(null)],
      ["back to what is not there", back(6), /Branched.+e6/],
      ["a label", labelled(5)],
      ["a label of what is not there", labelled(6), /Labelled.+e6/],
      ["a compression", compressed([4, 5], [one(6)], 2, 3)],
      ["a compression that drops one", compressed([2, 2], [])],
      ["a compression that drops none", compressed(undefined, [one(6)], 5)],
      ["a compression from what has left the view", compressed([1, 2], []), /e1,/],
      ["a compression up to what has left the view", compressed([4, 1], []), /e1,/],
      ["a compression that shortens what has left the view", compressed(undefined, [], 2, 1), /e1,/],
      ["a compression from the end", compressed([2, 4], []), /e2 to e4/],
      ["a compression that inserts what is there", compressed([2, 3], [one(5)]), /e5.+e6/]
    ]
  for (const [what, event, problem, gaps] of cases) {
    it(what, () => {
      const found = checkNextEvent(logSoFar(session), event, gaps === true)
      assert.strictEqual(found?._tag, problem === undefined ? undefined : "Malformed")
      if (problem !== undefined) assert.match(JSON.stringify(found), problem)
    })
  }

  it("is its beginning first", () => {
    const before = logSoFar(emptySession)
    assert.isUndefined(checkNextEvent(before, started("s"), false))
    assert.match(JSON.stringify(checkNextEvent(before, appended(1, text("a")), false)), /Appended/)
  })
})

describe("an event that was stored already", () => {
  const cases: ReadonlyArray<readonly [what: string, event: SessionEvent, isStored: boolean]> = [
    ["the same message", appended(5, text("turn 5")), true],
    ["an earlier one", appended(2, text("turn 2")), true],
    ["another text", appended(5, text("turn 6")), false],
    ["the next message", appended(6, text("turn 6")), false],
    ["a snapshot, which no caller appends", { _tag: "Appended", entry: one(4) }, false],
    ["two that are there", answered(one(2), one(3)), true],
    ["one that is not there", answered(one(5), one(6)), false],
    ["a first one that differs", answered(one(2, "a"), one(3)), false],
    ["no message", back(2), false],
    ["a compression", compressed([2, 3], [one(4)]), false]
  ]
  it.each(cases)("%s", (_, event, isStored) => assert.strictEqual(isRepeated(session, event), isStored))
})
