import { textOrEmpty } from "../../text/JsonObject.ts"
import type { WireDialect } from "../Dialect.ts"
import { allowsTools } from "../OpenAi.ts"
import { responsesCodec } from "./Messages.ts"
import { responsesRelay } from "./RelayedAnswer.ts"
import { declaredTool } from "./Request.ts"

/** OpenAI's Responses API as a dialect: how its messages, requests, tools and answers are read and written. */
export const responses: WireDialect = {
  messages: responsesCodec,
  answers: responsesRelay,
  declaredTool,
  request: {
    messagesKey: "input",
    hasInstructions: true,
    functionsKeys: [],
    isStored: (valueAt) => valueAt("store") !== false,
    allowsTools
  },
  turn: {
    _tag: "Items",
    isResult: (item) => textOrEmpty(item, "type").endsWith("_output"),
    isQuestion: (item) => item["role"] === "user"
  }
}
