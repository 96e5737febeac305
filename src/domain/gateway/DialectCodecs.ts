import { anthropicCodec } from "../model/AnthropicCodec.ts"
import { chatCompletionsCodec } from "../model/ChatCompletionsCodec.ts"
import { geminiCodec } from "../model/GeminiCodec.ts"
import type { MessageCodec } from "../model/MessageCodec.ts"
import { responsesCodec } from "../model/ResponsesCodec.ts"
import type { AnswerDialect } from "./Answer.ts"
import { anthropicAnswers } from "./AnthropicAnswers.ts"
import { chatAnswers } from "./ChatAnswers.ts"
import type { Dialect } from "./Dialect.ts"
import { geminiAnswers } from "./GeminiAnswers.ts"
import { responsesAnswers } from "./ResponsesAnswers.ts"

/** How the messages of each dialect are read and written. */
export const codecs: Readonly<Record<Dialect, MessageCodec>> = {
  anthropic: anthropicCodec,
  chat: chatCompletionsCodec,
  responses: responsesCodec,
  gemini: geminiCodec
}

/** The answer dialect of each dialect. */
export const answerDialects: Readonly<Record<Dialect, AnswerDialect>> = {
  anthropic: anthropicAnswers,
  chat: chatAnswers,
  responses: responsesAnswers,
  gemini: geminiAnswers
}
