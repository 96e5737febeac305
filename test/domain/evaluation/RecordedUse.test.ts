import { assert, it } from "@effect/vitest"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { answersIn } from "../../../src/domain/evaluation/RecordedUse.ts"
import { entryOf } from "../../support/entries.ts"

it("an answer of several messages has the model that one of them names, and the counts of the last", () => {
  const usage = { prompt: 50, answer: 7, thoughts: 0, cached: 0 }
  const log = [
    entryOf(1, user(text("q"))),
    entryOf(2, model(text("a")), { model: "m" }),
    entryOf(3, model({ text: "hm", thought: true }, text("b")), { usage }),
    entryOf(4, model(text("another")))
  ]
  const answers = answersIn(log, [20, 40, 80, 100]).map(({ viewTokens: _, ...answer }) => answer)
  assert.deepStrictEqual(answers, [
    { entry: entryId(3), model: "m", answer: 40, thoughts: 20, usage },
    { entry: entryId(4), model: undefined, answer: 20, thoughts: 0, usage: undefined }
  ])
})
