import { assert, describe, it } from "@effect/vitest"
import { afterEvent, isOwnEnd, type TurnEnd, turnBegins } from "../../../src/domain/agent/TurnEnd.ts"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { EntryId } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"

const tokens = TokenCount.make(9)
const model: ChatEvent = { _tag: "ModelInfo", model: "m", limit: tokens }
const compressed = (status: string): ChatEvent => ({
  _tag: "ChatCompressed",
  trigger: "auto",
  status,
  before: tokens,
  after: tokens,
  limit: tokens,
  message: null
})
const usage = { prompt: 5, answer: 3, thoughts: 0, cached: 0 }
const finished: ChatEvent = {
  _tag: "Finished",
  reason: "STOP",
  usage,
  answer: EntryId.make("e1"),
  tokens,
  limit: tokens
}
const cancelled: ChatEvent = { _tag: "UserCancelled" }
const error = (reason: "ChatBusy" | "ModelError"): ChatEvent => ({ _tag: "Error", reason, message: "" })

describe("the end of a turn", () => {
  const cases: ReadonlyArray<readonly [name: string, events: ReadonlyArray<ChatEvent>, end: Partial<TurnEnd>]> = [
    ["nothing happened", [], {}],
    ["it was asked and cancelled", [model, cancelled], { model: "m" }],
    ["it has an answer", [model, finished], { model: "m", isFinished: true, usage }],
    ["it was cut off", [{ ...finished, reason: "MAX_TOKENS" }], { isFinished: true, isCut: true, usage }],
    [
      "it was compressed before",
      [compressed("COMPRESSED"), compressed("NOOP"), model],
      { model: "m", isCompressed: true }
    ],
    ["nothing was compressed", [compressed("NOOP")], {}]
  ]
  for (const [name, events, end] of cases) {
    it(name, () => assert.deepStrictEqual(events.reduce(afterEvent, turnBegins), { ...turnBegins, ...end }))
  }
})

it("every end is shown except the one that the agent itself chose", () => {
  const hidden = (triesAgain: boolean) =>
    [cancelled, error("ChatBusy"), error("ModelError"), finished].map((event) => isOwnEnd(event, triesAgain))
  assert.deepStrictEqual(hidden(false), [true, false, false, false])
  assert.deepStrictEqual(hidden(true), [true, true, false, false])
})
