import { assert, describe, it } from "@effect/vitest"
import {
  activityOf,
  exitText,
  isEnd,
  lastLines,
  nothingYet,
  processResult,
  progressAfter
} from "../../../src/domain/agent/ProcessProgress.ts"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"

const tokens = TokenCount.make(1)
const model: ChatEvent = { _tag: "ModelInfo", model: "m", limit: tokens }
const says = (text: string): ChatEvent => ({ _tag: "Content", text })
const call: ChatEvent = { _tag: "ToolCallRequest", id: "c1", call: { name: "read_file" } }
const finished: ChatEvent = {
  _tag: "Finished",
  reason: "STOP",
  usage: null,
  answer: entryId(1),
  tokens,
  limit: tokens
}
const error: ChatEvent = { _tag: "Error", reason: "RateLimitError", message: "slow down" }
const cancelled: ChatEvent = { _tag: "UserCancelled" }

const after = (...events: ReadonlyArray<ChatEvent>) => events.reduce(progressAfter, nothingYet)

describe("the events of an agent in its own process", () => {
  it.each([
    ["an answer", [model, says("It is "), says("done."), finished], { reason: "GOAL", text: "It is done.", turns: 1 }],
    [
      "the answer of the last turn",
      [model, says("I look."), call, finished, model, says("Done."), finished],
      { reason: "GOAL", text: "Done.", turns: 2 }
    ],
    ["a failure", [model, error], { reason: "ERROR", text: "slow down", turns: 1 }],
    [
      "a failure after some words",
      [model, says("Half of"), error],
      { reason: "ERROR", text: "slow down\n\nPartial result:\nHalf of", turns: 1 }
    ],
    ["a cancel", [model, cancelled], { reason: "ABORTED", text: "it was cancelled", turns: 1 }],
    ["nothing", [], { reason: "GOAL", text: "", turns: 0 }]
  ] as const)("ends in a result: %s", (_, events, expected) => {
    assert.deepStrictEqual(processResult(after(...events), 5), { ...expected, duration: 5, session: undefined })
  })

  it.each([
    ["an answer", finished, [model], true],
    ["an answer with calls, which another turn follows", finished, [model, call], false],
    ["a failure", error, [model], true],
    ["a cancel", cancelled, [model, call], true],
    ["words", says("a"), [model], false]
  ] as const)("ends with %s, or not", (_, event, before, expected) => {
    assert.strictEqual(isEnd(event, after(...before)), expected)
  })

  it.each([
    ["a failure", error, { _tag: "Failed", message: "slow down" }],
    ["words", says("a"), undefined]
  ] as const)("is reported as an activity: %s", (_, event, expected) => {
    assert.deepStrictEqual(activityOf(event), expected)
  })

  it.each([
    [1, "p ended with exit status 1"],
    [137, "p ended with exit status 137 (it was killed, possibly because memory ran out)"]
  ])("exit status %d has a sentence", (code, sentence) => assert.strictEqual(exitText("p", code), sentence))

  it("its last words are five lines at most", () => {
    assert.strictEqual(lastLines(" \n"), "")
    assert.strictEqual(lastLines("1\n2\n3\n4\n5\n6\n"), "; the last lines of its error output: 2\n3\n4\n5\n6")
  })
})
