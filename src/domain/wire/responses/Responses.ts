import type { WireDialect } from "../Dialect.ts"
import { answerForm } from "./Answer.ts"
import { responsesCodec } from "./Messages.ts"
import { responsesRelay } from "./RelayedAnswer.ts"
import { declaredTool } from "./Request.ts"

/** OpenAI's Responses API. */
export const responses: WireDialect = {
  messages: responsesCodec,
  answers: answerForm,
  relay: responsesRelay,
  declaredTool,
  request: {
    messagesKey: "input",
    hasInstructions: true,
    functionsKeys: [],
    isStored: true,
    allowsTools: () => true
  },
  turn: { _tag: "Items" }
}
