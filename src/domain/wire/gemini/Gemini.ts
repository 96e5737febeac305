import type { WireDialect } from "../Dialect.ts"
import { isJson } from "../MessageCodec.ts"
import { usage } from "./Answer.ts"
import { geminiCodec } from "./Messages.ts"
import { geminiAnswers } from "./RelayedAnswer.ts"

const states: Readonly<Record<number, string>> = { 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED" }

/** The Gemini API. */
export const gemini: WireDialect = {
  messages: geminiCodec,
  answers: geminiAnswers,
  usage,
  declaredTool: (tool) => ({ functionDeclarations: [tool] }),
  failure: (status, message) => ({ error: { code: status, message, status: states[status] ?? "UNAVAILABLE" } }),
  request: {
    messagesKey: "contents",
    hasInstructions: false,
    functionsKeys: ["functionDeclarations", "function_declarations"],
    isStored: false,
    // The API takes no functions beside its own tools, or for an answer in JSON.
    allowsTools: (valueAt, tools) => {
      const config = valueAt("generationConfig") ?? valueAt("generation_config")
      const isJsonAnswer =
        isJson(config) && (config["responseMimeType"] ?? config["response_mime_type"]) === "application/json"
      return !isJsonAnswer && (tools === "" || /"function_?[dD]eclarations"/.test(tools))
    }
  },
  turn: { _tag: "Message", role: "model", blocksKey: "parts", resultMark: '"functionResponse"' }
}
