import { openAiUsage } from "../AnswerUsage.ts"
import type { WireDialect } from "../Dialect.ts"
import { openAiFailure } from "../OpenAiRequest.ts"
import { responsesCodec } from "./Messages.ts"
import { responsesAnswers } from "./RelayedAnswer.ts"
import { declaredTool } from "./Request.ts"

/** The counts of an answer. */
export const usage = openAiUsage("input", "output")

/** OpenAI's Responses API. */
export const responses: WireDialect = {
  messages: responsesCodec,
  answers: responsesAnswers,
  usage,
  declaredTool,
  failure: openAiFailure,
  request: {
    messagesKey: "input",
    hasInstructions: true,
    functionsKeys: [],
    isStored: true,
    allowsTools: () => true
  },
  turn: { _tag: "Items" }
}
