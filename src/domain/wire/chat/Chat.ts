import type { WireDialect } from "../Dialect.ts"
import { allowsTools } from "../OpenAi.ts"
import { chatCompletionsCodec } from "./Messages.ts"
import { chatRelay } from "./RelayedAnswer.ts"
import { declaredTool } from "./Request.ts"

/** OpenAI's Chat Completions as a dialect: how messages, requests, tools and answers are read and written. */
export const chat: WireDialect = {
  messages: chatCompletionsCodec,
  answers: chatRelay,
  declaredTool,
  request: {
    messagesKey: "messages",
    hasInstructions: true,
    functionsKeys: [],
    allowsTools
  },
  turn: {
    _tag: "Message",
    role: "assistant",
    blocksKey: "content",
    callsKey: "tool_calls",
    resultMark: '"tool_call_id"'
  }
}
