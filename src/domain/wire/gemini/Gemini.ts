import { isJson } from "../../text/JsonObject.ts"
import type { WireDialect } from "../Dialect.ts"
import { geminiCodec } from "./Messages.ts"
import { geminiRelay } from "./RelayedAnswer.ts"

/** The Gemini API as a dialect: how its messages, requests, tools and answers are read and written. */
export const gemini: WireDialect = {
  messages: geminiCodec,
  answers: geminiRelay,
  declaredTool: (tool) => ({ functionDeclarations: [tool] }),
  request: {
    messagesKey: "contents",
    hasInstructions: false,
    functionsKeys: ["functionDeclarations", "function_declarations"],
    // The API takes no functions beside its own tools, or for an answer in JSON.
    allowsTools: (valueAt, tools) => {
      const given = valueAt("generationConfig") ?? valueAt("generation_config")
      const config = isJson(given) ? given : {}
      const isJsonAnswer = (config["responseMimeType"] ?? config["response_mime_type"]) === "application/json"
      const isOne = (config["candidateCount"] ?? config["candidate_count"] ?? 1) === 1
      return !isJsonAnswer && isOne && (tools === "" || /"function_?[dD]eclarations"/.test(tools))
    }
  },
  turn: { _tag: "Message", role: "model", blocksKey: "parts", resultMark: '"functionResponse"' }
}
