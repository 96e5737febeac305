import type { WireDialect } from "../Dialect.ts"
import { anthropicCodec } from "./Messages.ts"
import { anthropicRelay } from "./RelayedAnswer.ts"
import { declaredTool } from "./Request.ts"

/** Anthropic's Messages API as a dialect: how its messages, requests, tools and answers are read and written. */
export const anthropic: WireDialect = {
  messages: anthropicCodec,
  answers: anthropicRelay,
  declaredTool,
  request: {
    messagesKey: "messages",
    hasInstructions: false,
    functionsKeys: [],
    allowsTools: () => true
  },
  turn: { _tag: "Message", role: "assistant", blocksKey: "content", resultMark: '"tool_result"' }
}
