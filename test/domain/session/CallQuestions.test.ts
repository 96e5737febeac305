import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { questionsIn, type QuestionEvent } from "../../../src/domain/session/CallQuestions.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What became of questions, from the events of a log. */

const common = { at: 1, entry: entryId(2), ignorable: true } as const
const asked = (call: string, deadline = 9): QuestionEvent => ({
  _tag: "QuestionAsked",
  ...common,
  question: { call, kind: "tool", name: "f", args: {}, title: "f", detail: null, deadline }
})
const answered = (call: string, result: number | null): QuestionEvent => ({
  _tag: "QuestionAnswered",
  ...common,
  call,
  answer: result === null ? null : { result }
})

describe("questionsIn", () => {
  it("keeps the first answer and the first deadline of a question", () => {
    const [one, two, ...more] = questionsIn([
      asked("a"),
      asked("b"),
      answered("b", null),
      answered("b", 2),
      asked("a", 99),
      answered("a", 1),
      answered("c", 3),
      { _tag: "CallBegan", ...common, call: "a" }
    ])
    assert.deepStrictEqual([one?.answer, one?.question.deadline, one?.hasBegun], [{ result: 1 }, 9, true])
    assert.deepStrictEqual([two?.answer, two?.hasBegun, more], [null, false, []])
  })

  it("tells calls of two messages apart that have one id", () => {
    const later = { ...asked("a"), entry: entryId(4) }
    assert.deepStrictEqual(
      questionsIn([asked("a"), answered("a", 1), later]).map(({ answer, entry }) => [entry, answer]),
      [
        [entryId(2), { result: 1 }],
        [entryId(4), undefined]
      ]
    )
  })
})
