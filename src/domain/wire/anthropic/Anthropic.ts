import type { WireDialect } from "../Dialect.ts"
import { usage } from "./Answer.ts"
import { anthropicCodec } from "./Messages.ts"
import { anthropicAnswers } from "./RelayedAnswer.ts"
import { declaredTool } from "./Request.ts"

const errorTypes: Readonly<Record<number, string>> = { 401: "authentication_error", 429: "rate_limit_error" }

/** Anthropic's Messages API. */
export const anthropic: WireDialect = {
  messages: anthropicCodec,
  answers: anthropicAnswers,
  usage,
  declaredTool,
  failure: (status, message) => ({ type: "error", error: { type: errorTypes[status] ?? "api_error", message } }),
  request: {
    messagesKey: "messages",
    hasInstructions: false,
    functionsKeys: [],
    isStored: false,
    allowsTools: () => true
  },
  turn: { _tag: "Message", role: "assistant", blocksKey: "content", resultMark: '"tool_result"' }
}
