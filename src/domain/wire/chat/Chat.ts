import { openAiUsage } from "../AnswerUsage.ts"
import type { WireDialect } from "../Dialect.ts"
import { openAiFailure } from "../OpenAiRequest.ts"
import { chatCompletionsCodec } from "./Messages.ts"
import { chatAnswers } from "./RelayedAnswer.ts"
import { declaredTool } from "./Request.ts"

/** The counts of an answer. */
export const usage = openAiUsage("prompt", "completion")

/** OpenAI's Chat Completions, which many other servers speak. */
export const chat: WireDialect = {
  messages: chatCompletionsCodec,
  answers: chatAnswers,
  usage,
  declaredTool,
  failure: openAiFailure,
  request: {
    messagesKey: "messages",
    hasInstructions: true,
    functionsKeys: [],
    isStored: false,
    allowsTools: () => true
  },
  turn: {
    _tag: "Message",
    role: "assistant",
    blocksKey: "content",
    callsKey: "tool_calls",
    resultMark: '"tool_call_id"'
  }
}
