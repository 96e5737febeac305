import { anthropicCodec } from "../wire/anthropic/Messages.ts"
import { anthropicAnswers } from "../wire/anthropic/RelayedAnswer.ts"
import { chatCompletionsCodec } from "../wire/chat/Messages.ts"
import { chatAnswers } from "../wire/chat/RelayedAnswer.ts"
import type { Dialect } from "../wire/Dialect.ts"
import { geminiCodec } from "../wire/gemini/Messages.ts"
import { geminiAnswers } from "../wire/gemini/RelayedAnswer.ts"
import type { MessageCodec } from "../wire/MessageCodec.ts"
import type { AnswerDialect } from "../wire/RelayedAnswer.ts"
import { responsesCodec } from "../wire/responses/Messages.ts"
import { responsesAnswers } from "../wire/responses/RelayedAnswer.ts"

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
