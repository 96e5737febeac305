import { assert, describe, it } from "@effect/vitest"
import { text } from "../../../src/domain/content/Content.ts"
import { isRepeated, mayRepeat } from "../../../src/domain/session/RepeatedAppend.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import { appended, entry, sessionOf, started } from "../../../src/layers/testing/SessionHistories.ts"

const answered = (from: number, ...words: ReadonlyArray<string>): SessionEvent => {
  const [message, ...rest] = words.map((one, at) => entry(from + at, [text(one)]))
  const answer = rest.at(-1)
  if (message === undefined || answer === undefined) throw new Error("expected two messages")
  return { _tag: "Answered", message, answer, ...(rest.length > 1 ? { attached: rest.slice(0, -1) } : {}) }
}
const session = sessionOf([started("s"), appended(1, text("a")), answered(2, "b", "c", "d"), appended(5, text("e"))])

describe("an event that is appended again", () => {
  it.each<readonly [string, SessionEvent, may: boolean, isRepeated: boolean]>([
    ["the last message", appended(5, text("e")), true, true],
    ["an earlier one", appended(1, text("a")), true, true],
    ["an answer with all that belongs to it", answered(2, "b", "c", "d"), true, true],
    ["another text under the id", appended(5, text("f")), true, false],
    ["an answer of which the attachment differs", answered(2, "b", "x", "d"), true, false],
    ["an answer of which the last differs", answered(2, "b", "c", "x"), true, false],
    ["the next message", appended(6, text("e")), false, false],
    ["an answer that reaches beyond the log", answered(5, "e", "g"), true, false],
    ["what adds no message", { _tag: "Undone", at: 1 }, false, false]
  ])("%s", (_, event, may, repeated) => {
    assert.deepStrictEqual([mayRepeat(session.conversation.next, event), isRepeated(session, event)], [may, repeated])
  })
})
